"""Fuzzer: plays composed configurations in several ways, which must all come to the same bytes.

    python -m tests.reliability.fuzz_runs --inputs 1000 --seed 0

The seed and the number of a configuration determine it. Each is checked; one that is refused is repaired.
Then it is played, played again, stopped at drawn steps and resumed, and played with other threads, and with
`--workers` by two workers. A finding is a difference in any byte of a result, an exception that is not an
EmulatorError, a warning, or a check that refuses what a run would play, or the other way round.
Configurations with a finding are saved, and the exit code is then 1.

What was played is counted by solver, aggregator, model, and so on, at the end.

With `--mutant module:Class.field`, checkpoints leave out that field, and runs that are stopped after every
few steps should come to other bytes.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from emulator.errors import InputError, RunError
from experiments.build import build_world
from experiments.config import parse_experiment
from experiments.locating import locator
from experiments.running.plan import Checker, plan_run
from experiments.running.runner import run_plan
from experiments.running.stop import Stop
from tests.experiments.small import Story, merged
from tests.reliability.composed import Drawn, parts_of, write_data
from tests.reliability.stops import Stopped

ROOT = Path(__file__).resolve().parents[2]

MOST_S = 300
"""Wall seconds for one configuration, in all ways; then the process ends with a traceback."""

MOST_STEPS = 100
"""Steps before the first stop of a run, at most."""

BATCH = 25
"""Configurations that are played by two workers at once."""

Results = Mapping[str, bytes]
"""The bytes of what a configuration's runs have come to, by file; and why runs failed."""


class DifferenceError(Exception):
    """A configuration with a finding."""


