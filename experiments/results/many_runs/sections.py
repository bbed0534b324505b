"""One table for the runs of many run directories, compared over one stretch of virtual time.

Directories with the same trace make a section; in each, a row is an arm of a directory. An arm is compared
with the reference arm of its directory (`gain_pp`), and with the same arm of the section's first directory
(`difference_pp`). Runs that several directories share have one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from emulator.errors import InputError, abbreviated, shorten
from experiments.results.many_runs.directories import (
    KnownRuns,
    MeasuredDirectory,
    bytes_by_the_horizon,
    measured_alone,
    refuse_unfinished,
    run_directories,
    steps_by_the_horizon,
)
from experiments.results.reading.differing_keys import Path as KeyPath
from experiments.results.reading.differing_keys import (
    differing_keys,
    differing_values,
    key_values,
    short_names,
)
from experiments.results.reading.json_files import Timing
from experiments.results.reading.recorded import MOST_TARGETS, Target, is_finite, recorded_targets, written
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.reading.swept_values import canonical, given_ranks
from experiments.results.statistics.comparisons import Compared, Comparison, Run, comparisons, start_clauses
from experiments.results.statistics.horizon import Horizon, common_horizon, is_static
from experiments.results.statistics.intervals import FEWEST_SEEDS, Estimate, amount_estimate
from experiments.results.statistics.published import COMPARED, beside_published
from experiments.results.statistics.scales import as_time
from experiments.results.statistics.significance import (
    Difference,
    Pairing,
    corrected,
    paired_difference,
    unpaired_difference,
)
from experiments.results.statistics.targets import after_events, target_table
from experiments.results.statistics.time_to_accuracy import smooth
from experiments.results.statistics.whole_runs import drift_of_run
from experiments.results.tables.accuracy import mean_accuracy
from experiments.results.wording import Words, told

WORLD = ("trace", "devices", "faults")
"""The sections of a configuration that decide the world of a seed, in which methods are compared."""

MOST_TOLD_LETTERS = 40
"""Most letters of a key with its value that tells worlds apart."""


@dataclass(frozen=True, eq=False)
class Row:
    """An arm of one or more directories, which share its runs and those of its reference arm.

    Attributes:
        directories: Names of the directories.
        directory: The first of them.
        comparison: The arm with its figures, on the seeds that the reference arm has too: `mean_accuracy` and
            those of `in_many_runs`, over the section's stretch of virtual time.
        keys: The value of each of the section's keys; None where the arm has no such key.
        targets: The arm with its figures for each of the section's targets.
        drift: For each figure of `published.COMPARED`, ours beside the published value; None where it was
            not measured.
        gain_pp: Difference of the mean accuracy from the reference arm of the same directory, in percentage
            points; None for that arm itself.
        base_arm: The arm of the same name, or the reference arm if the first directory has none of that name.
        difference_pp: Difference from `base_arm` of the first directory; None in that directory itself, and
            if none of its runs of `base_arm` is finished.
        identical_to: Index of the first earlier row with the same seeds and the same results; None without.
    """

    directories: list[str]
    directory: MeasuredDirectory
    comparison: Comparison
    keys: list[Any]
    targets: list[Comparison]
    drift: Mapping[str, Mapping[str, Any] | None]
    gain_pp: Difference | None = None
    base_arm: str = ""
    difference_pp: Difference | None = None
    identical_to: int | None = None

    def __getitem__(self, quantity: str) -> Any:
        return self.comparison[quantity]

    @property
    def arm(self) -> str:
        """The name of the arm."""
        return self.comparison.arm

    @property
    def runs(self) -> list[Run]:
        """The runs of `seed_ids`, in that order, smoothed over the section's window."""
        return self.comparison.measured

    @property
    def seed_ids(self) -> list[int]:
        """The seeds, those that the reference arm has too."""
        return self.comparison.seed_ids

    @property
    def mean_accuracy(self) -> Estimate:
        """Accuracy averaged over the section's stretch of virtual time."""
        found: Estimate = self["mean_accuracy"]
        return found

    @property
    def accuracies(self) -> dict[int, float | None]:
        """The mean accuracy of each seed."""
        return dict(zip(self.seed_ids, self.mean_accuracy.per_seed, strict=True))

    @property
    def total_bytes(self) -> Estimate:
        """Bytes sent up to the horizon, both ways, for training and control."""
        return self.comparison.stated(amount_estimate(list(map(bytes_by_the_horizon, self.runs))))

    @property
    def offline_clients_heard(self) -> bool:
        """Whether clients reported although they were offline, as in `ReportedRun`."""
        return any(run.log.offline_clients_heard for run in self.runs)

    @cached_property
    def results(self) -> tuple[bytes | None, ...]:
        """Equal for rows with the same evaluations and bytes in each seed."""
        return tuple(map(_results, self.runs))

    @cached_property
    def reference_results(self) -> tuple[bytes | None, ...]:
        """The same of the reference arm's runs."""
        return tuple(map(_results, self.comparison.reference))

    def is_identical_to(self, other: Row) -> bool:
        """Whether both have the same seeds with the same results."""
        return self.seed_ids == other.seed_ids and None not in self.results and self.results == other.results

    def as_json(self, paths: Sequence[KeyPath]) -> dict[str, object]:
        """The entry in `table.json`; `paths` are the section's keys."""
        figures = {key: value for key, value in self.comparison.as_json().items() if key != "mean_accuracy"}
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
            **figures,
            "total_bytes": self.total_bytes.as_json(),
            **self.drift,
            "offline_clients_heard": self.offline_clients_heard,
        }


