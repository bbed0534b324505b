"""`driftscale tune`: plays the settings of the configurations of a folder, and writes what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join

from emulator.errors import ResumableError, RunError, abbreviated
from experiments.playing.command import RunCommand, Several
from experiments.results.reading.deciding import run_identities
from experiments.running.members import Member
from experiments.tuning.choices import write_choices
from experiments.tuning.columns import Column, folder_name
from experiments.tuning.halving import Chosen, Scores, choose, finalists, rival_of
from experiments.tuning.rows import Setting
from experiments.tuning.scores import read_scores

Play = Callable[[Several], object]
"""Plays the unfinished runs of these configurations."""


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


def tune(command: RunCommand, columns: Sequence[Column], play: Play) -> list[Tuned]:
    """Play the settings of the columns, choose, and write what is chosen for each of them.

    All settings are played on the first seed, and the best of each row on the others, with all their rounds.
    Finished runs are kept.

    Raises:
        EmulatorError: What `play` raises, unless all runs are finished or FAILED: a setting that failed is
            worse than all others.
    """
    first, *others = command.seeds or ()
    stage = [_Stage(column, column.settings, [first]) for column in columns]
    _play(command, stage, play)
    scores = [part.scores() for part in stage]
    finals = [
        {row.name: finalists(row, of, first) for row in column.rows}
        for column, of in zip(columns, scores, strict=True)
    ]
    _play(
        command,
        [
            _Stage(column, [setting for settings in of.values() for setting in settings], others)
            for column, of in zip(columns, finals, strict=True)
        ],
        play,
    )
    return [_chosen(command, *found) for found in zip(columns, scores, finals, strict=True)]


def refuse_undecided(tuned: Sequence[Tuned]) -> None:
    """Raise RunError, which names them, if every setting of a row diverged."""
    rows = [
        f"{of.column.member.experiment.name}: {row}"
        for of in tuned
        for row, choice in of.chosen.items()
        if choice is None
    ]
    if rows:
        raise RunError(f"every setting diverged, so none was chosen: {abbreviated(rows)}; try smaller rates")


@dataclass(frozen=True)
class _Stage:
    """Settings of a column that are played on some seeds."""

    column: Column
    settings: Sequence[Setting]
    seeds: Sequence[int]

    @property
    def arms(self) -> list[str]:
        return [name for setting in self.settings for name in setting.names]

    def scores(self) -> Scores:
        horizon_s = self.column.member.experiment.report.horizon_s
        return read_scores(self.column.directory, self.arms, self.seeds, horizon_s)

    def unsettled(self) -> list[str]:
        """The arms with a run that is neither finished nor FAILED in this configuration."""
        directory = self.column.directory
        if not directory.experiment_path.is_file():
            return self.arms
        recorded = run_identities(directory.experiment())
        own = run_identities(self.column.member.experiment.resolved())
        return [
            arm
            for arm in self.arms
            if recorded.get(arm) != own[arm]
            or not all(directory.is_done(arm, seed) or directory.failure(arm, seed) for seed in self.seeds)
        ]

    def member(self) -> Member:
        """What is left to play of it."""
        member = self.column.member
        experiment = member.experiment.model_copy(update={"seeds": tuple(self.seeds)})
        return replace(member, experiment=experiment, arms=self.unsettled())


def _play(command: RunCommand, stages: Sequence[_Stage], play: Play) -> None:
    left = [stage for stage in stages if stage.unsettled()]
    if not left:
        return
    name = folder_name(command)
    try:
        play(Several([stage.member() for stage in left], name, name))
    except ResumableError:
        raise
    except RunError:
        if any(stage.unsettled() for stage in left):
            raise


def _chosen(
    command: RunCommand, column: Column, first: Scores, finals: Mapping[str, Sequence[Setting]]
) -> Tuned:
    """Choose for a column, and write what was chosen."""
    seeds = command.seeds or ()
    settings = [setting for of in finals.values() for setting in of]
    scores = _Stage(column, settings, seeds).scores()
    chosen = {row.name: choose(finals[row.name], scores, seeds) for row in column.rows}
    baselines = [row.name for row in column.rows if row.is_baseline]
    rival = rival_of(chosen, baselines) if baselines else column.kept["atlas"]["rival"]
    found = {row.name: (row, choice) for row in column.rows if (choice := chosen[row.name]) is not None}
    file = None
    if rival is not None:
        told = join(command.arguments)
        file = write_choices(column.member.path, told, seeds, found, rival, column.kept)
    return Tuned(column, first, finals, scores, chosen, rival, file)
