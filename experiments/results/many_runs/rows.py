"""The rows of a table of many runs, and its sections, with their form in `table.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.results.many_runs.measured_directory import PlayedRun
from experiments.results.reading.differing_keys import Path as KeyPath
from experiments.results.reading.recorded import Target, is_finite
from experiments.results.statistics.horizon import Horizon
from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.significance import Difference
from experiments.results.tables.table import Row as TableRow


@dataclass(frozen=True)
class Row:
    """An arm of one or more directories, which share its runs and those of its reference arm.

    Attributes:
        directories: Names of the directories.
        arm: Name of the arm.
        keys: The value of each of the section's keys; None where the arm has no such key.
        seed_ids: The seeds, those that the reference arm has too.
        mean_accuracy: Accuracy averaged over the section's stretch of virtual time.
        gain_pp: Difference of that from the reference arm of the same directory, in percentage points; None
            for that arm itself.
        difference_pp: Difference of that from `base_arm` of the first directory; None in that directory
            itself, and if none of its runs of `base_arm` is finished.
        base_arm: The arm of the same name, or the reference arm if the first directory has none of that name.
        identical_to: Index of the first earlier row with the same seeds and the same results; None without.
        targets: Times to each of the section's targets.
        measured: The quantities of all tables that `table.json` has (`InManyRuns.keys`), over the section's
            stretch of virtual time; differences are from the reference arm of the same directory, without a
            test.
        total_bytes: Bytes sent up to the horizon, both ways, for training and control.
        drift: For each figure of `published.COMPARED`, ours beside the published value; None where it was
            not measured.
        offline_clients_heard: Whether clients reported although they were offline, as in `ReportedRun`.
        runs: The runs of `seed_ids`, in that order, smoothed over the section's window.
    """

    directories: list[str]
    arm: str
    keys: list[Any]
    seed_ids: list[int]
    mean_accuracy: Estimate
    gain_pp: Difference | None
    difference_pp: Difference | None
    base_arm: str
    identical_to: int | None
    targets: list[TableRow]
    measured: TableRow
    total_bytes: Estimate
    drift: Mapping[str, Mapping[str, Any] | None]
    offline_clients_heard: bool
    runs: list[PlayedRun]

    @property
    def has_trigger(self) -> bool:
        """Whether a trigger decides in each run whether all clients are clustered anew."""
        return self.measured["reclustered_seeds"] is not None

    def as_json(self, paths: Sequence[KeyPath]) -> dict[str, object]:
        """The entry in `table.json`; `paths` are the section's keys."""
        return {
            "directories": self.directories,
            "arm": self.arm,
            "keys": {".".join(path): _plain(value) for path, value in zip(paths, self.keys, strict=True)},
            "seed_ids": self.seed_ids,
            "mean_accuracy": self.mean_accuracy.as_json(),
            "gain_pp": None if self.gain_pp is None else self.gain_pp.as_json(),
            "difference_pp": None if self.difference_pp is None else self.difference_pp.as_json(),
            "base_arm": self.base_arm,
            "identical_to": self.identical_to,
            "targets": [row.as_json() for row in self.targets],
            **self.measured.as_json(),
            "total_bytes": self.total_bytes.as_json(),
            **self.drift,
            "offline_clients_heard": self.offline_clients_heard,
        }


@dataclass(frozen=True)
class SectionMember:
    """A run directory of a section.

    Attributes:
        name: Its name.
        arms: The names of its arms in the configured order, the reference arm first.
        swept: The keys of the sweep that it is a cell of, with their values; empty if it is of none.
        command: The command that began its runs, as a shell takes it; None if it was not recorded.
        order: The values of swept keys in the order given, as far as it was recorded.
        headline: The arm of its report's headline; None for a headline on all arms.
    """

    name: str
    arms: list[str]
    swept: Mapping[str, Any]
    command: str | None
    order: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    headline: str | None = None


@dataclass(frozen=True)
class Section:
    """The rows of directories that are compared with each other, over one stretch of virtual time.

    Attributes:
        name: The sweep, or the directories.
        directories: Names of the directories with finished runs, in order; the first is compared with.
        reference_arms: The reference arm of each directory, without duplicates.
        paths: The keys in which their configurations differ.
        horizon: The stretch of virtual time.
        window: Evaluations over which accuracy is smoothed for times.
        targets: The target accuracies.
        rows: The rows, by directory and then by arm.
        notes: Further limits of the comparison, as clauses without a full stop.
        members: The directories, in the same order, as the page describes them.
        counts_from_event: Whether times from which targets are held, and speed-ups, are counted from the
            first mass event of each run, as every run has one.
    """

    name: str
    directories: list[str]
    reference_arms: list[str]
    paths: list[KeyPath]
    horizon: Horizon
    window: int
    targets: list[Target]
    rows: list[Row]
    notes: list[str]
    members: list[SectionMember]
    counts_from_event: bool = False

    @property
    def headlines(self) -> set[str]:
        """The arms of the headlines of its directories."""
        return {member.headline for member in self.members if member.headline is not None}

    def as_json(self) -> dict[str, object]:
        """The entry in `table.json`."""
        return {
            "name": self.name,
            "directories": self.directories,
            "keys": [".".join(path) for path in self.paths],
            "window": self.window,
            "targets": self.targets,
            "counted_from": "event" if self.counts_from_event else "start",
            "horizon": self.horizon.as_json(),
            "notes": self.notes,
            "rows": [row.as_json(self.paths) for row in self.rows],
        }


def _plain(value: Any) -> Any:
    """A configured value as JSON has it: a date, infinity and NaN, which JSON lacks, as text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    is_plain = value is None or isinstance(value, str | int) or is_finite(value)
    return value if is_plain else str(value)
