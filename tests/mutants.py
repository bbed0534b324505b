"""Small mistakes in the source, and which of them the tests notice: `python -m tests.mutants FOLDER`.

A mutant differs by a comparison, a constant, a dropped statement or two swapped arguments. With a fixed seed
a third of them each are drawn in lines that start and command processes, in lines of reports, and elsewhere.
Each is run against the tests that cover its line, the cheapest first: as many as fit into half of `LIMIT_S`.
Lines of processes count as covered by the tests that start any, too, as other processes execute them.

FOLDER keeps what tests cover (`covering.json`, of one run of the suite with coverage by test) and how each
mutant ended (`mutants.json`). With `--in TREE`, only lines are drawn that this other tree has too. With
`--of OTHER`, the folder of another tree's results, exactly its mutants are made, and what it killed and this
tree does not is printed: exit code 1 if there is any.

With `--tests TEST ...` each mutant is run against these tests alone, whatever lines they cover. So `--of
tests/golden/parity --tests tests/golden/parity` says whether the tests of parity notice each mutant that is
listed there.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

import coverage
import pytest

from tests.packages import AT_ROOT

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 60.0
NUMBER, SEED = 100, 34

Kind = Literal["comparison", "constant", "statement", "arguments"]
Ending = Literal["killed", "timed out", "survived", "not covered"]

GROUPS: Mapping[str, Sequence[str]] = {
    "processes": tuple(f"experiments/{name}/" for name in ("cluster", "jobs", "running", "playing", "cli")),
    "reports": ("experiments/results/",),
    "elsewhere": ("",),
}
"""The beginnings of the paths of each group's files; a file belongs to the first that fits."""

OTHER: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
"""What each comparison is written as, and what takes its place."""


@dataclass(frozen=True)
class Mutant:
    """`line` of `file`, which has it once, becomes `mutated`."""

    file: str
    line: str
    mutated: str
    kind: Kind


# -- drawing ------------------------------------------------------------------------------------------------


def mutants_of(source: str, file: str) -> Iterator[Mutant]:
    """All mutants of a file, each on one line that occurs once in it."""
    lines = source.splitlines()
    once = {line for line, number in Counter(lines).items() if number == 1}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt | ast.expr) and node.lineno == node.end_lineno:
            line = lines[node.lineno - 1]
            if line in once and line.isascii():
                for kind, mutated in _changes(node, line):
                    if mutated != line:
                        yield Mutant(file, line, mutated, kind)


def _changes(node: ast.stmt | ast.expr, line: str) -> Iterator[tuple[Kind, str]]:
    begin, end = node.col_offset, node.end_col_offset
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            first, last = left.end_col_offset, right.col_offset
            written, other = OTHER[type(operator)]
            between = line[first:last].replace(written, other, 1)
            yield "comparison", line[:first] + between + line[last:]
        case ast.Constant(value=bool(value)):
            yield "constant", f"{line[:begin]}{not value}{line[end:]}"
        case ast.Constant(value=int(value)) | ast.Constant(value=float(value)):
            yield "constant", f"{line[:begin]}{value + 1}{line[end:]}"
        case ast.Call(args=[one, other, *_]) if not {type(one), type(other)} & {ast.Starred}:
            texts = [line[item.col_offset : item.end_col_offset] for item in (one, other)]
            between = line[one.end_col_offset : other.col_offset]
            yield (
                "arguments",
                f"{line[: one.col_offset]}{texts[1]}{between}{texts[0]}{line[other.end_col_offset :]}",
            )
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield "statement", f"{line[:begin]}pass{line[end:]}"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", f"{line[:begin]}pass{line[end:]}"


