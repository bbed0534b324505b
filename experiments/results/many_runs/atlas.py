"""The columns of an atlas, read from the run directories of a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emulator.errors import InputError, naming
from experiments.results.many_runs.directories import bytes_by_the_horizon, column_names, run_directories
from experiments.results.reading.clusters_in_force import num_clients
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.recorded import AtlasChoice
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.atlas.verdicts import Column, Figures
from experiments.results.statistics.comparisons import (
    Compared,
    Comparison,
    Run,
    comparisons,
    personal_curve,
)
from experiments.results.statistics.horizon import common_horizon, seconds_per_round
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables.clients import worst_tenth
from experiments.results.tables.costs import TRAINED
from experiments.results.tables.personal import mean_used_accuracy
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
    columns: list[Column] = []
    known: dict[str, tuple[RunDirectory, Any]] = {}  # what columns share, and the first that has it
    for directory, choice, name in zip(directories, choices, column_names(directories), strict=True):
        with naming(name):
            columns.append(_column(directory, choice, name))
        if not {*directories[0].arms()} & {*directory.arms()}:
            raise _unlike(directories[0], directory, "no arm in common")
        told = {key: value for key, value in columns[-1].shared.items() if value is not None}
        for key, value in told.items():
            one, before = known.setdefault(key, (directory, value))
            if value != before:
                raise _unlike(one, directory, f"different {key}, {before} and {value}")
    if not any(column.figures for column in columns):
        raise InputError(f"{folder}: no arm is finished in all its seeds; driftscale run finishes them")
    return columns


def choice_of(directory: RunDirectory) -> AtlasChoice:
    """What was chosen for the column of a run directory.

    Raises InputError if nothing was, if it names no arm, or if a seed it was chosen on is among the reported.
    """
    path, table = directory.experiment_path, directory.experiment().get("atlas")
    try:
        choice = AtlasChoice.model_validate(table)
    except ValidationError as error:
        problem = "has no [atlas] with the rival of its arms, and the seeds on which it was chosen"
        raise InputError(f"{path}: {problem}; driftscale tune FOLDER chooses one") from error
    problem, reported = choice.problem(directory.arms()), {*choice.seeds} & {*directory.seeds()}
    if reported:
        problem = f"seed {min(reported)} is among atlas.seeds, on which its settings were chosen; run others"
    if problem:
        raise InputError(f"{path}: {problem}")
    return choice


def rows_of(experiment: Mapping[str, Any], best: Mapping[str, str]) -> dict[str, str]:
    """By row, the arm that is its best use, in the order of the arms of a recorded configuration.

    An arm that has no entry in `best` is a row by itself, unless it is a use of another one, "NAME+use": it
    differs from NAME, or from the best use of the row NAME, in its adaptation alone.
    """
    trained: dict[str, str] = {}
    for arm in experiment["arm"]:
        training = {key: value for key, value in arm.items() if key not in OF_A_USE}
        trained[arm["name"]] = json.dumps(training, sort_keys=True, default=str)
    rows, places = dict(best), {name: place for place, name in enumerate(trained)}
    for name, texts in trained.items():
        of = name.rpartition("+")[0]
        is_use = name in best.values() or trained.get(best.get(of, of)) == texts
        if name not in rows and not is_use:
            rows[name] = name
    return dict(sorted(rows.items(), key=lambda item: places.get(item[0], places[item[1]])))


def _unlike(one: RunDirectory, two: RunDirectory, problem: str) -> InputError:
    """The error for two run directories that cannot be columns of one atlas."""
    return InputError(
        f"{one.experiment_path} and {two.experiment_path} have {problem}; the columns of an atlas have the "
        f"same: keep them in folders of their own"
    )


def _horizon(experiment: Mapping[str, Any]) -> str:
    """How far runs are compared, as it is configured."""
    rounds, seconds = experiment.get("round", {}).get("rounds"), seconds_per_round(experiment)
    nominal_s = None if seconds is None or rounds is None else seconds * rounds
    asked_s = experiment["report"].get("horizon_s", nominal_s)
    return f"{rounds} rounds" if asked_s is None else f"{asked_s:g} s"


def _column(directory: RunDirectory, choice: AtlasChoice, name: str) -> Column:
    experiment, configured = directory.experiment(), configured_arms(directory.experiment())
    rows, arms = rows_of(experiment, choice.best), _measured(directory, experiment)
    participants = experiment.get("round", {}).get("participants")
    clients = (num_clients(arms[0].runs[0]) or None) if arms else None
    return Column(
        name=name,
        report=f"{directory.path.name}/report.html" if directory.report_path.is_file() else None,
        shared={"horizon": _horizon(experiment), "participants": participants, "clients": clients},
        seeds=directory.seeds(),
        chosen_on=list(choice.seeds),
        rival=choice.rival,
        rows=rows,
        oracles=[row for row, arm in rows.items() if configured[arm].is_oracle],
        failed=[arm for arm in configured if any(directory.failure(arm, seed) for seed in directory.seeds())],
        untuned=[row for row in rows if row not in choice.best],
        figures={arm.arm: found for arm in arms if (found := _figures(arm)) is not None},
    )


def _measured(directory: RunDirectory, experiment: Mapping[str, Any]) -> Sequence[Comparison]:
    """The arms that are finished in every seed, up to the horizon of the report."""
    seeds, report, configured = directory.seeds(), experiment["report"], configured_arms(experiment)
    finished = [arm for arm in configured if all(directory.is_done(arm, seed) for seed in seeds)]
    runs = [directory.read_run(arm, seed) for arm in finished for seed in seeds]
    if not runs:
        return []
    curves = [accuracy_curve(run, report["window"]) for run in runs]
    horizon = common_horizon(runs, curves, asked_s=report.get("horizon_s"))
    measured = [Run.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
    compared = Compared(comparisons(measured, finished[0], configured), horizon, configured=configured)
    measure(compared, [worst_tenth, TRAINED])
    return compared.arms


def _figures(arm: Comparison) -> Figures | None:
    """The figures of an arm; None if it was evaluated too late for some."""
    accuracy = [found for run in arm.measured if (found := mean_used_accuracy(run)) is not None]
    if len(accuracy) < len(arm.measured):
        return None
    sent = [bytes_by_the_horizon(run) for run in arm.measured]
    is_personal = any(personal_curve(run.log) is not None for run in arm.measured)
    tenth = None if is_personal else arm["worst_tenth"].mean  # which is of what serves a client
    return Figures(accuracy, arm.has_trigger, sum(sent) / len(sent), arm[TRAINED.key].mean, tenth)
