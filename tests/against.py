"""Compares this tree with another commit, by rows of the bench: `python -m tests.against REF ROW...`.

Each tree runs its own bench with `--format json`, in turns and in alternating order, in an
environment of its own: this one's is the one that runs the script, the other's is made from its
constraints.txt in build/against/, beside its files, and kept. Both are compiled before. A ratio is the median
over the turns of this tree's value by the other's, with the least and the largest.

The row `e1-instructions` is none of the bench: the instructions of a round of E1, over 10,000 devices, as
valgrind's cachegrind counts them. They hardly differ from one count to the next: each tree is counted once.

Options: --turns N (default: 5), --repeats N (of each run of the bench; default: 3).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.packages import AT_ROOT

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "against"

LIBRARIES = ("simpy",)
"""What a row needs that driftscale does not."""

INSTRUCTIONS = "e1-instructions"
FEW, MORE = 20, 120
PLAY = """
from {package}.population import Population
from {package}.rounds import RoundSizes, play
play(Population.of(10_000), RoundSizes(rounds={rounds}))
"""


class RefusedError(Exception):
    """What was asked for cannot be compared; one line that says why."""


@dataclass(frozen=True)
class Tree:
    """A source tree and the Python of its environment."""

    folder: Path
    python: Path

    def compile(self) -> None:
        """Write the bytecode of all modules, so that no run of the bench does."""
        for package in AT_ROOT:
            compileall.compile_dir(self.folder / package, quiet=2)

    def run(self, *arguments: str, by: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run this tree's Python, by the launcher `by`; RefusedError with its last line if it fails."""
        not_ours = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
        kept = {name: value for name, value in os.environ.items() if name not in not_ours}
        ended = subprocess.run(
            [*by, self.python, "-P", *arguments],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            raise RefusedError(f"{self.folder}: {' '.join(arguments)}: {last}")
        return ended

    @property
    def is_in_wheel(self) -> bool:
        """Whether its bench is a command of driftscale, as in commits that have no `benchmarks/`."""
        return not (self.folder / "benchmarks").is_dir()

    def bench(self, *arguments: str) -> Any:
        """What its bench prints as JSON."""
        words = ("experiments.cli", "bench") if self.is_in_wheel else ("benchmarks",)
        return json.loads(self.run("-m", *words, *arguments, "--format", "json").stdout)

    def instructions(self) -> float:
        """Millions of instructions of a round of E1: those that `MORE` rounds take more than `FEW`."""
        by = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
        package = "experiments.bench" if self.is_in_wheel else "benchmarks"
        few, more = (
            instructions_in(self.run("-c", PLAY.format(package=package, rounds=rounds), by=by).stderr)
            for rounds in (FEW, MORE)
        )
        return (more - few) / (MORE - FEW) / 1e6

    def rows(self) -> set[str]:
        """The names of the workloads of its bench."""
        return {row["name"] for row in self.bench("--list")}

    def measured(self, rows: Sequence[str], repeats: int) -> dict[str, tuple[float, str]]:
        """(value, unit) of every figure of the rows, by its name."""
        figures = self.bench(*rows, "--repeats", str(repeats))["figures"]
        return {item["name"]: (item["value"], item["unit"]) for item in figures}


def git(*arguments: str) -> str:
    """What git prints; RefusedError with its last line if it fails."""
    ended = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RefusedError((ended.stderr.strip().splitlines() or ["git failed"])[-1])
    return ended.stdout.strip()


def tree_of(ref: str) -> Tree:
    """The tree of a commit, checked out and with its environment; made if it is not there yet."""
    commit = git("rev-parse", "--verify", f"{ref}^{{commit}}")
    folder = KEPT / commit[:12]
    python, ready = folder / ".venv/bin/python", folder / ".venv/ready"
    if not ready.exists():
        if not folder.exists():
            git("clone", "--quiet", "--no-checkout", str(ROOT), str(folder))
            git("-C", str(folder), "checkout", "--quiet", commit)
        print(f"making the environment of {commit[:12]}", file=sys.stderr)
        venv.create(folder / ".venv", with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt"]
        subprocess.run([*install, "--editable", ".", *LIBRARIES], cwd=folder, check=True)
        ready.touch()
    return Tree(folder, python)


def refuse_missing(rows: Sequence[str], trees: Mapping[str, Tree]) -> None:
    """RefusedError for the first row that a tree lacks."""
    for name, tree in trees.items() if rows else ():
        known = tree.rows()
        for row in rows:
            if row not in known:
                raise RefusedError(f"{name} has no row {row!r}; it has {', '.join(sorted(known))}")


def instructions_in(report: str) -> int:
    """The number of instructions in a report of cachegrind.

    >>> instructions_in("==7== \\n==7== I   refs:      1,234,567\\n")
    1234567
    """
    found = re.search(r"^==\d+== I\s+refs:\s+([\d,]+)$", report, re.MULTILINE)
    if found is None:
        raise RefusedError(f"{INSTRUCTIONS}: valgrind counted no instructions: {report[-200:]!r}")
    return int(found[1].replace(",", ""))


def counted(trees: Mapping[str, Tree]) -> dict[str, dict[str, tuple[float, str]]]:
    """The figure `INSTRUCTIONS` of each tree; empty, with a line that says why, without valgrind."""
    if shutil.which("valgrind") is None:
        print(f"{INSTRUCTIONS}: skipped, valgrind is not installed", file=sys.stderr)
        return {name: {} for name in trees}
    return {name: {INSTRUCTIONS: (tree.instructions(), "M")} for name, tree in trees.items()}


def compared(turns: Sequence[Mapping[str, Mapping[str, tuple[float, str]]]]) -> list[str]:
    """A line for each figure that both trees have, from the figures of each turn by tree."""
    lines = ["| figure | before | now | now / before |", "|---|---|---|---|"]
    for name, (_, unit) in turns[0]["now"].items():
        if all(name in turn["before"] for turn in turns):
            before, now = ([turn[tree][name][0] for turn in turns] for tree in ("before", "now"))
            ratios = sorted(one / other for one, other in zip(now, before, strict=True))
            lines.append(
                f"| `{name}` | {median(before):.4g} {unit} | {median(now):.4g} {unit} | "
                f"{median(ratios):.3f} [{ratios[0]:.3f}, {ratios[-1]:.3f}] |"
            )
    return lines


def main() -> None:
    """Run the turns and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.against", description=__doc__.splitlines()[0])
    parser.add_argument("ref", metavar="REF")
    parser.add_argument("rows", metavar="ROW", nargs="+")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    try:
        trees = {"before": tree_of(given.ref), "now": Tree(ROOT, Path(sys.executable))}
        rows = [row for row in given.rows if row != INSTRUCTIONS]
        refuse_missing(rows, trees)
        for tree in trees.values():
            tree.compile()
        instructions = counted(trees) if rows != given.rows else {name: {} for name in trees}
        turns = []
        for number in range(max(1, given.turns) if rows else 1):
            order = list(trees) if number % 2 == 0 else list(trees)[::-1]
            measured = {name: trees[name].measured(rows, given.repeats) if rows else {} for name in order}
            turns.append({name: {**measured[name], **instructions[name]} for name in order})
            print(f"turn {number + 1}/{given.turns}", file=sys.stderr)
    except RefusedError as refused:
        sys.exit(f"error: {refused}")
    print(*compared(turns), sep="\n")


if __name__ == "__main__":
    main()