@dataclass(frozen=True)
class Section:
    """The rows of directories that are compared with each other, over one stretch of virtual time.

    Attributes:
        name: The sweep, or the directories.
        members: The directories with finished runs, in order; the first is compared with.
        paths: The keys in which their configurations differ.
        horizon: The stretch of virtual time.
        window: Evaluations over which accuracy is smoothed for times.
        targets: The target accuracies.
        rows: The rows, by directory and then by arm.
        notes: Further limits of the comparison, as clauses without a full stop.
        counts_from_event: Whether times from which targets are held, and speed-ups, are counted from the
            first mass event of each run, as every run has one.
    """

    name: str
    members: Sequence[MeasuredDirectory]
    paths: list[KeyPath]
    horizon: Horizon
    window: int
    targets: list[Target]
    rows: list[Row]
    notes: list[str]
    counts_from_event: bool = False

    @property
    def directories(self) -> list[str]:
        """The names of the directories."""
        return [member.name for member in self.members]

    @property
    def words(self) -> Words:
        """The words of its texts, with the names of directories and arms."""
        names = [self.name, *self.directories, *(arm for member in self.members for arm in member.arms)]
        return Words(self.members[0].objective[1], names)

    @property
    def warnings(self) -> list[str]:
        """The limits of the comparison, as clauses without a full stop."""
        return told(self.words, [*self.notes, *self.horizon.warnings()])

    @property
    def reference_arms(self) -> list[str]:
        """The reference arm of each directory, without duplicates."""
        return list(dict.fromkeys(member.arms[0] for member in self.members))

    @property
    def by_world(self) -> list[tuple[str, list[Row]]]:
        """The rows in each world, after the values of the keys that tell several of them apart.

        Among rows of one world, settings of methods and rounds may differ, those of `WORLD` do not.
        """
        of_world = [index for index, path in enumerate(self.paths) if path[0] in WORLD]
        names = short_names(self.paths)
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows:
            values = ("-" if row.keys[index] is None else written(row.keys[index]) for index in of_world)
            told = (f"{names[index]}={value}" for index, value in zip(of_world, values, strict=True))
            groups.setdefault(tuple(told), []).append(row)
        short = [[shorten(text, MOST_TOLD_LETTERS) for text in told if len(groups) > 1] for told in groups]
        return [(abbreviated(told, ", "), rows) for told, rows in zip(short, groups.values(), strict=True)]

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


