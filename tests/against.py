"""Compares this tree with another commit, by rows of the bench: `python -m tests.against REF ROW...`.

Each tree runs its own `driftscale bench ROW --format json`, in turns and in alternating order, in an
environment of its own: this one's is the one that runs the script, the other's is made from its
constraints.txt in build/against/, beside its files, and kept. Both are compiled before. A ratio is the median
over the turns of this tree's value by the other's, with the least and the largest.

Options: --turns N (default: 5), --repeats N (of each run of the bench; default: 3).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from experiments.own_packages import OUR_PACKAGES

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "against"


class RefusedError(Exception):
    """What was asked for cannot be compared; one line that says why."""


@dataclass(frozen=True)
class Tree:
    """A source tree and the Python of its environment."""

    folder: Path
    python: Path

    def compile(self) -> None:
        """Write the bytecode of all modules, so that no run of the bench does."""
        for package in OUR_PACKAGES:
            compileall.compile_dir(self.folder / package, quiet=2)

    def driftscale(self, *arguments: str) -> str:
        """The standard output of a command of this tree; RefusedError with its last line if it fails."""
        not_ours = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
        kept = {name: value for name, value in os.environ.items() if name not in not_ours}
        ended = subprocess.run(
            [self.python, "-P", "-m", "experiments.cli", *arguments],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            last = (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
            raise RefusedError(f"{self.folder}: driftscale {' '.join(arguments)}: {last}")
        return ended.stdout

    def rows(self) -> set[str]:
        """The names of the workloads of its bench."""
        return {row["name"] for row in json.loads(self.driftscale("bench", "--list", "--format", "json"))}

    def measured(self, rows: Sequence[str], repeats: int) -> dict[str, tuple[float, str]]:
        """(value, unit) of every figure of the rows, by its name."""
        text = self.driftscale("bench", *rows, "--format", "json", "--repeats", str(repeats))
        return {item["name"]: (item["value"], item["unit"]) for item in json.loads(text)["figures"]}


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
        subprocess.run([*install, "--editable", ".[bench]"], cwd=folder, check=True)
        ready.touch()
    return Tree(folder, python)


def refuse_missing(rows: Sequence[str], trees: Mapping[str, Tree]) -> None:
    """RefusedError for the first row that a tree lacks."""
    for name, tree in trees.items():
        known = tree.rows()
        for row in rows:
            if row not in known:
                raise RefusedError(f"{name} has no row {row!r}; it has {', '.join(sorted(known))}")


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
        refuse_missing(given.rows, trees)
        for tree in trees.values():
            tree.compile()
        turns = []
        for number in range(max(1, given.turns)):
            order = list(trees) if number % 2 == 0 else list(trees)[::-1]
            turns.append({name: trees[name].measured(given.rows, given.repeats) for name in order})
            print(f"turn {number + 1}/{given.turns}", file=sys.stderr)
    except RefusedError as refused:
        sys.exit(f"error: {refused}")
    print(*compared(turns), sep="\n")


if __name__ == "__main__":
    main()
