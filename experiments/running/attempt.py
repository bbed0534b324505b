"""One (arm, seed) while it is at work: begun, or gone on with from a checkpoint, and stored in between.

Knows what belongs into a checkpoint besides the emulation: the log, and what is counted and timed over all
attempts at the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

from emulator.emulation import Emulation, Log, Observer
from emulator.errors import CheckpointError, DataFileError, RunError
from emulator.storage.checkpoints import naming_file, read_checkpoint, round_of
from emulator.storage.runlog import RoundRecord, RunLog
from emulator.storage.state_tree import Tree
from executor.capability import cpu_capability
from executor.ranks import Spent
from experiments.config import Checkpoint
from experiments.results.run_directory import RunDirectory
from experiments.running.machine import host_name
from experiments.running.usage import Usage
from experiments.stopwatch import Stopwatch

FORMAT = 4
"""Of what a checkpoint holds; another one cannot be gone on from."""

ROUNDING = ("torch", "numpy", "scipy", "scikit-learn")
"""Packages of which another version may round differently."""

RARE = ("resumed", "halved_cohorts", "lost_workers", "runs_beside")

Build = Callable[[Log, tuple[Observer, ...], Stopwatch], Emulation]
"""A fresh emulation of the run."""


@dataclass
class Tally:
    """What is counted and timed over all attempts at a run."""

    rounds: int = 0
    fruitful: int = 0  # rounds that had an update to learn from
    rejected: int = 0  # clients, over all rounds, of whom an update was not finite
    resumed: int = 0
    halved_cohorts: int = 0
    lost_workers: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: float = 0.0
    spent_s: dict[str, float] = field(default_factory=dict)
    runs_beside: int = 0  # the most other runs that were at work on this machine at the same time
    host: str = ""  # of the last attempt
    cpu_capability: str = ""

    def timing(self) -> dict[str, float | str]:
        """As `timing.json` has it; what never happened is left out."""
        rare = {name: getattr(self, name) for name in RARE}
        return {
            "host": self.host,
            "cpu_capability": self.cpu_capability,
            "wall_s": self.wall_s,
            **self.spent_s,
            "cpu_s": self.cpu_s,
            "peak_memory_bytes": self.peak_memory_bytes,
            **{name: count for name, count in rare.items() if count},
        }


class Attempt:
    """A run at work; a context in which its log is open. OSError says which file could not be written,
    ForeignFileError what stands in the place of one.

    `note` is told of checkpoints that are no good, in one line each. `stored` is the round of the last good
    one, None without any. `halved` says how many cohorts the executor has halved, `lost` how many workers
    this command has lost over the run, `others` what the other ranks have spent, `runs_beside` how many
    other runs were at work on this machine at once, at most.
    """

    def __init__(
        self,
        directory: RunDirectory,
        arm: str,
        seed: int,
        settings: Checkpoint,
        *,
        header: dict[str, Any],
        build: Build,
        observer: Observer,
        halved: Callable[[], int],
        note: Callable[[str], None],
        lost: int = 0,
        other_ranks: Callable[[], Spent] = Spent,
        runs_beside: Callable[[], int] = lambda: 0,
    ) -> None:
        self._directory, self._arm, self._seed = directory, arm, seed
        self._folder = directory.checkpoints(arm, seed)
        self._log_path = directory.log_path(arm, seed)
        self._settings = settings
        self._header = header
        self._build = build
        self._observer = observer
        self._halved = halved
        self._lost = lost
        self._note = note
        self._runs_beside = runs_beside
        self.stored: int | None = None
        self.tally = Tally()
        self._earlier = Tally()
        self._stopwatch = Stopwatch()
        self._start_s = time.perf_counter()
        self._usage = Usage(other_ranks)
        self._stored_s = self._start_s
        self._log: RunLog | None = None
        self.emulation: Emulation

    def __enter__(self) -> Attempt:
        try:
            if not self._resume():
                with naming_file(self._directory.seed_path(self._arm, self._seed)):
                    self._directory.start(self._arm, self._seed)
                self._open_log(None)
                self._build_emulation()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The emulation has this for a log: apart, both are let go at once, and the world with them.
        del self.emulation
        with naming_file(self._log_path):
            self._close()

    def append(self, record: RoundRecord) -> None:
        """A `Log` for the emulation: the one on disk, then what is counted."""
        assert self._log is not None
        with naming_file(self._log_path):
            self._log.append(record)
        self.tally.rounds = record.round + 1
        self.tally.fruitful += record.train_loss is not None
        self.tally.rejected += len(record.rejected)

    @property
    def is_due(self) -> bool:
        """Whether the last checkpoint is so old that another is asked for."""
        every = self._settings.every_rounds
        rounds = self.tally.rounds - (self.stored or 0)
        return (every is not None and rounds >= every) or (
            time.perf_counter() - self._stored_s >= self._settings.every_s
        )

    def store(self) -> None:
        """Write a checkpoint; OSError leaves the earlier ones."""
        assert self._log is not None
        self._take_times()
        with naming_file(self._log_path):
            log = self._log.state()
        tree = {
            "format": FORMAT,
            "run": {"arm": self._arm, "seed": self._seed},
            "versions": dict(rounding_versions()),
            "tally": asdict(self.tally),
            "log": log,
            "emulation": self.emulation.state(),
        }
        self._folder.write(self.tally.rounds, tree)
        self.stored = self.tally.rounds
        self._stored_s = time.perf_counter()

    def finish(self) -> dict[str, float | str]:
        """The timing, once the last round is done and all of the log is on the disk."""
        assert self._log is not None
        with naming_file(self._log_path):
            self._log.close()
        self._take_times()
        return self.tally.timing()

    def _resume(self) -> bool:
        """Go on from the newest checkpoint that is not damaged; False where there is none, or the run failed.

        OSError where one cannot be read, CheckpointError where one is whole and still no state of this run.
        """
        if self._directory.failed_path(self._arm, self._seed).is_file():
            return False
        damaged: list[Path] = []
        for file in self._folder.files():
            # Until it is known to be damaged, the run is taken to be there.
            self.stored = self.tally.rounds = round_of(file)
            try:
                tree = read_checkpoint(file)
                with self._refusing(file):
                    _refuse_other_run(tree, self._arm, self._seed)
                    self._open_log(tree["log"])
            except DataFileError as error:
                self._note(f"{self._name}: cannot go on from {_damage_line(error, file)}")
                damaged.append(file)
                continue
            self._build_emulation()
            with self._refusing(file):
                self._restore(tree)
            for damaged_file in damaged:  # else it would be taken for the last but one
                damaged_file.unlink()
            return True
        self.stored, self.tally.rounds = None, 0
        if damaged:
            self._note(f"{self._name}: no checkpoint is good, starting over")
        elif self._log_path.is_file():
            self._note(f"{self._name}: was begun and left no checkpoint, starting over")
        return False

    @contextmanager
    def _refusing(self, file: Path) -> Iterator[None]:
        """Within it, whatever a checkpoint can hold that is no state of this run is a CheckpointError."""
        try:
            yield
        except OSError:  # also where it is a ValueError too (io.UnsupportedOperation)
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RunError) as error:
            why = f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)
            raise CheckpointError(
                f"{self._name}: {file} cannot be gone on with by this version: {why}; --fresh begins anew"
            ) from error

    def _restore(self, tree: Tree) -> None:
        tally = Tally(**tree["tally"])
        self.emulation.restore(tree["emulation"])
        if changed := _changed_versions(tree["versions"]):
            self._note(f"{self._name}: begun with {changed}; results may differ by rounding")
        self._earlier, self.tally = tally, Tally(**{**asdict(tally), "resumed": tally.resumed + 1})
        self._stopwatch.seconds.update(tally.spent_s)
        self.stored = tally.rounds

    @property
    def _name(self) -> str:
        return f"{self._arm}, seed {self._seed}"

    def _open_log(self, state: Mapping[str, Tree] | None) -> None:
        """Open the log, at its beginning or where `state` says."""
        self._close()
        with naming_file(self._log_path):
            self._log = RunLog(self._log_path, self._header, state)

    def _build_emulation(self) -> None:
        self.emulation = self._build(self, (self._observer,), self._stopwatch)

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _take_times(self) -> None:
        """Bring the tally up to now."""
        self.tally.wall_s = self._earlier.wall_s + time.perf_counter() - self._start_s
        self.tally.cpu_s = self._earlier.cpu_s + self._usage.cpu_s
        self.tally.peak_memory_bytes = max(self._earlier.peak_memory_bytes, self._usage.peak_memory_bytes)
        self.tally.halved_cohorts = self._earlier.halved_cohorts + self._halved()
        self.tally.lost_workers = self._lost
        self.tally.spent_s = dict(self._stopwatch.seconds)
        self.tally.runs_beside = max(self._earlier.runs_beside, self._runs_beside())
        self.tally.host, self.tally.cpu_capability = host_name(), cpu_capability()


def _refuse_other_run(tree: Tree, arm: str, seed: int) -> None:
    """ValueError unless the checkpoint `tree` is one of this version and this run."""
    if tree["format"] != FORMAT:
        raise ValueError(f"its format is {tree['format']!r}, this version of driftscale has {FORMAT}")
    if tree["run"] != {"arm": arm, "seed": seed}:
        raise ValueError(f"it is of another run: {tree['run']!r}")


def _damage_line(error: DataFileError, file: Path) -> str:
    """One line about what is damaged, which names `file`."""
    return str(error) if str(file) in str(error) else f"{file}: {error}"


@cache
def rounding_versions() -> Mapping[str, str]:
    """What is installed of `ROUNDING`; read once, as a search through the metadata of packages takes long."""
    return {name: version(name) for name in ROUNDING}


def _changed_versions(then: Mapping[str, str]) -> str:
    """`numpy 2.3 (now 2.4)`, of each package that has changed."""
    return ", ".join(
        f"{name} {then.get(name)} (now {now})"
        for name, now in rounding_versions().items()
        if then.get(name) != now
    )