def compared(paths: Sequence[Path]) -> Section:
    """The section of these run directories, and of those in the folders among `paths`.

    A folder's run directories are in the order of the keys in which they differ. A run directory that is
    named twice counts once.

    Raises:
        InputError: There are fewer than two run directories, one has unfinished runs, or they cannot be
            compared.
    """
    groups = [run_directories(path) or [RunDirectory(path)] for path in paths]
    for directory in (directory for group in groups for directory in group):
        directory.experiment()  # refuse what is no run directory
    if len({directory.path.resolve() for group in groups for directory in group}) < 2:
        raise InputError(
            f"compare {' '.join(map(str, paths))}: a single run directory; compare needs two or more, or a "
            f"folder of them"
        )
    measured, known = dict[Path, MeasuredDirectory](), KnownRuns()
    for group in groups:
        for directory in group:
            refuse_unfinished(directory)
        for item in in_order([MeasuredDirectory.read(item, str(item.path), known) for item in group]):
            measured.setdefault(item.directory.path.resolve(), item)
    section = compare(list(measured.values()))
    if absent := _without_runs(list(measured.values())):
        section = replace(section, notes=[*section.notes, absent])
    return section


def _without_runs(directories: Sequence[MeasuredDirectory]) -> str:
    """Clauses on the arms without a run in some of the directories; empty if there is no such arm."""
    absent: dict[str, dict[str, None]] = {"not asked for: ": {}, "no run was begun of ": {}}
    left_out, begun_none = absent.values()
    for directory in directories:
        begun, not_asked = {run.arm for run in directory.runs}, directory.directory.left_out()
        for arm in directory.arms:
            if arm not in begun:
                (left_out if arm in not_asked else begun_none).setdefault(arm)
    return "; ".join(f"{clause}{', '.join(arms)}" for clause, arms in absent.items() if arms)


def compare(directories: Sequence[MeasuredDirectory]) -> Section:
    """The section of at least two directories, in the given order.

    Raises:
        InputError: They have other traces or objectives, no stretch of virtual time in common, or the
            reference arm of one has no finished run.
    """
    first = directories[0]
    for other in directories:
        if not other.has_reference:
            raise InputError(f"{other.name}: its reference arm {other.arms[0]!r} has no finished run")
        if not other.has_world_of(first):
            raise InputError(
                f"{first.name} and {other.name} have other {_other_world(first, other)}: a "
                f"difference would not be due to the method; driftscale report of a folder gives each a "
                f"table, and run --sweep compares values of a key of the trace"
            )
    horizon = _horizon(directories)
    if horizon.start_s >= horizon.horizon_s:
        raise InputError(f"{_no_overlap(directories)}: nothing can be compared")
    return _section(f"{len(directories)} run directories", directories, horizon)


def sections(directories: Sequence[MeasuredDirectory]) -> list[Section]:
    """The sections of these directories: those of the same sweep, or of none, of one world make one.

    They have the same trace and the same objective.

    Directories whose reference arm has no finished run are left out. Within a section, directories are
    sorted by the keys in which they differ. If they have no stretch of virtual time in common, each has a
    section of its own, with a note.
    """
    groups: list[list[MeasuredDirectory]] = []
    for directory in directories:
        if directory.has_reference:
            for group in groups:
                if group[0].cell.of == directory.cell.of and directory.has_world_of(group[0]):
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
    compared = [_compared(directory, window, horizon) for directory in directories]
    counts_from_event = all(after_events(one) is not None for one in compared)
    rows = _without_shared(
        row
        for directory, one in zip(directories, compared, strict=True)
        for row in _rows(directory, one, paths, targets, counts_from_event)
    )
    bases = {row.arm: row for row in rows if first.name in row.directories}
    base_arms = [row.arm if row.arm in first.arms else first.arms[0] for row in rows]
    gains = corrected([_gain(row) for row in rows])
    differences = corrected(
        [_difference(row, bases.get(base)) for row, base in zip(rows, base_arms, strict=True)]
    )
    limits = [*notes, *_events(rows), *start_clauses(row.comparison for row in rows)]
    if any(directory.experiment["report"]["window"] != window for directory in directories):
        limits.append(f"accuracy is smoothed over {window} evaluations, as in {first.name}")
    if left_out:
        limits.append(f"{left_out} further targets are left out")
    found = zip(rows, gains, base_arms, differences, _identical(rows), strict=True)
    return Section(
        name=name,
        members=directories,
        paths=paths,
        horizon=replace(horizon, steps=_steps(rows, len(directories))),
        window=window,
        targets=targets,
        rows=[
            replace(row, gain_pp=gain, base_arm=base, difference_pp=difference, identical_to=earlier)
            for row, gain, base, difference, earlier in found
        ],
        notes=limits,
        counts_from_event=counts_from_event,
    )


