"""One attempt at a run (arm, seed): start it or resume it from a checkpoint, and store checkpoints.

Owns what a checkpoint holds besides the emulation: the state of the log, and the counts and times summed over
all attempts at the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from device_profiles.fleet import Fleet
from emulator.arrays import Floats, Ints
from emulator.emulation import Log, Observer
from emulator.errors import CheckpointError, DataFileError, RunError
from emulator.messages import VisitRows
from emulator.storage.checkpoints import naming_file, read_checkpoint, round_of
from emulator.storage.recorded_tables import write_clients
from emulator.storage.runlog import RoundRecord, RunLog
from emulator.storage.state_tree import Tree
from emulator.storage.visit_log import VisitLog, write_visits
from executor.capability import cpu_capability
from executor.ranks import Spent
from experiments.config import Checkpoint
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.machine import host_name
from experiments.stopwatch import Stopwatch, Usage

FORMAT = 15
"""Version of the checkpoint layout; a checkpoint of another version cannot be resumed."""

ROUNDING = ("torch", "numpy", "scipy", "scikit-learn")
"""Packages whose results may differ by rounding from version to version."""

RARE = ("resumed", "halved_cohorts", "lost_workers", "runs_beside", "arms_beside")
"""Counts that `timing.json` omits when they are 0."""


class Played(Protocol):
    """What an attempt plays: an emulation, or another use of what one trains."""

    def state(self) -> Tree: ...

    def restore(self, state: Tree) -> None: ...


P = TypeVar("P", bound=Played)

Build = Callable[[Log, tuple[Observer, ...], Stopwatch], P]
"""Builds a fresh emulation of the run, with this log, these observers and this stopwatch."""


@dataclass
class Tally:
    """Counts and times of a run, summed over all attempts at it unless a comment states otherwise."""

    rounds: int = 0
    fruitful: int = 0  # rounds that absorbed at least one update
    rejected: int = 0  # clients whose update was not finite, summed over rounds
    forgotten: int = 0  # clients whose new memory was not finite, summed over rounds
    resumed: int = 0
    halved_cohorts: int = 0  # times a task group was split for lack of memory
    lost_workers: int = 0  # while the last command played the run
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: float = 0.0  # maximum over attempts
    spent_s: dict[str, float] = field(default_factory=dict)  # wall seconds by activity, see `Stopwatch`
    runs_beside: int = 0  # maximum number of other runs at work on this machine at the same time
    arms_beside: int = 0  # other arms that the training of the last attempt served: its times are theirs, too
    host: str = ""  # of the last attempt
    cpu_capability: str = ""

    def timing(self) -> dict[str, float | str]:
        """The content of `timing.json`, without the `RARE` counts that are 0."""
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


class Attempt(Generic[P]):
    """One attempt at a run: a context in which its log is open, entered by resuming it or starting it over.

    Attributes:
        stored: Rounds done at the last intact checkpoint; None without one.
        tally: Counts and times over all attempts. Those that follow from the log (`rounds`, `fruitful`,
            `rejected`, `forgotten`) are current, the others as of the last checkpoint or `finish`.
        emulation: The emulation to play.

    Args:
        directory: The run directory.
        arm: Name of the arm.
        seed: The seed.
        settings: When a checkpoint is due.
        header: First line of the log.
        build: Builds a fresh emulation.
        fleet: The clients' devices.
        device_factor: (N,) how each departs from `model_factor`; None: none does.
        client_names: The clients' names, as a trace has them.
        log_visits: Whether the emulation logs visits.
        observer: Called after every round.
        halved: Returns how many times so far the executor has split a task group for lack of memory.
        note: Receives lines for the user: damaged checkpoints, starting over, changed library versions.
        lost: Number of workers that this command has lost while they played the run.
        other_ranks: Returns CPU time and memory of the other ranks so far.
        runs_beside: Returns the maximum number of other runs at work on this machine at once so far.
        arms_beside: Number of other arms that its training serves.

    Raises:
        OSError: A file cannot be read or written; the error has the file's name.
        CheckpointError: On entry: the newest intact checkpoint is not a state of this run.
        ForeignFileError: One of the run's files is a link or another kind of file.
    """

    def __init__(
        self,
        directory: RunDirectory,
        arm: str,
        seed: int,
        settings: Checkpoint,
        *,
        header: dict[str, Any],
        build: Build[P],
        fleet: Fleet,
        device_factor: Floats | None,
        client_names: Sequence[str] | Ints | None,
        log_visits: bool,
        observer: Observer,
        halved: Callable[[], int],
        note: Callable[[str], None],
        lost: int = 0,
        other_ranks: Callable[[], Spent] = Spent,
        runs_beside: Callable[[], int] = lambda: 0,
        arms_beside: int = 0,
    ) -> None:
        self._directory, self._arm, self._seed = directory, arm, seed
        self._folder = directory.checkpoints(arm, seed)
        self._log_path = directory.run_file(arm, seed, "log.jsonl")
        self._visits_path = directory.run_file(arm, seed, "visits.arrow")
        self._fleet, self._client_names, self._logs_visits = fleet, client_names, log_visits
        self._devices = fleet.columns()
        if device_factor is not None:
            self._devices["device_factor"] = device_factor
        self._settings = settings
        self._header = header
        self._build = build
        self._observer = observer
        self._halved = halved
        self._lost = lost
        self._note = note
        self._runs_beside, self._arms_beside = runs_beside, arms_beside
        self.stored: int | None = None
        self.tally = Tally()
        self._earlier = Tally()
        self.stopwatch = Stopwatch()
        self._start_s = time.perf_counter()
        self._usage = Usage(other_ranks)
        self._stored_s = self._start_s
        self._log: RunLog | None = None
        self._visits: VisitLog | None = None
        self.emulation: P

    def __enter__(self) -> Attempt[P]:
        try:
            if not self._resume():
                with naming_file(self._directory.seed_path(self._arm, self._seed)):
                    self._directory.start(self._arm, self._seed)
                self._open_logs(None, None)
                self._build_emulation()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The emulation refers to this attempt as its log, and what builds it may, too: break the cycles, so
        # that all of them, and the world, are freed at once.
        del self.emulation, self._build
        self._close()

    def append(self, record: RoundRecord) -> None:
        """Append a record to the log on disk, then count it.

        This method makes the attempt the emulation's `Log`.
        """
        assert self._log is not None
        with naming_file(self._log_path):
            self._log.append(record)
        self.tally.rounds = record.round + 1
        self.tally.fruitful += record.train_loss is not None
        self.tally.rejected += len(record.rejected)
        self.tally.forgotten += len(record.forgotten)

    def append_visits(self, rows: VisitRows) -> None:
        """Append the visits of a round to their log on disk."""
        assert self._visits is not None
        with naming_file(self._visits_path):
            self._visits.append(rows)

    @property
    def is_due(self) -> bool:
        """Whether a checkpoint is due, by the rounds or by the wall seconds since the last one."""
        every = self._settings.every_rounds
        rounds = self.tally.rounds - (self.stored or 0)
        return (every is not None and rounds >= every) or (
            time.perf_counter() - self._stored_s >= self._settings.every_s
        )

    def has_closed(self, rounds: int | None) -> bool:
        """Whether the run has closed so many rounds; False for None."""
        return rounds is not None and self.tally.rounds >= rounds

    def store(self) -> None:
        """Write a checkpoint. After an OSError the earlier ones are still there."""
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
        if self._visits is not None:
            with naming_file(self._visits_path):
                tree["visits"] = self._visits.state()
        self._folder.write(self.tally.rounds, tree)
        self.stored = self.tally.rounds
        self._stored_s = time.perf_counter()

    def finish(self) -> dict[str, float | str]:
        """Write the whole log and the tables beside it to disk, then return the run's timing.

        Call after the last round, or after the run was stored. UNTIL is deleted first: these files change.
        """
        assert self._log is not None
        self._directory.unmark_until(self._arm, self._seed)
        with naming_file(self._log_path):
            self._log.close()
        run, fleet = (self._arm, self._seed), self._fleet
        path = self._directory.run_file(*run, "clients.parquet")
        write_clients(path, self._devices, fleet.device, fleet.ids, self._client_names)
        if self._visits is not None:
            with naming_file(self._visits_path):
                self._visits.close()
                write_visits(
                    self._visits_path, self._directory.run_file(*run, "visits.parquet"), fleet.device
                )
        self._take_times()
        return self.tally.timing()

    def _resume(self) -> bool:
        """Resume from the newest intact checkpoint; False if there is none, or if the run is marked FAILED.

        Raises OSError if a checkpoint cannot be read, CheckpointError if an intact one is not a state of this
        run.
        """
        if self._directory.run_file(self._arm, self._seed, "FAILED").is_file():
            return False
        damaged: list[Path] = []
        for file in self._folder.files():
            # Assume that the run has reached this round, until the checkpoint turns out to be damaged.
            self.stored = self.tally.rounds = round_of(file)
            try:
                tree = read_checkpoint(file)
                with self._refusing(file):
                    _refuse_other_run(tree, self._arm, self._seed)
                    until = self._directory.until(self._arm, self._seed)
                    if until is not None and until.rounds > self.stored:  # the log is cut back to before it
                        self._directory.unmark_until(self._arm, self._seed)
                    self._open_logs(tree["log"], tree.get("visits"))
            except DataFileError as error:
                self._note(f"{self._name}: cannot resume from {_damage_line(error, file)}")
                damaged.append(file)
                continue
            self._build_emulation()
            with self._refusing(file):
                self._restore(tree)
            for damaged_file in damaged:  # or it would count as the last but one checkpoint
                damaged_file.unlink()
            return True
        self.stored, self.tally.rounds = None, 0
        if damaged:
            self._note(f"{self._name}: all checkpoints are damaged, starting over")
        elif self._log_path.is_file():
            self._note(f"{self._name}: was begun and left no checkpoint, starting over")
        return False

    @contextmanager
    def _refusing(self, file: Path) -> Iterator[None]:
        """Context that turns errors of a checkpoint whose content does not fit into CheckpointError."""
        try:
            yield
        except OSError:  # including io.UnsupportedOperation, which is a ValueError too
            raise
        except (LookupError, TypeError, ValueError, AttributeError, RunError) as error:
            why = f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)
            raise CheckpointError(
                f"{self._name}: {file} cannot be resumed by this version: {why}; --fresh begins anew"
            ) from error

    def _restore(self, tree: Tree) -> None:
        tally = Tally(**tree["tally"])
        self.emulation.restore(tree["emulation"])
        if changed := _changed_versions(tree["versions"]):
            self._note(f"{self._name}: begun with {changed}; results may differ by rounding")
        self._earlier, self.tally = tally, Tally(**{**asdict(tally), "resumed": tally.resumed + 1})
        self.stopwatch.seconds.update(tally.spent_s)
        self.stored = tally.rounds

    @property
    def _name(self) -> str:
        return f"{self._arm}, seed {self._seed}"

    def _open_logs(self, log: Mapping[str, Tree] | None, visits: Mapping[str, Tree] | None) -> None:
        """Open new logs; if their states are given, the existing ones, truncated to their lengths then."""
        self._close()
        with naming_file(self._log_path):
            self._log = RunLog(self._log_path, self._header, log)
        if self._logs_visits:
            if (log is None) != (visits is None):
                raise ValueError("it has no state of the log of visits")
            with naming_file(self._visits_path):
                self._visits = VisitLog(self._visits_path, visits)

    def _build_emulation(self) -> None:
        self.emulation = self._build(self, (self._observer,), self.stopwatch)

    def _close(self) -> None:
        log, visits = self._log, self._visits
        self._log = self._visits = None
        with ExitStack() as stack:  # the other one is closed too if one cannot be
            for opened, path in ((log, self._log_path), (visits, self._visits_path)):
                if opened is not None:
                    stack.enter_context(naming_file(path))
                    stack.callback(opened.close)

    def _take_times(self) -> None:
        """Bring the times and counts of the tally that do not follow from the log up to date."""
        self.tally.wall_s = self._earlier.wall_s + time.perf_counter() - self._start_s
        self.tally.cpu_s = self._earlier.cpu_s + self._usage.cpu_s
        self.tally.peak_memory_bytes = max(self._earlier.peak_memory_bytes, self._usage.peak_memory_bytes)
        self.tally.halved_cohorts = self._earlier.halved_cohorts + self._halved()
        self.tally.lost_workers = self._lost
        self.tally.spent_s = dict(self.stopwatch.seconds)
        self.tally.runs_beside = max(self._earlier.runs_beside, self._runs_beside())
        self.tally.arms_beside = self._arms_beside
        self.tally.host, self.tally.cpu_capability = host_name(), cpu_capability()


def _refuse_other_run(tree: Tree, arm: str, seed: int) -> None:
    """ValueError unless the checkpoint `tree` has this version's layout and belongs to this run."""
    if tree["format"] != FORMAT:
        raise ValueError(f"its format is {tree['format']!r}, this version of driftscale has {FORMAT}")
    if tree["run"] != {"arm": arm, "seed": seed}:
        raise ValueError(f"it is of another run: {tree['run']!r}")


def _damage_line(error: DataFileError, file: Path) -> str:
    """One line on the damage, which names `file`."""
    return str(error) if str(file) in str(error) else f"{file}: {error}"


@cache
def rounding_versions() -> Mapping[str, str]:
    """Installed versions of `ROUNDING`. Cached, because searching package metadata is slow."""
    return {name: version(name) for name in ROUNDING}


def _changed_versions(then: Mapping[str, str]) -> str:
    """The packages whose version has changed, as in `numpy 2.3 (now 2.4)`; empty if there are none."""
    return ", ".join(
        f"{name} {then.get(name)} (now {now})"
        for name, now in rounding_versions().items()
        if then.get(name) != now
    )
