"""`table.json`: one table over the experiments of a folder of run directories.

    version, name
    experiments    a list of {name, report, finished, failed, planned, steps, scored_steps, marked_seeds}
        name                the name in the configuration; if two experiments share a name, every `name` is
                            that of the folder
        report              its report.html, relative to the table; null without one, or without a finished
                            run of the first arm: a page that is there then was not made of these runs
        finished, failed, planned
                            numbers of runs; those of arms that --arms left out are not planned
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
    sections       a list of comparisons over one stretch of virtual time each, as `sections.Section` has
                   them: name, directories, keys, window, targets, horizon, notes, rows

The figures are `accuracy_omitting_drift` and `accuracy_including_drift`, in percent, with `published`
{mean, std}, `difference` and `outside` (null if no value is published), and `unmarked` {mean, std, seeds},
the same without the marked seeds (null if there are none); `models_sent`, a count of whole models, and
`relative_models_sent`, relative to the reference arm. All figures are computed from the logs. Version 2 added
`failed`, `steps` and `scored_steps`, version 3 `sections`, version 4 `marked_seeds`, `agreement`, `outside`
and `unmarked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.storage.bounded import read_json
from emulator.storage.own_files import path_below
from experiments.results.many_runs.directories import column_names
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.marked_seeds import marked_by_drift
from experiments.results.statistics.published import COMPARED, agreement, beside_published, spread
from experiments.results.statistics.whole_runs import Finished
from experiments.results.wording import ACCURACY, Words

TABLE_VERSION = 5
COUNTED = ("models_sent", "relative_models_sent")

Table = dict[str, Any]


def build_table(name: str, finished: Mapping[RunDirectory, Finished]) -> Table:
    """The table over these run directories, in the order of their folders' names, without the sections.

    `name` is its heading; `finished` has the figures of the finished runs of each. A run directory without a
    finished run has a column, but no figures.
    """
    experiments = []
    arms: dict[str, None] = {}
    figures: dict[str, dict[str, dict[str, Any]]] = {figure: {} for figure in (*COMPARED, *COUNTED)}
    ordered = sorted(finished, key=lambda item: item.path.name)
    columns = column_names(ordered)
    for directory, column in zip(ordered, columns, strict=True):
        report, of_directory = directory.shared_experiment()["report"], finished[directory]
        marked = marked_by_drift(of_directory)
        experiments.append(
            {
                "name": column,
                "report": f"{directory.path.name}/{directory.report_path.name}"
                if directory.report_path.is_file()
                and any(directory.is_reported(directory.arms()[0], seed) for seed in directory.seeds())
                else None,
                **how_many_runs(directory),
                "steps": of_directory.steps,
                "scored_steps": of_directory.scored_steps,
                "marked_seeds": [entry.as_json() for entry in marked],
                **({} if of_directory.word == ACCURACY else {"word": of_directory.word}),
            }
        )
        for arm in directory.arms():
            arms.setdefault(arm)
            for figure, estimate in of_directory.arms.get(arm, {}).items():
                apart, seeds = {entry.seed for entry in marked}, of_directory.seed_ids[arm]
                cell = (
                    beside_published(estimate.per_seed, figure, arm, report, apart, seeds)
                    if figure in COMPARED
                    else spread(estimate.per_seed)
                )
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


def words_of(table: Mapping[str, Any], columns: Sequence[str]) -> Words:
    """The word of the figures of the experiments `columns`, by the first of them, and the names of users."""
    named = {column["name"]: column.get("word", ACCURACY) for column in table["experiments"]}
    words = [named[column] for column in columns]
    return Words(words[0] if words else ACCURACY, [table["name"], *named, *table["arms"]])


def _by_arm(cells: Mapping[str, Mapping[str, Any]], column: str) -> dict[str, Any]:
    """The cells of one experiment, by arm."""
    return {arm: by_experiment[column] for arm, by_experiment in cells.items() if column in by_experiment}


def how_many_runs(directory: RunDirectory) -> dict[str, Any]:
    """How many runs of the arms asked for are `finished`, have `failed`, and are `planned` in all.

    If there are any, `until` has the numbers of those that --until stopped, by where.
    """
    pairs = directory.asked_pairs()
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