def is_python(mutant: Mutant) -> bool:
    """Whether the file can be compiled with the mutant."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    try:
        ast.parse(source.replace(mutant.line, mutant.mutated))
    except SyntaxError:
        return False
    return True


def group_of(file: str) -> str:
    """The first group that the file belongs to."""
    return next(name for name, heads in GROUPS.items() if file.startswith(tuple(heads)))


def drawn(number: int, seed: int, also_in: Path | None) -> list[Mutant]:
    """`number` mutants, a third of each group and kinds in turn; of lines that `also_in` has once as well."""
    by_group: dict[tuple[str, Kind], list[Mutant]] = defaultdict(list)
    for package in AT_ROOT:
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            other = None if also_in is None else also_in / file
            if other is not None and not other.is_file():
                continue
            kept = None if other is None else Counter(other.read_text(encoding="utf-8").splitlines())
            for mutant in mutants_of(path.read_text(encoding="utf-8"), file):
                if kept is None or kept[mutant.line] == 1:
                    by_group[group_of(file), mutant.kind].append(mutant)
    draw = random.Random(seed)
    kinds: Sequence[Kind] = ("comparison", "constant", "statement", "arguments")
    chosen: list[Mutant] = []
    while len(chosen) < number:
        group = list(GROUPS)[len(chosen) % len(GROUPS)]
        mutant = draw.choice(by_group[group, kinds[len(chosen) // len(GROUPS) % len(kinds)]])
        if mutant not in chosen and is_python(mutant):
            chosen.append(mutant)
    return chosen


# -- what tests cover ---------------------------------------------------------------------------------------


class Cover:
    """A plug-in of pytest that measures which test executes which line, and how long each test takes."""

    def __init__(self, folder: Path) -> None:
        self._coverage = coverage.Coverage(
            data_file=str(folder / "coverage"), data_suffix=True, config_file=False, source=list(AT_ROOT)
        )
        self._coverage.start()
        self._folder, self._test, self._starting = folder, "", set[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: tuple[object, ...]) -> None:
        if self._test and event in ("subprocess.Popen", "tests.forked"):
            self._starting.add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = item.nodeid.partition("[")[0]
        self._coverage.switch_context(self._test)
        try:
            return (yield)
        finally:
            self._test = ""
            self._coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"starting-{os.getpid()}.json").write_text(json.dumps(sorted(self._starting)))


class Times:
    """A plug-in of pytest that adds up the seconds of each test function."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("[")[0]] += report.duration


def pytest_addoption(parser: pytest.Parser) -> None:
    """This module as a plug-in: `-p tests.mutants --cover FOLDER`."""
    parser.addoption("--cover", help="write what each test covers into this folder")


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(config.getoption("--cover"))
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Cover(folder))
    if not hasattr(config, "workerinput"):
        times = Times()
        config.pluginmanager.register(times)
        config.add_cleanup(lambda: (folder / "times.json").write_text(json.dumps(times.seconds)) and None)


