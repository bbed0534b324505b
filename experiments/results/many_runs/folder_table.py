"""`table.json`: one table over the experiments of a folder of run directories.

    version, name
    experiments    a list of {name, report, finished, failed, planned, steps, scored_steps, marked_seeds}
        name                the name in the configuration; if two experiments share a name, every `name` is
                            that of the folder
        report              its report.html, relative to the table; null without one, or without a finished
                            run of the first arm: a page that is there then was not made of these runs
        finished, failed, planned
                            numbers of runs
        until               numbers of those that --until stopped, by where ("100 of 200 rounds"); no entry
                            without one
        steps, scored_steps the data steps of its trace, and the number of those with an evaluation; null if
                            unknown
        marked_seeds        a list of {seed, arms, distance}: seeds on which every arm is off by its accuracy
                            omitting drift (marked_seeds.py)
    arms           names of arms, in the order of the first experiment that has them
    figures.<figure>.<arm>.<experiment>
                   {mean, std, seeds} over seeds; no entry unless it was measured in every seed
    agreement.<figure>.<experiment>
                   {methods, inside, outside, rank_correlation}, see `published.agreement`; no entry without
                   published values
    sections       a list of comparisons over one stretch of virtual time each, as `many_runs.Section` has
                   them: name, directories, keys, window, targets, horizon, notes, rows

The figures are `accuracy_omitting_drift` and `accuracy_including_drift`, in percent, with `published`
{mean, std}, `difference` and `outside` (null if no value is published), and `unmarked` {mean, std, seeds},
the same without the marked seeds (null if there are none); `models_sent`, a count of whole models, and
`relative_models_sent`, relative to the reference arm; they are read from the summaries. The figures of
sections are computed from the logs. Version 2 added `failed`, `steps` and `scored_steps`, version 3
`sections`, version 4 `marked_seeds`, `agreement`, `outside` and `unmarked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from emulator.storage.bounded import read_json
from emulator.storage.own_files import path_below
from experiments.results.many_runs.measured_directory import MeasuredDirectory, RunReader
from experiments.results.many_runs.rows import Section
from experiments.results.many_runs.sections import sections
from experiments.results.reading.json_files import Finished, JsonTable
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.marked_seeds import marked_by_drift
from experiments.results.statistics.published import COMPARED, agreement, beside_published, spread
from experiments.results.tables.summary import SUMMARY_VERSION

TABLE_VERSION = 5
COUNTED = ("models_sent", "relative_models_sent")

Table = dict[str, Any]


def run_directories(folder: Path, into: Path | None = None) -> list[RunDirectory]:
    """The run directories directly under `folder`, sorted by name; their results are below `into`, if given.

    Empty if `folder` does not exist or is a run directory itself. Raises ForeignFileError for a link to a run
    directory.
    """
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    if RunDirectory(folder).experiment_path.is_file():
        return []
    names = [path.name for path in paths if RunDirectory(path).experiment_path.is_file()]
    return [RunDirectory(path_below(folder, name, is_folder=True), into and into / name) for name in names]


def recorded_finished(directory: RunDirectory) -> Finished:
    """`finished` of the summary of a run directory; without a summary, no run has finished."""
    path = directory.summary_path
    return _RecordedSummary.read(path).finished if path.is_file() else NOTHING_FINISHED


def build_table(
    name: str,
    directories: Sequence[RunDirectory],
    finished_in: Callable[[RunDirectory], Finished] = recorded_finished,
) -> Table:
    """The table over these run directories, in the order of their folders' names.

    A run directory without a finished run has a column, but no figures. `write_table` adds the sections.

    Args:
        name: The heading of the table.
        directories: The run directories.
        finished_in: Returns the figures of the finished runs of a run directory (`Summary.finished`).
    """
    experiments = []
    arms: dict[str, None] = {}
    figures: dict[str, dict[str, dict[str, Any]]] = {figure: {} for figure in (*COMPARED, *COUNTED)}
    ordered = sorted(directories, key=lambda item: item.path.name)
    columns = column_names(ordered)
    for directory, column in zip(ordered, columns, strict=True):
        report = directory.experiment()["report"]
        names = directory.arms()
        arms.update(dict.fromkeys(names))
        finished = finished_in(directory)
        marked = marked_by_drift(finished)
        apart = {entry.seed for entry in marked}
        experiments.append(
            {
                "name": column,
                "report": f"{directory.path.name}/{directory.report_path.name}"
                if directory.report_path.is_file()
                and any(directory.is_reported(names[0], seed) for seed in directory.seeds())
                else None,
                **how_many_runs(directory),
                "steps": finished.steps,
                "scored_steps": finished.scored_steps,
                "marked_seeds": [entry.as_json() for entry in marked],
            }
        )
        for arm in [arm for arm in names if arm in finished.arms]:
            measured = finished.arms[arm]
            cells = {
                **{
                    figure: beside_published(
                        measured[figure].per_seed, figure, arm, report, apart, measured.seed_ids
                    )
                    for figure in COMPARED
                },
                **{figure: spread(measured[figure].per_seed) for figure in COUNTED},
            }
            for figure, cell in cells.items():
                if cell is not None:
                    figures[figure].setdefault(arm, {})[column] = cell
    return {
        "version": TABLE_VERSION,
        "name": name,
        "experiments": experiments,
        "arms": list(arms),
        "figures": figures,
        "agreement": {
            figure: {
                name: found
                for name in columns
                if (found := agreement(_by_arm(figures[figure], name))) is not None
            }
            for figure in COMPARED
        },
    }


def _by_arm(cells: Mapping[str, Mapping[str, Any]], column: str) -> dict[str, Any]:
    """The cells of one experiment, by arm."""
    return {arm: by_experiment[column] for arm, by_experiment in cells.items() if column in by_experiment}


def how_many_runs(directory: RunDirectory) -> dict[str, Any]:
    """How many configured runs are `finished`, have `failed`, and are `planned` in all, by these names.

    If there are any, `until` has the numbers of those that --until stopped, by where.
    """
    seeds = directory.seeds()
    pairs = [(arm, seed) for arm in directory.arms() for seed in seeds]
    done = [directory.is_done(arm, seed) for arm, seed in pairs]
    failed = [directory.failure(arm, seed) is not None for arm, seed in pairs]
    until = Counter(str(stopped) for pair in pairs if (stopped := directory.until(*pair)) is not None)
    return {
        **({"until": dict(until)} if until else {}),
        "finished": sum(done),
        "failed": sum(has_failed and not is_done for is_done, has_failed in zip(done, failed, strict=True)),
        "planned": len(pairs),
    }


def run_counts(column: Mapping[str, Any]) -> str:
    """The numbers of runs that are finished, failed and not yet played, as text without zeros.

    >>> run_counts({"finished": 1, "failed": 4, "planned": 45})
    '1 finished, 4 failed, 40 not run'
    >>> run_counts({"finished": 1, "failed": 0, "planned": 4, "until": {"100 of 200 rounds": 3}})
    '1 finished, 3 until 100 of 200 rounds'
    """
    until = column.get("until", {})
    numbers = {
        "finished": column["finished"],
        **{f"until {rounds}": number for rounds, number in until.items()},
        "failed": column["failed"],
        "not run": column["planned"] - column["finished"] - column["failed"] - sum(until.values()),
    }
    return ", ".join(f"{number} {state}" for state, number in numbers.items() if number)


def recorded_name(folder: Path) -> str:
    """The name of the table in `folder`; the name of the folder if it has no readable table.

    Raises ForeignFileError if `table.json` is a link or of another kind.
    """
    try:
        return str(read_json(path_below(folder, "table.json"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.resolve().name


def build_sections(directories: Sequence[RunDirectory]) -> list[Section]:
    """The sections of these run directories, from the logs of their finished runs.

    Raises InputError if a file of a finished run is damaged.
    """
    ordered, reader = sorted(directories, key=lambda item: item.path.name), RunReader()
    return sections(
        [
            MeasuredDirectory.read(directory, name, reader)
            for directory, name in zip(ordered, column_names(ordered), strict=True)
        ]
    )


def column_names(directories: Sequence[RunDirectory]) -> list[str]:
    """The name of each column: that of its configuration.

    If two configurations share a name, the names are those of the folders.
    """
    names = [str(directory.experiment()["name"]) for directory in directories]
    return names if len(set(names)) == len(names) else [directory.path.name for directory in directories]


def _refuse_other_version(version: int) -> int:
    if version != SUMMARY_VERSION:
        raise ValueError(
            f"is a summary of version {version}, not {SUMMARY_VERSION}; driftscale report writes it anew"
        )
    return version


NOTHING_FINISHED = Finished(steps=None, scored_steps=None, arms={})


class _RecordedSummary(JsonTable, extra="ignore"):
    """The part of a summary that a table uses."""

    version: Annotated[int, AfterValidator(_refuse_other_version)]
    finished: Finished
