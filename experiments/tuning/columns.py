"""The configurations of a folder that is tuned, read and checked before anything is played."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from emulator.errors import ConfigurationError, InputError
from experiments.config import parse_experiment
from experiments.extending import merged, value_at
from experiments.locating import locator
from experiments.playing.command import RunCommand
from experiments.reading import SWEEP, read_file, take_first_look
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.members import Member, refuse_unknown_arms, with_traces
from experiments.shipped import named, version_identifies
from experiments.tuning.choices import kept_choices, without_choices
from experiments.tuning.rows import Row, Setting, played_table, rows_of
from experiments.uses import expanded


@dataclass(frozen=True)
class Column:
    """A configuration of the folder, and its rows that are tuned.

    The arms of `member` are all that are tried of them, and its seeds those of the choice; `directory` has
    their runs. `kept` is the content of its `chosen/NAME.toml` before.
    """

    member: Member
    rows: Sequence[Row]
    directory: RunDirectory
    kept: Mapping[str, Any]

    @property
    def settings(self) -> list[Setting]:
        """All settings of its rows."""
        return [setting for row in self.rows for setting in row.settings]


def folder_name(command: RunCommand) -> str:
    """The name of the command's folder in `runs`, unless --out names another."""
    return f"tune/{command.config.resolve().name}"


def read_columns(command: RunCommand, given: Path) -> tuple[list[Column], Sequence[str]]:
    """The configurations of the command's folder, and a line for each whose trace is absent.

    Args:
        command: The command; configurations without any of its arms are left out.
        given: The folder as it was given, which may be a name.

    Raises:
        ConfigurationError: A configuration, or the seeds, break a rule.
        UnknownNameError: No configuration has one of the arms.
        InputError: The folder has no configuration, or what was chosen before may not be overwritten.
    """
    folder, seeds = command.config, command.seeds or ()
    if len({*seeds}) < max(2, len(seeds)):
        raise ConfigurationError(
            f"--seeds {', '.join(map(str, seeds))}: the best settings on the first seed are played on the "
            f"others; give two different seeds or more, as in 100..102"
        )
    if not folder.is_dir():
        raise InputError(f"{given}: a tune takes a folder of configurations (*.toml)")
    if not given.is_dir() and version_identifies(folder):
        raise InputError(
            f"{given}: is installed with driftscale, so what is chosen for it is not overwritten; copy it "
            f"(cp -r {quote(str(folder))} {quote(folder.name)})"
        )
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError(f"{folder}: a folder without a configuration (*.toml)")
    tables = {path: _read(path, command) for path in paths}
    refuse_unknown_arms(
        command.arms, dict.fromkeys(arm["name"] for table in tables.values() for arm in table["arm"])
    )
    found = [_column(path, table, command) for path, table in tables.items()]
    columns = [column for column in found if column is not None]
    _refuse_same_names([column.member for column in columns])
    members, left_out = with_traces([column.member for column in columns])
    return [column for column in columns if column.member in members], left_out


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
            f"{where}: seeds: {min(reported)} is among those of --seeds, too; choose on seeds that "
            f"it does not report"
        )
    return table


def _column(path: Path, table: dict[str, Any], command: RunCommand) -> Column | None:
    """The column of the configuration at `path`, whose settings are checked; None without any of the arms."""
    where, locate, seeds = named(path), locator(command.data, path), command.seeds or ()
    names = [arm["name"] for arm in table["arm"]]
    asked = [name for name in names if command.arms is None or name in command.arms]
    if not asked:
        return None
    rows, kept = rows_of(table, where, asked), kept_choices(path)
    _refuse_overridden(read_file(path), rows, where)
    left_out = [name for name in names if name not in asked]
    _refuse_half([arm["name"] for arm in table["arm"] if arm.get("baseline")], left_out, kept, where, seeds)
    played = played_table(table, rows, seeds)
    take_first_look(played, where, locate)
    experiment = parse_experiment(played, where)
    directory = RunDirectory(command.folder_of(folder_name(command)) / experiment.name)
    return Column(Member(path, experiment, None, locate), rows, directory, kept)


def _refuse_overridden(own: Mapping[str, Any], rows: Sequence[Row], where: str) -> None:
    """Raise ConfigurationError if the file has a value of its own where one is chosen."""
    for row in rows:
        for key in row.grid:
            if value_at(own, ("arm", row.name, *key.split("."))) is not None:
                raise ConfigurationError(
                    f"{where}: arm.{row.name}.{key}: is set in this file, over what is chosen; take it out"
                )


def _refuse_half(
    baselines: Sequence[str],
    left_out: Sequence[str],
    kept: Mapping[str, Any],
    where: str,
    seeds: Sequence[int],
) -> None:
    """Raise ConfigurationError if there is no rival to choose, or what was chosen for others does not fit."""
    before, absent = kept.get("atlas", {}), [name for name in baselines if name in left_out]
    if not baselines:
        raise ConfigurationError(
            f"{where}: no arm is a baseline, so there is no rival to choose; set baseline = true in the arms "
            f"without clusters that the others are compared with"
        )
    if absent and (len(absent) < len(baselines) or "rival" not in before):
        raise ConfigurationError(
            f"{where}: --arms leaves out {', '.join(absent)}: the rival is chosen among all baselines; "
            f"name all of them ({', '.join(baselines)})"
        )
    if left_out and list(before.get("seeds", seeds)) != list(seeds):
        raise ConfigurationError(
            f"{where}: the other arms were chosen on the seeds {', '.join(map(str, before['seeds']))}; take "
            f"these, or leave out --arms"
        )


def _refuse_same_names(members: Sequence[Member]) -> None:
    paths: dict[str, Path] = {}
    for member in members:
        other = paths.setdefault(member.experiment.name, member.path)
        if other != member.path:
            raise ConfigurationError(
                f"{named(member.path)}: name = {member.experiment.name!r}: is also that of {named(other)}; "
                f"every configuration of a command needs a name of its own"
            )
