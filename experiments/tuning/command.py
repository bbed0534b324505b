"""`driftscale tune`: reads configurations, plays their settings, and writes what is chosen."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote
from typing import Any

from emulator.errors import ConfigurationError, InputError, RunError
from experiments.extending import expanded, merged
from experiments.locating import locator
from experiments.playing.command import RunCommand, Several
from experiments.reading import SWEEP, read_file, take_first_look
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.comparisons import personal_curve
from experiments.results.statistics.horizon import stretch
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.running.members import Configuration, Member, load_members, refuse_unknown_arms, with_traces
from experiments.shipped import named, version_identifies
from experiments.tuning.choices import kept_choices, without_choices, write_choices
from experiments.tuning.halving import DIVERGED, Chosen, Scores, choose, finalists, rival_of
from experiments.tuning.rows import Row, Setting, names_of, played_table, rows_of


@dataclass(frozen=True)
class Column:
    """A configuration that is tuned, and its rows that are.

    The arms of `member` are all that are tried of them, and its seeds those of the choice; `directory` has
    their runs. `kept` is the content of its `chosen/NAME.toml` before.
    """

    member: Member
    rows: Sequence[Row]
    directory: RunDirectory
    kept: Mapping[str, Any]


@dataclass(frozen=True)
class Tuned:
    """What came of a column.

    Attributes:
        column: The column.
        first: Scores of all its settings on the first seed.
        finals: By row, the settings that were played on all seeds.
        scores: Scores of these on all seeds.
        chosen: By row, what was chosen; None if every setting diverged.
        rival: The best baseline, or the rival before if none was tuned; None if all diverged.
        file: The file that was written; None without a rival.
    """

    column: Column
    first: Scores
    finals: Mapping[str, Sequence[Setting]]
    scores: Scores
    chosen: Mapping[str, Chosen | None]
    rival: str | None
    file: Path | None


def folder_of(command: RunCommand) -> Path:
    """The folder of the command's run directories."""
    return command.folder_of(f"tune/{command.config.resolve().name}")


def read_columns(command: RunCommand, given: Path) -> tuple[list[Column], Sequence[str]]:
    """The configurations of the command, and a line for each whose trace is absent.

    Args:
        command: The command; configurations without any of its arms are left out.
        given: The folder as it was given, which may be a name.

    Raises:
        ConfigurationError: A configuration, or the seeds, break a rule.
        UnknownNameError: No configuration has one of the arms.
        InputError: There is no configuration, or what was chosen before may not be overwritten.
    """
    folder, seeds = command.config, command.seeds or ()
    if len({*seeds}) < max(2, len(seeds)):
        raise ConfigurationError(
            f"--seeds {', '.join(map(str, seeds))}: the best settings on the first seed are played on the "
            f"others; give two different seeds or more, as in 100..102"
        )
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError(f"{folder}: no folder with configurations (*.toml)")
    if not os.access(folder, os.W_OK) or (version_identifies(folder) and not given.is_dir()):
        raise InputError(
            f"{given}: cannot be written in, or is installed with driftscale, so it cannot be tuned; copy "
            f"it (cp -r {quote(str(folder))} {quote(folder.name)})"
        )
    tables = {path: _read(path, command) for path in paths}
    known = dict.fromkeys(arm["name"] for table in tables.values() for arm in table["arm"])
    refuse_unknown_arms(command.arms, known)
    rows = {path: rows_of(table, named(path), command.arms) for path, table in tables.items()}
    kept = {path: _kept(path, table, rows[path], seeds) for path, table in tables.items() if rows[path]}
    played = [_played(path, played_table(tables[path], rows[path], seeds), command) for path in kept]
    members, left_out = with_traces(load_members(played))
    folders = {member.path: folder_of(command) / member.experiment.name for member in members}
    columns = [
        Column(member, rows[member.path], RunDirectory(folders[member.path]), kept[member.path])
        for member in members
    ]
    return columns, left_out


def tune(command: RunCommand, columns: Sequence[Column], play: Callable[[Several], object]) -> list[Tuned]:
    """Play the settings of the columns, choose, and write what is chosen for each of them.

    All settings are played on the first seed, and the best of each row on the others, with all their rounds.

    Args:
        command: The command. Its finished runs are kept; those that failed are played again.
        columns: The columns.
        play: Plays the unfinished runs of several configurations.

    Raises:
        EmulatorError: What `play` raises, unless it is that runs failed: these are worse than all others.
    """
    first, *others = seeds = list(command.seeds or ())
    every = [[setting for row in column.rows for setting in row.settings] for column in columns]
    _play(command, columns, every, [first], play)
    scores = [read_scores(*pair, [first]) for pair in zip(columns, every, strict=True)]
    finals = [
        {row.name: finalists(row, of) for row in column.rows}
        for column, of in zip(columns, scores, strict=True)
    ]
    best = [[setting for settings in of.values() for setting in settings] for of in finals]
    _play(command, columns, best, others, play)
    return [
        _chosen(command, column, of, final, read_scores(column, settings, seeds))
        for column, of, final, settings in zip(columns, scores, finals, best, strict=True)
    ]