class AfterSteps(Stop):
    """A stop that is requested once it has been asked for `steps` times, once in each step of a run."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    @property
    def stop_requested(self) -> bool:
        self._left -= 1
        return self._left < 0

    @stop_requested.setter
    def stop_requested(self, value: bool) -> None:
        """Ignore other requests."""


@dataclass
class Tally:
    """What became of the configurations: repaired ones, played ones, those that fail; and stops of runs.

    `parts` counts what those that were played have, see `parts_of`.
    """

    repaired: int = 0
    played: int = 0
    failed: int = 0
    stops: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def refusal(table: Mapping[str, Any], data: Path, checker: Checker | None = None) -> str | None:
    """Why a check refuses the configuration, None if it does not."""
    try:
        (checker or Checker()).check(parse_experiment(table, ""), locator(data, None), scratch=data)
    except InputError as error:
        return str(error)
    return None


def play(table: Mapping[str, Any], data: Path, out: Path, stop: Stop | None = None) -> Results | None:
    """Play the configuration into `out`; None if it was stopped.

    Raises InputError if it is refused, and DifferenceError if that is after a round.
    """
    experiment, story = parse_experiment(table, ""), Story()
    try:
        run_plan(plan_run(experiment, out, None, locator(data, None), fresh=False), story, stop)
    except InputError as error:
        if story.rounds:
            raise DifferenceError(f"refused after {story.rounds} rounds: {error}") from error
        raise
    except RunError:
        pass  # runs have failed, as `results_of` reads
    except KeyboardInterrupt:
        return None
    return results_of(out)


def results_of(out: Path) -> Results:
    """The bytes of all results in a run directory but timings, and the reasons of runs that failed."""
    names = ("log.jsonl", "visits.parquet", "clients.parquet", "models.safetensors", "FAILED")
    files = {path for name in names for path in out.glob(f"*/seed-*/{name}")}
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(files)}


def repaired(drawn: Drawn, data: Path, out: Path, tables: list[Mapping[str, Any]]) -> bool:
    """Repair a configuration that a check refuses; False if it refuses none. `tables` gets all it is shown.

    Raises DifferenceError if a run plays what a check refuses.
    """
    checker = Checker()

    def refuses(table: Mapping[str, Any]) -> bool:
        tables.append(table)
        return refusal(table, data, checker) is not None

    if not refuses(drawn.table()):
        return False
    try:
        play(drawn.table(), data, out)
    except InputError:
        assert drawn.repair(refuses)
        return True
    raise DifferenceError(f"a check refuses it, and a run plays: {refusal(drawn.table(), data)}")


def examine(
    key: str, table: Mapping[str, Any], data: Path, out: Path, tally: Tally, *, at_once: bool = False
) -> Results:
    """Play a configuration that a check takes in all ways but by workers; its results.

    With `at_once`, it is played twice only: the second time with other threads, and with stops.

    Raises DifferenceError for a finding.
    """
    draw = random.Random(f"{key}/ways")
    try:
        results = play(table, data, out / "once")
        assert results is not None
    except InputError as error:
        raise DifferenceError(f"a check takes it, and a run is refused: {error}") from error
    tally.played += 1
    tally.failed += any(name.endswith("FAILED") for name in results)
    tally.parts += parts_of(table)
    threads: Mapping[str, Any] = merged(table, {"executor": {"threads": draw.randint(2, 4)}})
    if not at_once:
        compare(results, play(table, data, out / "twice"), "played twice")
        compare(results, play(threads, data, out / "threads"), "with other threads")
        threads = table
    stopped, stops = None, 0
    while stopped is None:  # ever later, so that a long run is not stopped a hundred times
        stops += 1
        stopped = play(threads, data, out / "stopped", AfterSteps(stops * draw.randint(1, MOST_STEPS)))
    tally.stops += stops - 1
    compare(results, stopped, "stopped and resumed")
    return results


def compare(results: Results, others: Results | None, way: str) -> None:
    """Raise DifferenceError if the results of another way to play are not the same."""
    assert others is not None
    differing = [name for name in sorted({*results, *others}) if results.get(name) != others.get(name)]
    if differing:
        raise DifferenceError(f"{way}: {', '.join(differing)} differ")


@contextmanager
def findings(tally: Tally, key: str, save: Path) -> Iterator[list[Mapping[str, Any]]]:
    """Context in which warnings are errors; a DifferenceError, or any other exception, is noted.

    The configuration at hand, which is then saved, is the last of the list.
    """
    faulthandler.dump_traceback_later(MOST_S, exit=True)
    tables: list[Mapping[str, Any]] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield tables
    except Exception as error:
        save.mkdir(parents=True, exist_ok=True)
        file = save / f"{key.replace('/', '-')}.toml"
        file.write_text(tomli_w.dumps(dict(tables[-1])), encoding="utf-8")
        tally.problems.append(f"{file}: {type(error).__name__}: {error}")
    finally:
        faulthandler.cancel_dump_traceback_later()


def by_workers(batch: Mapping[str, tuple[Mapping[str, Any], Results]], data: Path, out: Path) -> list[str]:
    """Play a batch of configurations by two workers; the findings. `batch` has their results, by key."""
    folder = out / "batch"
    folder.mkdir()
    for number, (table, _) in enumerate(batch.values()):
        named = {**table, "name": f"composed-{number}"}
        (folder / f"composed-{number}.toml").write_text(tomli_w.dumps(named), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "experiments.cli",
        "run",
        str(folder),
        "--data",
        str(data),
        "--jobs",
        "2",
    ]
    ended = subprocess.run(
        [*command, "--out", str(out / "jobs")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error::UserWarning"},
        capture_output=True,
        text=True,
        check=False,
    )
    problems = []
    if ended.returncode not in (0, 1, 3) or "Traceback" in ended.stderr:
        problems.append(f"--jobs 2 ended with {ended.returncode}: {ended.stderr[-400:]}")
    for number, (key, (_, results)) in enumerate(batch.items()):
        try:
            compare(results, results_of(out / "jobs" / f"composed-{number}"), f"{key}: with --jobs 2")
        except DifferenceError as error:
            problems.append(f"{error}; the command ended with {ended.returncode}: {ended.stderr[-200:]}")
    return problems


def fuzz(seed: int, inputs: int, save: Path, *, workers: bool = False, at_once: bool = False) -> Tally:
    """Examine `inputs` configurations, see `examine`; with `workers`, also play them by two workers."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        write_data(data)
        batch: dict[str, tuple[Mapping[str, Any], Results]] = {}
        for number in range(inputs):
            key = f"{seed}/{number}"
            with tempfile.TemporaryDirectory(dir=folder) as out, findings(tally, key, save) as tables:
                drawn = Drawn(key)
                tally.repaired += repaired(drawn, data, Path(out) / "refused", tables)
                table = drawn.table()
                batch[key] = table, examine(key, table, data, Path(out), tally, at_once=at_once)
            if workers and batch and (len(batch) == BATCH or number == inputs - 1):
                with tempfile.TemporaryDirectory(dir=folder) as out:
                    tally.problems += by_workers(batch, data, Path(out))
                batch = {}
    return tally