def _compared(directory: MeasuredDirectory, window: int, horizon: Horizon) -> Compared:
    """The arms of the directory, smoothed over this window, and compared up to the horizon of the section."""
    measured = []
    for run in directory.runs:
        curve = replace(run.curve, smoothed=smooth(run.curve.accuracy, window), window=window)
        measured.append(replace(run, curve=curve, horizon=horizon))
    return Compared(comparisons(measured, directory.arms[0], directory.configured), horizon)


def _rows(
    directory: MeasuredDirectory,
    compared: Compared,
    paths: Sequence[KeyPath],
    targets: Sequence[Target],
    counts_from_event: bool,
) -> Iterator[Row]:
    """A row for each arm of the directory that shares a seed with the reference arm."""
    keys, report = key_values(directory.experiment, paths), directory.experiment["report"]
    tables = [target_table(target, compared, may_count_from_event=counts_from_event) for target in targets]
    for position, arm in enumerate(compared.arms):
        drift = {
            figure: beside_published(
                [drift_of_run(run.log)[figure] for run in arm.measured], figure, arm.arm, report
            )
            for figure in COMPARED
        }
        of_targets = [table.rows[position] for table in tables]
        yield Row([directory.name], directory, measured_alone(arm), keys[arm.arm], of_targets, drift)


def _without_shared(rows: Iterator[Row]) -> list[Row]:
    """The rows, those with the same runs of the arm and of its reference arm, and the same `drift`, as one.

    That has the names of all their directories.
    """
    merged: dict[tuple[object, ...], Row] = {}
    for row in rows:
        identities, reference_arm = row.directory.identities, row.directory.arms[0]
        results = (row.results, row.reference_results)
        key = (identities[row.arm], identities[reference_arm], *row.seed_ids, results, repr(row.drift))
        if key in merged:
            merged[key].directories.extend(row.directories)
        else:
            merged[key] = row
    return list(merged.values())


def _results(run: Run) -> bytes | None:
    """Equal for two runs with the same evaluations and bytes up to the horizon; None without evaluations."""
    seen = run.curve.times_s <= run.horizon.horizon_s
    if not seen.any():
        return None
    sent_bytes = np.float64(bytes_by_the_horizon(run))
    parts = (run.curve.times_s[seen], run.curve.accuracy[seen], sent_bytes)
    return b"".join(part.tobytes() for part in parts)


def _identical(rows: Sequence[Row]) -> list[int | None]:
    """For each row, the index of the first earlier one with the same seeds and the same results."""
    first: dict[tuple[object, ...], int] = {}
    found: list[int | None] = []
    for position, row in enumerate(rows):
        key = (position,) if None in row.results else (*row.seed_ids, row.results)
        index = first.setdefault(key, position)
        found.append(None if index == position else index)
    return found


def _gain(row: Row) -> Difference | None:
    """The difference from the reference arm of the same directory; None for that arm itself."""
    if row.comparison.is_reference:
        return None
    is_same = None not in row.results and row.results == row.reference_results
    difference = paired_difference(
        row.mean_accuracy.per_seed,
        list(map(mean_accuracy, row.comparison.reference)),
        scale=100.0,
        pairing="identical" if is_same else "seed",
    )
    found = replace(difference, seed_ids=tuple(row.seed_ids))
    return row.comparison.stated(found, is_beside_reference=True)


def _difference(row: Row, base: Row | None) -> Difference | None:
    """The difference from a row of the first directory.

    None for the rows of that directory, and if it has no finished run of that arm.
    """
    if base is None or base.directory.name in row.directories:
        return None
    return base.comparison.stated(row.comparison.stated(_difference_from(row, base)))