def read_scores(column: Column, settings: Sequence[Setting], seeds: Sequence[int]) -> Scores:
    """The mean accuracies of these settings, as `summary.json` has them; `DIVERGED` of a run that FAILED.

    They are of what clients use: where they have parameters of their own, the mean personal accuracy.

    Raises:
        InputError: A run is not finished, was never evaluated, or is damaged.
        RunError: Some run has no evaluation before the horizon.
    """
    directory, names = column.directory, names_of(settings)
    pairs = [(arm, seed) for arm in names for seed in seeds if directory.failure(arm, seed) is None]
    runs = {pair: directory.read_run(*pair) for pair in pairs}
    if not runs:
        return {arm: [DIVERGED] * len(seeds) for arm in names}
    curves = {pair: accuracy_curve(run, window=1) for pair, run in runs.items()}
    span = stretch(list(curves.values()), column.member.experiment.report.horizon_s)
    scores = {pair: (personal_curve(run) or curves[pair]).mean_accuracy(*span) for pair, run in runs.items()}
    known = {pair: score for pair, score in scores.items() if score is not None}
    if len(known) < len(scores):
        raise RunError(
            f"{directory.path}: some run has no evaluation before the horizon ({span[1]:g} s) to choose by; "
            f"evaluate more often (round.evaluate_every)"
        )
    return {arm: [known.get((arm, seed), DIVERGED) for seed in seeds] for arm in names}


def _read(path: Path, command: RunCommand) -> dict[str, Any]:
    """The content of a configuration, checked without torch, with arms of several uses as they are written.

    Raises ConfigurationError if it has a sweep, or one of the seeds.
    """
    where, locate = named(path), locator(command.data, path)
    table = merged(without_choices(read_file(path), path), path, locate, read_file)
    if SWEEP in table:
        raise ConfigurationError(f"{where}: has a [{SWEEP}]; a tune takes files of one configuration each")
    experiment = take_first_look(expanded(copy.deepcopy(table), where), where, locate)
    if reported := {*(command.seeds or ())} & {*experiment.seeds}:
        raise ConfigurationError(
            f"{where}: seeds: {min(reported)} is among those of --seeds, too; choose on seeds that it "
            f"does not report"
        )
    return table


def _played(path: Path, table: dict[str, Any], command: RunCommand) -> Configuration:
    locate = locator(command.data, path)
    return Configuration(path, table, [], locate, take_first_look(table, named(path), locate))


def _kept(
    path: Path, table: Mapping[str, Any], rows: Sequence[Row], seeds: Sequence[int]
) -> Mapping[str, Any]:
    """What was chosen before for the configuration, and stays; `rows` are those that are tuned.

    Raises ConfigurationError if its other choices, or the rival, are not to be compared with theirs.
    """
    kept, names = kept_choices(path), [row.name for row in rows]
    before = kept.get("atlas", {})
    baselines = [arm["name"] for arm in table["arm"] if arm.get("baseline")]
    absent = [name for name in baselines if name not in names]
    is_whole = not absent or (absent == baselines and "rival" in before)
    is_of_all = len(names) == len(table["arm"])
    if not baselines or not is_whole or (not is_of_all and list(before.get("seeds", seeds)) != list(seeds)):
        raise ConfigurationError(
            f"{named(path)}: the rival is the best of all arms with baseline = true ("
            f"{', '.join(baselines) or 'none'}), on the seeds of all choices; take these among --arms, or "
            f"none of them, and the seeds of {path.parent.name}/chosen/{path.name}"
        )
    return {} if is_of_all else kept


def _play(
    command: RunCommand,
    columns: Sequence[Column],
    settings: Sequence[Sequence[Setting]],
    seeds: Sequence[int],
    play: Callable[[Several], object],
) -> None:
    """Play these settings of each column; a failure is raised only if it leaves runs unfinished."""
    played = [(column, names_of(of)) for column, of in zip(columns, settings, strict=True) if of]
    members = [
        replace(
            column.member,
            experiment=column.member.experiment.model_copy(update={"seeds": tuple(seeds)}),
            arms=arms,
        )
        for column, arms in played
    ]
    try:
        if members:
            play(Several(members, command.config.name, f"tune/{command.config.resolve().name}"))
    except RunError:
        runs = ((of.directory, arm, seed) for of, arms in played for arm in arms for seed in seeds)
        if any(not run.is_done(arm, seed) and run.failure(arm, seed) is None for run, arm, seed in runs):
            raise


def _chosen(
    command: RunCommand,
    column: Column,
    first: Scores,
    finals: Mapping[str, Sequence[Setting]],
    scores: Scores,
) -> Tuned:
    """Choose for a column, and write what was chosen."""
    chosen = {row.name: choose(finals[row.name], scores) for row in column.rows}
    baselines = [chosen[row.name] for row in column.rows if row.is_baseline]
    rival = rival_of(baselines) if baselines else column.kept["atlas"]["rival"]
    found = [(row, choice) for row in column.rows if (choice := chosen[row.name]) is not None]
    file = None
    if rival is not None:
        told, seeds = join(command.arguments), command.seeds or ()
        file = write_choices(column.member.path, told, seeds, found, rival, column.kept)
    return Tuned(column, first, finals, scores, chosen, rival, file)