# -- mutants ------------------------------------------------------------------------------------------------


def found_after(mutant: str, inputs: int, seed: int, fixed: Mapping[str, Any] | None = None) -> int | None:
    """How many configurations it takes to find that a field is not stored; None if `inputs` do not.

    The field is "module:Class.field". Runs of configurations of which the keys `fixed` are given are stopped
    after every few steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        write_data(data)
        for number in range(inputs):
            key = f"{seed}/{number}"
            drawn = Drawn(key, fixed)
            assert drawn.repair(lambda table: refusal(table, data) is not None)
            with tempfile.TemporaryDirectory(dir=data) as out:
                if not resumes(drawn.table(), data, Path(out), mutant, f"{key}/stops"):
                    return number + 1
    return None


def resumes(table: Mapping[str, Any], data: Path, out: Path, mutant: str, key: str) -> bool:
    """Whether a run that is stopped after every few steps, and does not store a field, has the same log."""
    experiment, draw = parse_experiment(table, ""), random.Random(key)
    world = build_world(experiment, experiment.seeds[0], locator(data, None))
    try:
        log = Stopped(experiment, world, out / "whole").play()
    except RunError:  # one that fails is no test of what is resumed
        return True
    with mutated(mutant):
        try:
            return (
                Stopped(experiment, world, out / "stopped").play_with_stops(lambda: draw.randint(1, 3)) == log
            )
        except Exception:
            return False


@contextmanager
def mutated(mutant: str) -> Iterator[None]:
    """Context in which checkpoints leave out the field that `mutant` names."""
    module, _, where = mutant.partition(":")
    name, _, field_name = where.partition(".")
    cls = getattr(importlib.import_module(module), name)
    fields = cls.state_fields
    assert field_name in fields, f"{mutant}: the class stores {', '.join(fields)}"
    cls.state_fields = tuple(other for other in fields if other != field_name)
    try:
        yield
    finally:
        cls.state_fields = fields


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", action="store_true", help="also by two workers")
    parser.add_argument("--save", type=Path, default=Path("found"), help="where findings are saved")
    parser.add_argument("--mutant", help="a field that checkpoints leave out")
    arguments = parser.parse_args()
    if arguments.mutant:
        after = found_after(arguments.mutant, arguments.inputs, arguments.seed)
        print("not found" if after is None else f"found by configuration {after}")
        sys.exit(0 if after is None else 1)
    tally = fuzz(arguments.seed, arguments.inputs, arguments.save, workers=arguments.workers)
    print(
        f"{arguments.inputs} configurations: {tally.played} played, of which {tally.failed} fail; "
        f"{tally.repaired} repaired; {tally.stops} stops; {len(tally.problems)} findings"
    )
    for part, count in sorted(tally.parts.items()):
        print(f"{count:6} {part}")
    for problem in tally.problems:
        print(problem)
    sys.exit(1 if tally.problems else 0)


if __name__ == "__main__":
    main()