def covering(folder: Path, tests: Sequence[str] = ()) -> dict[str, Any]:
    """By file and line the tests that execute it; the seconds of each test, and which start processes."""
    kept = folder / "covering.json"
    if not kept.exists():
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants", f"--cover={folder}"]
        subprocess.run([*command, "--numprocesses=2", "--dist=loadscope", *tests], cwd=ROOT, check=False)
        measured = coverage.Coverage(data_file=str(folder / "coverage"), config_file=False)
        measured.combine([str(folder)])
        data = measured.get_data()
        lines = {
            Path(file).relative_to(ROOT).as_posix(): {
                str(line): sorted(set(contexts) - {""})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        seconds = json.loads((folder / "times.json").read_text())
        starting = [name for file in folder.glob("starting-*.json") for name in json.loads(file.read_text())]
        kept.write_text(json.dumps({"lines": lines, "seconds": seconds, "starting": starting}))
    content: dict[str, Any] = json.loads(kept.read_text())
    return content


def tests_for(mutant: Mutant, known: Mapping[str, Any]) -> list[str]:
    """The tests that cover the mutant, the cheapest first, as many as fit into half of the limit."""
    number = (ROOT / mutant.file).read_text(encoding="utf-8").splitlines().index(mutant.line) + 1
    names = known["lines"].get(mutant.file, {}).get(str(number), [])
    if group_of(mutant.file) == "processes":
        names = [*names, *known["starting"]]
    seconds = known["seconds"]
    left_s, chosen = LIMIT_S / 2, []
    for name in sorted(set(names), key=lambda name: (seconds.get(name, 0.0), name)):
        left_s -= seconds.get(name, 0.0)
        if left_s < 0 and chosen:
            break
        chosen.append(name)
    return chosen


# -- playing ------------------------------------------------------------------------------------------------


def ending(mutant: Mutant, tests: Sequence[str], tree: Path) -> Ending:
    """How the tests end with the mutant in `tree`, which is as it was afterwards."""
    if not tests:
        return "not covered"
    path = tree / mutant.file
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    lines[lines.index(mutant.line)] = mutant.mutated
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
            cwd=tree,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_text(source, encoding="utf-8")
    if ended.returncode not in (0, 1, 2):  # 2: a module cannot be imported
        raise ValueError(f"pytest ended with {ended.returncode} for {mutant} and {tests}")
    return "survived" if ended.returncode == 0 else "killed"


def failing(tests: Sequence[str], tree: Path, jobs: int) -> set[str]:
    """The tests that fail without any mutant, as where a test needs more than the files of the tree."""
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rfE", f"-n{jobs}", "--dist=loadscope", *tests],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+?::\w+)", ended.stdout, re.MULTILINE))


def played(tests_of: Mapping[Mutant, Sequence[str]], jobs: int) -> list[Ending]:
    """How each mutant ended with its tests, in `jobs` copies of the tree at once.

    Raises ValueError if a test fails without a mutant that is not named by itself, but by its file or folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            tree = Path(folder) / str(number) / "tree"
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "runs", "*.egg-info"))
            free.put(tree)
        named = {name for names in tests_of.values() for name in names}
        useless = failing(sorted(named), tree, jobs)
        if not useless <= named:
            raise ValueError(f"fail without a mutant: {sorted(useless - named)}")
        print(f"left out, as they fail without a mutant: {sorted(useless)}", file=sys.stderr, flush=True)

        def play(mutant: Mutant) -> Ending:
            tree = free.get()
            try:
                found = ending(mutant, [name for name in tests_of[mutant] if name not in useless], tree)
            finally:
                free.put(tree)
            print(f"{found}: {mutant.file}: {mutant.mutated.strip()}", file=sys.stderr, flush=True)
            return found

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(play, tests_of))


def main() -> None:
    """Draw, play and compare."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--in", dest="also_in", type=Path)
    parser.add_argument("--of", type=Path)
    parser.add_argument("--tests", nargs="+", metavar="TEST")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    known = {} if given.tests else covering(given.folder.resolve())
    before: list[dict[str, str]] = []
    if given.of is None:
        mutants = drawn(given.number, given.seed, given.also_in)
    else:
        before = json.loads((given.of / "mutants.json").read_text())
        mutants = [
            Mutant(**{key: item[key] for key in ("file", "line", "mutated", "kind")}) for item in before
        ]
    endings = played({mutant: given.tests or tests_for(mutant, known) for mutant in mutants}, given.jobs)
    results = [{**asdict(mutant), "ending": found} for mutant, found in zip(mutants, endings, strict=True)]
    (given.folder / "mutants.json").write_text(json.dumps(results, indent=1))
    for group in GROUPS:
        counts = Counter(item["ending"] for item in results if group_of(item["file"]) == group)
        print(f"{group}: " + ", ".join(f"{number} {name}" for name, number in sorted(counts.items())))
    dead = ("killed", "timed out")
    lost = [
        new
        for old, new in zip(before, results, strict=False)
        if old["ending"] in dead and new["ending"] not in dead
    ]
    for item in lost:
        print(f"killed before, and {item['ending']} now: {item['file']}: {item['mutated'].strip()}")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
