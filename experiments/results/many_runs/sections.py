"""One table for the runs of many run directories, compared over one stretch of virtual time.

Directories with the same trace make a section; in each, a row is an arm of a directory. An arm is compared
with the reference arm of its directory (`gain_pp`), and with the same arm of the section's first directory
(`difference_pp`). Runs that several directories share have one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from emulator.errors import InputError, abbreviated
from experiments.results.many_runs.measured_directory import MeasuredDirectory, PlayedRun
from experiments.results.many_runs.rows import Row, Section, SectionMember
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.differing_keys import Path as KeyPath
from experiments.results.reading.differing_keys import differing_keys, differing_values, key_values
from experiments.results.reading.recorded import MOST_TARGETS, Target, recorded_targets
from experiments.results.reading.swept_values import canonical, given_ranks
from experiments.results.statistics.comparisons import Compared, Comparison, comparisons, start_clauses
from experiments.results.statistics.horizon import Horizon, common_horizon, is_static
from experiments.results.statistics.intervals import FEWEST_SEEDS, amount_estimate, share_estimate
from experiments.results.statistics.published import COMPARED, beside_published
from experiments.results.statistics.scales import time_scale
from experiments.results.statistics.significance import (
    Difference,
    Pairing,
    corrected,
    paired_difference,
    unpaired_difference,
)
from experiments.results.tables import all_quantities, all_tables
from experiments.results.tables.table import Row as TableRow
from experiments.results.tables.table import stated
from experiments.results.tables.targets import TargetTable, after_events, target_table


def compare(directories: Sequence[MeasuredDirectory]) -> Section:
    """The section of at least two directories, in the given order.

    Raises:
        InputError: They have other traces, no stretch of virtual time in common, or the reference arm of one
            has no finished run.
    """
    first = directories[0]
    for other in directories:
        if not other.has_reference:
            raise InputError(f"{other.name}: its reference arm {other.arms[0]!r} has no finished run")
        if not other.has_trace_of(first):
            raise InputError(
                f"{first.name} and {other.name} have other traces ({_other_trace(first, other)}): a "
                f"difference would not be due to the method; driftscale report of a folder gives each a "
                f"table, and run --sweep compares values of a key of the trace"
            )
    horizon = _horizon(directories)
    if horizon.start_s >= horizon.horizon_s:
        raise InputError(f"{_no_overlap(directories)}: nothing can be compared")
    return _section(f"{len(directories)} run directories", directories, horizon)


def sections(directories: Sequence[MeasuredDirectory]) -> list[Section]:
    """The sections of these directories: those of the same sweep, or of none, with the same trace make one.

    Directories whose reference arm has no finished run are left out. Within a section, directories are
    sorted by the keys in which they differ. If they have no stretch of virtual time in common, each has a
    section of its own, with a note.
    """
    groups: list[list[MeasuredDirectory]] = []
    for directory in directories:
        if directory.has_reference:
            for group in groups:
                if group[0].sweep == directory.sweep and directory.has_trace_of(group[0]):
                    group.append(directory)
                    break
            else:
                groups.append([directory])
    return [section for group in groups for section in _sections_of(in_order(group))]


def _sections_of(group: Sequence[MeasuredDirectory]) -> Iterator[Section]:
    horizon = _horizon(group)
    if len(group) == 1 or horizon.start_s < horizon.horizon_s:
        yield _section(_name(group), group, horizon)
        return
    note = f"{_no_overlap(group)}: each has a table of its own, without differences between them"
    for directory in group:
        yield _section(directory.name, [directory], _horizon([directory]), note)


def _section(name: str, directories: Sequence[MeasuredDirectory], horizon: Horizon, *notes: str) -> Section:
    first = directories[0]
    window = int(first.experiment["report"]["window"])
    differing = differing_keys([directory.experiment for directory in directories])
    paths = list(dict.fromkeys([*differing, *first.swept_paths]))
    targets, left_out = _targets(directories)
    smoothed = [_smoothed(directory, window) for directory in directories]
    compared = [
        _compared(directory, runs, horizon) for directory, runs in zip(directories, smoothed, strict=True)
    ]
    counts_from_event = all(one.once(after_events) is not None for one in compared)
    entries = _without_shared(
        entry
        for directory, runs, one in zip(directories, smoothed, compared, strict=True)
        for entry in _entries(
            directory,
            runs,
            one,
            paths=paths,
            targets=[target_table(target, one, may_count_from_event=counts_from_event) for target in targets],
        )
    )
    bases = {entry.arm: entry for entry in entries if first.name in entry.directories}
    gains = corrected([_gain(entry) for entry in entries])
    differences = corrected([_difference(entry, bases.get(_base_arm(entry, first))) for entry in entries])
    limits = [*notes, *_events(entries), *start_clauses(entry.compared for entry in entries)]
    if any(directory.experiment["report"]["window"] != window for directory in directories):
        limits.append(f"accuracy is smoothed over {window} evaluations, as in {first.name}")
    if left_out:
        limits.append(f"{left_out} further targets are left out")
    return Section(
        name=name,
        directories=[directory.name for directory in directories],
        reference_arms=list(dict.fromkeys(directory.arms[0] for directory in directories)),
        paths=paths,
        horizon=replace(horizon, steps=_steps(entries, len(directories))),
        window=window,
        targets=targets,
        rows=[
            entry.row(gain, difference, _base_arm(entry, first), earlier)
            for entry, gain, difference, earlier in zip(
                entries, gains, differences, _identical(entries), strict=True
            )
        ],
        notes=limits,
        counts_from_event=counts_from_event,
        members=[
            SectionMember(
                directory.name,
                directory.arms,
                directory.swept,
                directory.command,
                directory.order,
                directory.headline,
            )
            for directory in directories
        ],
    )


@dataclass(frozen=True)
class _Entry:
    """A row before it is compared with others: an arm of a directory, on the seeds of its reference arm."""

    directories: list[str]
    directory: MeasuredDirectory
    arm: str
    keys: list[Any]
    runs: list[PlayedRun]
    reference: list[PlayedRun]
    targets: list[TableRow]
    compared: Comparison
    horizon: Horizon

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    def mean_accuracies(self, seeds: Sequence[int]) -> list[float | None]:
        """The mean accuracy of the runs of these seeds, in their order."""
        runs = {run.seed: run for run in self.runs}
        return _mean_accuracies([runs[seed] for seed in seeds], self.horizon)

    @cached_property
    def results(self) -> tuple[bytes | None, ...]:
        return _results(self.runs, self.horizon)

    @cached_property
    def reference_results(self) -> tuple[bytes | None, ...]:
        return _results(self.reference, self.horizon)

    @cached_property
    def drift(self) -> dict[str, Mapping[str, Any] | None]:
        """The accuracies with and without drift cells, beside published ones."""
        report = self.directory.experiment["report"]
        return {
            figure: beside_published([run.drift[figure] for run in self.runs], figure, self.arm, report)
            for figure in COMPARED
        }

    def is_identical_to(self, other: _Entry) -> bool:
        """Whether both have the same seeds with the same results."""
        return self.seeds == other.seeds and None not in self.results and self.results == other.results

    def shared_key(self) -> tuple[object, ...]:
        """Equal for entries with the same runs of the arm and of its reference arm, and the same `drift`."""
        identities, reference_arm = self.directory.identities, self.directory.arms[0]
        results = (self.results, self.reference_results)
        return identities[self.arm], identities[reference_arm], *self.seeds, results, repr(self.drift)

    def row(
        self,
        gain: Difference | None,
        difference: Difference | None,
        base_arm: str,
        identical_to: int | None,
    ) -> Row:
        return Row(
            directories=self.directories,
            arm=self.arm,
            keys=self.keys,
            seed_ids=self.seeds,
            mean_accuracy=self.compared.stated(share_estimate(self.mean_accuracies(self.seeds))),
            gain_pp=gain,
            difference_pp=difference,
            base_arm=base_arm,
            identical_to=identical_to,
            targets=self.targets,
            measured=_measured(self.compared, self.horizon),
            total_bytes=self.compared.stated(
                amount_estimate([run.bytes_by(self.horizon.horizon_s) for run in self.runs])
            ),
            drift=self.drift,
            offline_clients_heard=any(run.offline_clients_heard for run in self.runs),
            runs=self.runs,
        )


def _smoothed(directory: MeasuredDirectory, window: int) -> dict[tuple[str, int], PlayedRun]:
    """The runs of the directory by arm and seed, smoothed over the same window as those of the others."""
    return {(run.arm, run.seed): run.smoothed(window) for run in directory.runs}


def _compared(
    directory: MeasuredDirectory, runs: Mapping[tuple[str, int], PlayedRun], horizon: Horizon
) -> Compared:
    """The arms of the directory, compared up to the horizon of the section."""
    measured = [run.measured(horizon) for run in runs.values()]
    configured = configured_arms(directory.experiment)
    return Compared(comparisons(measured, directory.arms[0], configured), horizon)


def _entries(
    directory: MeasuredDirectory,
    runs: Mapping[tuple[str, int], PlayedRun],
    compared: Compared,
    *,
    paths: Sequence[KeyPath],
    targets: Sequence[TargetTable],
) -> Iterator[_Entry]:
    """An entry for each arm of the directory that shares a seed with the reference arm."""
    keys = key_values(directory.experiment, paths)
    for position, arm in enumerate(compared.arms):
        yield _Entry(
            directories=[directory.name],
            directory=directory,
            arm=arm.arm,
            keys=keys[arm.arm],
            runs=[runs[arm.arm, seed] for seed in arm.seed_ids],
            reference=[runs[directory.arms[0], seed] for seed in arm.seed_ids],
            targets=[table.rows[position] for table in targets],
            compared=arm,
            horizon=compared.horizon,
        )


def _without_shared(entries: Iterable[_Entry]) -> list[_Entry]:
    """The entries, those with the same runs as one, which has the names of all their directories."""
    merged: dict[tuple[object, ...], _Entry] = {}
    for entry in entries:
        key = entry.shared_key()
        if key in merged:
            merged[key].directories.extend(entry.directories)
        else:
            merged[key] = entry
    return list(merged.values())


def _base_arm(entry: _Entry, first: MeasuredDirectory) -> str:
    """The arm of the first directory that an entry is compared with."""
    return entry.arm if entry.arm in first.arms else first.arms[0]


def _identical(entries: Sequence[_Entry]) -> list[int | None]:
    """For each entry, the index of the first earlier one with the same seeds and the same results."""
    first: dict[tuple[object, ...], int] = {}
    found: list[int | None] = []
    for position, entry in enumerate(entries):
        key = (position,) if None in entry.results else (*entry.seeds, entry.results)
        index = first.setdefault(key, position)
        found.append(None if index == position else index)
    return found


def _gain(entry: _Entry) -> Difference | None:
    """The difference from the reference arm of the same directory; None for that arm itself."""
    if entry.arm == entry.directory.arms[0]:
        return None
    is_same = None not in entry.results and entry.results == entry.reference_results
    difference = paired_difference(
        entry.mean_accuracies(entry.seeds),
        _mean_accuracies(entry.reference, entry.horizon),
        scale=100.0,
        pairing="identical" if is_same else "seed",
    )
    found = replace(difference, seed_ids=tuple(entry.seeds))
    return entry.compared.stated(found, is_beside_reference=True)


def _difference(entry: _Entry, base: _Entry | None) -> Difference | None:
    """The difference from an entry of the first directory.

    None for the entries of that directory, and if it has no finished run of that arm.
    """
    if base is None or base.directory.name in entry.directories:
        return None
    found = _difference_from(entry, base)
    return base.compared.stated(entry.compared.stated(found))


def _difference_from(entry: _Entry, base: _Entry) -> Difference:
    """The difference of two entries, paired as their runs allow."""
    shared = [seed for seed in entry.seeds if seed in base.seeds]
    pairing: Pairing = "identical" if entry.is_identical_to(base) else _pairing(entry, base, shared)
    if pairing == "none" or len(shared) < min(FEWEST_SEEDS, len(entry.seeds), len(base.seeds)):
        return unpaired_difference(
            entry.mean_accuracies(entry.seeds), base.mean_accuracies(base.seeds), scale=100.0
        )
    difference = paired_difference(
        entry.mean_accuracies(shared), base.mean_accuracies(shared), scale=100.0, pairing=pairing
    )
    return replace(difference, seed_ids=tuple(shared))


def _pairing(entry: _Entry, base: _Entry, seeds: Sequence[int]) -> Pairing:
    """How the runs of these seeds can be compared.

    They are paired if trace, fleet and availability of every seed are the same, by the hashes in the
    manifests. If the traces differ, they are paired by the number of the seed if keys of the trace were swept
    and the settings of devices and faults are the same.
    """
    one, other = entry.directory, base.directory
    hashes = [(one.hashes(seed), other.hashes(seed)) for seed in seeds]
    if not seeds or any(mine is None or theirs is None for mine, theirs in hashes):
        return "none"
    if all(mine == theirs for mine, theirs in hashes):
        return "seed"
    is_swept = bool(one.swept_trace_keys) and one.trace == other.trace
    is_alike = all(one.experiment.get(key) == other.experiment.get(key) for key in ("devices", "faults"))
    has_other_traces = any(mine and theirs and mine[0] != theirs[0] for mine, theirs in hashes)
    return "seed, other trace" if is_swept and is_alike and has_other_traces else "none"


def _mean_accuracies(runs: Sequence[PlayedRun], horizon: Horizon) -> list[float | None]:
    return [run.curve.mean_accuracy(horizon.start_s, horizon.horizon_s) for run in runs]


def _measured(arm: Comparison, horizon: Horizon) -> TableRow:
    """The quantities of an arm that `table.json` has, each difference by itself."""
    alone, quantities = Compared([arm], horizon), all_quantities()
    keys = [key for table in all_tables() for key in table.in_many_runs.keys]
    return TableRow(arm.arm, {key: stated(quantities[key](arm, alone), arm) for key in keys})


def _results(runs: Sequence[PlayedRun], horizon: Horizon) -> tuple[bytes | None, ...]:
    return tuple(run.results_by(horizon.horizon_s) for run in runs)


def _steps(entries: Sequence[_Entry], num_directories: int) -> dict[str, float]:
    """Data steps reached by the horizon, by row: the median over its runs."""
    return {
        entry.arm if num_directories == 1 else f"{entry.directories[0]}: {entry.arm}": float(
            np.median([run.steps_by(entry.horizon.horizon_s) for run in entry.runs])
        )
        for entry in entries
    }


def _events(entries: Sequence[_Entry]) -> list[str]:
    """A clause if the first mass event is before the horizon in some runs only."""
    runs = [run for entry in entries for run in entry.runs]
    had = sum(run.event_s is not None and run.event_s < entries[0].horizon.horizon_s for run in runs)
    if had in (0, len(runs)):
        return []
    return [
        f"the first mass event is before the horizon in {had} of {len(runs)} runs: they were compared on "
        f"different events, and neither gains nor differences are due to the settings alone"
    ]


def _targets(directories: Sequence[MeasuredDirectory]) -> tuple[list[Target], int]:
    """The targets of all directories, at most `MOST_TARGETS`, and how many are left out."""
    named = [
        target for directory in directories for target in recorded_targets(directory.experiment["report"])
    ]
    targets = list(dict.fromkeys(named))
    return targets[:MOST_TARGETS], len(targets[MOST_TARGETS:])


def _horizon(directories: Sequence[MeasuredDirectory]) -> Horizon:
    """The stretch of virtual time in which all finished runs of the directories can be compared.

    It ends at the earliest `report.horizon_s` that is set, or with the run that ends first.
    """
    runs = [
        (f"{directory.name}: {run.arm}" if len(directories) > 1 else run.arm, run)
        for directory in directories
        for run in directory.runs
    ]
    asked_s = [directory.experiment["report"].get("horizon_s") for directory in directories]
    return common_horizon(
        [run.without_records(arm) for arm, run in runs],
        [run.curve for _, run in runs],
        asked_s=min((time_s for time_s in asked_s if time_s is not None), default=None),
        is_static=all(is_static(directory.experiment) for directory in directories),
    )


def in_order(group: Sequence[MeasuredDirectory]) -> list[MeasuredDirectory]:
    """The directories sorted by the values of the keys in which they differ.

    Values of swept keys are in the order given, as far as it was recorded (`given_ranks`). Others follow:
    numbers, ascending, then values of other types by their text.
    """
    paths = differing_keys([directory.experiment for directory in group])
    orders: dict[str, list[Sequence[Any]]] = {}
    for directory in group:
        for key, values in directory.order.items():
            orders.setdefault(key, []).append(values)
    ranks = {key: given_ranks(recorded) for key, recorded in orders.items()}

    def position(directory: MeasuredDirectory) -> list[tuple[int, float, str]]:
        given = [
            (tuple(key.split(".")), ranks[key].get(canonical(value)))
            for key, value in sorted(directory.swept.items(), key=lambda item: -len(item[0].split(".")))
            if key in ranks
        ]
        by_arm = key_values(directory.experiment, paths)
        return [
            _place(value, _rank_of(("arm", arm, *path[1:]) if path[0] == "arm" else path, given))
            for arm in directory.arms
            for path, value in zip(paths, by_arm[arm], strict=True)
        ]

    return sorted(group, key=position)


def _rank_of(path: KeyPath, given: Sequence[tuple[KeyPath, int | None]]) -> int | None:
    """The rank of the first `given` (swept key, rank) that the path is, or lies in; None if unknown."""
    return next((rank for key, rank in given if path[: len(key)] == key), None)


def _place(value: Any, rank: int | None) -> tuple[int, float, str]:
    """The place of a value among others: those with a rank, then numbers, then others by text."""
    if rank is not None:
        return 0, rank, ""
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def _name(group: Sequence[MeasuredDirectory]) -> str:
    """The name of the sweep, or the first names of the directories."""
    return group[0].sweep or abbreviated([directory.name for directory in group], ", ")


def _no_overlap(group: Sequence[MeasuredDirectory]) -> str:
    """A clause on two directories, or on one, without a stretch of virtual time in common."""
    horizons = {directory.name: _horizon([directory]) for directory in group}
    latest = max(horizons, key=lambda name: horizons[name].start_s)
    earliest = min(horizons, key=lambda name: horizons[name].horizon_s)
    start, end = _time(horizons[latest].start_s), _time(horizons[earliest].horizon_s)
    if latest == earliest:
        return f"the runs of {latest} have no stretch of time in common: from {start} on, up to {end}"
    return (
        f"horizons do not overlap: {latest} is evaluated from {start} of virtual time on, and {earliest} is "
        f"compared up to {end}"
    )


def _other_trace(one: MeasuredDirectory, other: MeasuredDirectory) -> str:
    traces = [directory.experiment.get("trace", {}) for directory in (one, other)]
    return abbreviated(list(differing_values(traces[0], traces[1], ("trace",)))) or "by their hashes"


def _time(time_s: float) -> str:
    return time_scale(time_s)(time_s)
