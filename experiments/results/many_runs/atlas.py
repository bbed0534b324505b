"""The columns of an atlas, read from the run directories of a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emulator.errors import DataFileError, InputError, naming
from experiments.atlas_choice import AtlasChoice
from experiments.results.many_runs.directories import bytes_by_the_horizon, column_names, run_directories
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.atlas import Column, Figures
from experiments.results.statistics.comparisons import Compared, Comparison, Run, comparisons
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables.accuracy import mean_accuracy
from experiments.results.tables.clients import worst_tenth
from experiments.results.tables.costs import TRAINED
from experiments.results.tables.summary import measure

OF_A_USE = ("name", "baseline", "adaptation")
"""The keys in which arms that are trained alike may differ."""


def read_columns(folder: Path) -> list[Column]:
    """A column for each run directory in `folder`, by the names of these.

    Raises:
        InputError: There is none; one lacks a rival, or has seeds that it was chosen on; two have no arm in
            common, or another horizon, or other numbers of participants or clients; or a file is damaged.
    """
    directories = run_directories(folder)
    if not directories:
        raise InputError(
            f"{folder}: is no folder of run directories; give the DIR of driftscale run FOLDER --out DIR"
        )
    choices = [choice_of(directory) for directory in directories]
    for directory in directories[1:]:
        _refuse_unlike(directories[0], directory)
    columns = []
    for directory, choice, name in zip(directories, choices, column_names(directories), strict=True):
        with naming(name):
            columns.append(_column(directory, choice, name))
        known = [item for item in zip(directories, columns, strict=False) if item[1].clients]
        _refuse_other("clients", [(of, column.clients) for of, column in known])
    if not any(column.figures for column in columns):
        raise InputError(f"{folder}: no arm is finished in all its seeds; driftscale run finishes them")
    return columns


def choice_of(directory: RunDirectory) -> AtlasChoice:
    """What was chosen for the column of a run directory.

    Raises InputError if nothing was, if it is damaged, or if a seed it was chosen on is among those reported.
    """
    path, table = directory.experiment_path, directory.experiment().get("atlas")
    if not isinstance(table, Mapping) or "rival" not in table:
        raise InputError(
            f"{path}: has no [atlas] rival that its arms are compared with; driftscale tune FOLDER chooses it"
        )
    try:
        choice = AtlasChoice.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, ("atlas", *first["loc"])))
        raise DataFileError(path, f"{key}: {first['msg'].removeprefix('Value error, ')}") from error
    if problem := choice.problem(directory.arms()):
        raise DataFileError(path, problem)
    if reported := {*choice.seeds} & {*directory.seeds()}:
        raise InputError(
            f"{path}: seed {min(reported)} is among atlas.seeds, on which its settings were chosen, and is "
            f"reported; run other seeds, into a new directory"
        )
    return choice


def rows_of(experiment: Mapping[str, Any], best: Mapping[str, str]) -> dict[str, str]:
    """By row, the arm that is its best use, in the order of the arms of a recorded configuration.

    An arm that has no entry in `best` is a row by itself, unless it differs from that of a row, or from an
    arm before it, in its adaptation alone.
    """
    trained = {
        str(arm["name"]): json.dumps(
            {key: value for key, value in arm.items() if key not in OF_A_USE}, sort_keys=True, default=str
        )
        for arm in experiment["arm"]
    }
    taken, order = {trained[arm] for arm in best.values()}, list(trained.values())
    first = {training: name for name, training in reversed(trained.items()) if training not in taken}
    rows = {**{name: name for name in first.values()}, **best}
    return dict(sorted(rows.items(), key=lambda item: order.index(trained[item[1]])))


def _refuse_unlike(first: RunDirectory, other: RunDirectory) -> None:
    """InputError if two run directories cannot be columns of one atlas, by their configurations."""
    if not {*first.arms()} & {*other.arms()}:
        raise InputError(
            f"{first.experiment_path} and {other.experiment_path} have no arm in common: an atlas has the "
            f"same arms under each drift; keep them in folders of their own"
        )
    for key, of in (("horizon", _horizon), ("round.participants", _participants)):
        _refuse_other(key, [(item, of(item.experiment())) for item in (first, other)])


def _horizon(experiment: Mapping[str, Any]) -> str:
    """How far runs are compared, as it is configured."""
    rounds, asked_s = experiment.get("round", {}), experiment["report"].get("horizon_s")
    nominal_s = rounds.get("seconds_per_round")
    if asked_s is None and nominal_s is not None:
        asked_s = nominal_s * rounds["rounds"]
    return f"{rounds.get('rounds')} rounds" if asked_s is None else f"{asked_s:g} s"


def _participants(experiment: Mapping[str, Any]) -> Any:
    return experiment.get("round", {}).get("participants")


def _refuse_other(key: str, found: Sequence[tuple[RunDirectory, Any]]) -> None:
    """InputError if the last of these has another value than the first."""
    if found and found[-1][1] != found[0][1]:
        (first, value), (other, others) = found[0], found[-1]
        raise InputError(
            f"{key}: {value} in {first.experiment_path}, {others} in {other.experiment_path}; the columns of "
            f"an atlas share it: keep them in folders of their own"
        )


def _column(directory: RunDirectory, choice: AtlasChoice, name: str) -> Column:
    experiment, seeds = directory.experiment(), directory.seeds()
    done = {arm: sum(directory.is_done(arm, seed) for seed in seeds) for arm in directory.arms()}
    arms = _measured(directory, [arm for arm, count in done.items() if count == len(seeds)])
    figures = {arm.arm: _figures(arm) for arm in arms if arm["mean_accuracy"].mean is not None}
    configured, rows = configured_arms(experiment), rows_of(experiment, choice.best)
    shown = dict.fromkeys((*rows.values(), choice.rival))
    return Column(
        name=name,
        report=f"{directory.path.name}/report.html" if directory.report_path.is_file() else None,
        clients=num_clients(arms[0].runs[0]) if arms else 0,
        seeds=tuple(seeds),
        chosen_on=choice.seeds,
        rival=choice.rival,
        rows=rows,
        oracles=tuple(row for row, arm in rows.items() if configured[arm].is_oracle),
        figures={arm: figures[arm] for arm in shown if arm in figures},
        missing={
            arm: f"{done[arm]} of {len(seeds)} seeds are finished"
            if done[arm] < len(seeds)
            else "a run has no evaluation before the horizon"
            for arm in shown
            if arm not in figures
        },
    )


def _measured(directory: RunDirectory, finished: Sequence[str]) -> list[Comparison]:
    """These arms, measured up to the horizon of the report, which all their runs reach."""
    experiment = directory.experiment()
    report, configured = experiment["report"], configured_arms(experiment)
    runs = [directory.read_run(arm, seed) for arm, seed in product(finished, directory.seeds())]
    if not runs:
        return []
    curves = [accuracy_curve(run, report["window"]) for run in runs]
    horizon = common_horizon(runs, curves, asked_s=report.get("horizon_s"))
    measured = [Run.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
    compared = Compared(comparisons(measured, finished[0], configured), horizon, configured=configured)
    measure(compared, [mean_accuracy, worst_tenth, TRAINED])
    return list(compared.arms)


def _figures(arm: Comparison) -> Figures:
    sent = [bytes_by_the_horizon(run) for run in arm.measured]
    return Figures(
        accuracy=tuple(arm["mean_accuracy"].per_seed),
        has_trigger=arm.has_trigger,
        sent_bytes=sum(sent) / len(sent),
        samples=arm[TRAINED.key].mean,
        worst_tenth=arm["worst_tenth"].mean,
    )