def _difference_from(row: Row, base: Row) -> Difference:
    """The difference of two rows, paired as their runs allow."""
    ours, others = row.accuracies, base.accuracies
    shared = [seed for seed in ours if seed in others]
    pairing: Pairing = "identical" if row.is_identical_to(base) else _pairing(row, base, shared)
    if pairing == "none" or len(shared) < min(FEWEST_SEEDS, len(ours), len(others)):
        return unpaired_difference(list(ours.values()), list(others.values()), scale=100.0)
    pairs = [ours[seed] for seed in shared], [others[seed] for seed in shared]
    return replace(paired_difference(*pairs, scale=100.0, pairing=pairing), seed_ids=tuple(shared))


def _pairing(row: Row, base: Row, seeds: Sequence[int]) -> Pairing:
    """How the runs of these seeds can be compared.

    They are paired if trace, fleet and availability of every seed are the same, by the hashes in the
    manifests. If the traces differ, they are paired by the number of the seed if keys of the trace were swept
    and the settings of devices and faults are the same.
    """
    one, other = row.directory, base.directory
    hashes = [(one.hashes(seed), other.hashes(seed)) for seed in seeds]
    if not seeds or any(mine is None or theirs is None for mine, theirs in hashes):
        return "none"
    if all(mine == theirs for mine, theirs in hashes):
        return "seed"
    is_swept = bool(one.swept_trace_keys) and one.trace == other.trace
    is_alike = all(one.experiment.get(key) == other.experiment.get(key) for key in ("devices", "faults"))
    has_other_traces = any(mine and theirs and mine[0] != theirs[0] for mine, theirs in hashes)
    return "seed, other trace" if is_swept and is_alike and has_other_traces else "none"


def _steps(rows: Sequence[Row], num_directories: int) -> dict[str, float]:
    """Data steps reached by the horizon, by row: the median over its runs."""
    return {
        row.arm if num_directories == 1 else f"{row.directories[0]}: {row.arm}": float(
            np.median(list(map(steps_by_the_horizon, row.runs)))
        )
        for row in rows
    }


def _events(rows: Sequence[Row]) -> list[str]:
    """A clause if the first mass event is before the horizon in some runs only."""
    runs = [run for row in rows for run in row.runs]
    had = sum(run.event_s is not None for run in runs)
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
        [ReportedRun(arm, run.seed, {}, [], Timing(wall_s=0.0), run.log.until) for arm, run in runs],
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
        for key, values in directory.cell.order.items():
            orders.setdefault(key, []).append(values)
    ranks = {key: given_ranks(recorded) for key, recorded in orders.items()}

    def position(directory: MeasuredDirectory) -> list[tuple[int, float, str]]:
        given = [
            (tuple(key.split(".")), ranks[key].get(canonical(value)))
            for key, value in sorted(directory.cell.keys.items(), key=lambda item: -len(item[0].split(".")))
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
    return group[0].cell.of or abbreviated([directory.name for directory in group], ", ")


def _no_overlap(group: Sequence[MeasuredDirectory]) -> str:
    """A clause on two directories, or on one, without a stretch of virtual time in common."""
    horizons = {directory.name: _horizon([directory]) for directory in group}
    latest = max(horizons, key=lambda name: horizons[name].start_s)
    earliest = min(horizons, key=lambda name: horizons[name].horizon_s)
    start, end = as_time(horizons[latest].start_s), as_time(horizons[earliest].horizon_s)
    if latest == earliest:
        return f"the runs of {latest} have no stretch of time in common: from {start} on, up to {end}"
    return (
        f"horizons do not overlap: {latest} is evaluated from {start} of virtual time on, and {earliest} is "
        f"compared up to {end}"
    )


def _other_world(one: MeasuredDirectory, other: MeasuredDirectory) -> str:
    if one.objective != other.objective:
        return f"objectives ({' and '.join(': '.join(each.objective) for each in (one, other))})"
    traces = [directory.experiment.get("trace", {}) for directory in (one, other)]
    differing = list(differing_values(traces[0], traces[1], ("trace",)))
    return f"traces ({abbreviated(differing) or 'by their hashes'})"


def _plain(value: Any) -> Any:
    """A configured value as JSON has it: a date, infinity and NaN, which JSON lacks, as text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    is_plain = value is None or isinstance(value, str | int) or is_finite(value)
    return value if is_plain else str(value)
