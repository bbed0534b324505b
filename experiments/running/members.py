"""The configurations of a folder, and the cells of their sweeps, read without importing torch."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from emulator.errors import (
    ConfigurationError,
    InputError,
    MissingFileError,
    UnknownNameError,
    naming,
    shorten,
)
from experiments.config import Experiment, parse_experiment
from experiments.extending import extended, value_at
from experiments.locating import DataFolders, Locate, locator
from experiments.reading import (
    SWEEP,
    Overrides,
    override_table,
    read_file,
    read_table,
    set_key,
    take_first_look,
)
from experiments.results.reading.deciding import run_identities
from experiments.results.reading.json_files import SweepCell
from experiments.running.sweep import (
    Axis,
    cell_name,
    cells,
    given_order,
    merged_axes,
    refuse_too_many_cells,
    table_axes,
    without_effect,
)
from experiments.shipped import named

MOST_SHOWN = 80
"""Most letters of a swept value in an error."""

Table = dict[str, Any]

SweptKeys = Sequence[str] | Mapping[str, Any]
"""The --sweep options, or lists of values by key."""


@dataclass(frozen=True)
class Member:
    """One configuration of a command that plays several, and the names of the arms to run (None: all).

    `path` is its file; `locate` maps a path in it to a file; `cell` is its place in a sweep, if it has one.
    """

    path: Path
    experiment: Experiment
    arms: Sequence[str] | None
    locate: Locate
    cell: SweepCell | None = None

    @property
    def where(self) -> str:
        """The configuration as errors name it: its file, with the name of the cell if it is one."""
        file = named(self.path)
        return file if self.cell is None else f"{file} ({self.experiment.name})"

    @cached_property
    def identities(self) -> dict[str, str]:
        """By name of each arm to run, a digest: two runs of a seed are the same if theirs are the same."""
        texts = run_identities(self.experiment.resolved())
        return {
            arm: hashlib.sha256(texts[arm].encode()).hexdigest()
            for arm in (texts if self.arms is None else self.arms)
        }


@dataclass(frozen=True)
class Configuration:
    """A configuration as it was read: its `table` without `[sweep]`, and the `axes` of its sweep, if any.

    `looked_at` is what the first look at it gave, without the settings of others' rules and models; None for
    a sweep.
    """

    path: Path
    table: Table
    axes: Sequence[Axis]
    locate: Locate
    looked_at: Experiment | None = None

    def refuse_absent_files(self) -> None:
        """Raise InputError for a file or folder that it names and that is not there, as its world would.

        Not for a sweep, whose cells may name others.
        """
        if self.looked_at is not None:
            with naming(named(self.path)):
                self.looked_at.find_files(self.locate)


def read_configuration(
    path: Path,
    overrides: Overrides = (),
    seeds: Sequence[int] | None = None,
    data: DataFolders = None,
    sweep: SweptKeys = (),
    *,
    table: Table | None = None,
) -> Configuration:
    """Read the configuration in the file `path`.

    Args:
        path: A TOML file, which may have a table `[sweep]`.
        overrides: The --set options, or values by key.
        seeds: Seeds that replace those of the file; None: keep them.
        data: The folders of --data.
        sweep: The --sweep options, or lists of values by key.
        table: The content of the configuration, if it is no file; changed in place. `path` then names it in
            errors.

    Returns:
        The configuration. It has been checked, without torch, unless it has axes.

    Raises:
        ConfigurationError: It breaks a rule.
        DataFileError: There is no such file, or no such folder of `data`.
        InputError: The catalogue has no device profile of that name.
    """
    locate = locator(data, path)
    if table is None:
        table = read_table(path, overrides, seeds, locate)
    else:
        table = extended(table, path, locate, read_file)
        override_table(table, overrides, seeds)
    axes = merged_axes(table_axes(table.pop(SWEEP, {}), named(path)), sweep)
    looked_at = None if axes else take_first_look(table, named(path), locate)
    return Configuration(path, table, axes, locate, looked_at)


def refuse_unknown_arms(arms: Sequence[str] | None, known: Collection[str]) -> None:
    """UnknownNameError for the first of `arms` that is not among the `known` ones."""
    for arm in arms or ():
        if arm not in known:
            raise UnknownNameError("arm", arm, known, "--arms")


def load_folder(
    folder: Path,
    overrides: Overrides = (),
    seeds: Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    data: DataFolders = None,
    sweep: SweptKeys = (),
    *,
    allow_many: bool = False,
) -> list[Member]:
    """The configurations in `folder`, not below it, sorted by file name, each followed by its cells.

    For the arguments, and for the errors besides these, see `read_configuration` and `load_members`.

    Raises:
        ConfigurationError: Two configurations have the same name.
        InputError: The folder has no configuration.
    """
    paths = sorted(folder.glob("*.toml"))
    if {"experiment.toml", "manifest.json"} <= {path.name for path in folder.iterdir()}:
        raise InputError(
            f"{folder}: is a run directory; driftscale report {folder} shows its results, and "
            f"{folder / 'experiment.toml'} is its configuration"
        )
    if not paths:
        raise InputError(f"{folder}: a folder without a configuration (*.toml)")
    configurations = [read_configuration(path, overrides, seeds, data, sweep) for path in paths]
    return load_members(configurations, arms, allow_many=allow_many)


def with_traces(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """Split off the members whose trace folder is absent, if they have the command that makes it.

    So a folder of configurations can be played by those who have only some of the data sets.

    Returns:
        The other members, and a line for each configuration that is left out.

    Raises:
        InputError: All of them lack theirs; it has the first line. Or a folder is there, and may not be read.
    """
    present, absent = [], {}
    for member in members:
        try:
            refuse_absent_trace(member.experiment, member.locate)
            present.append(member)
        except MissingFileError as error:
            absent[member.path] = f"{named(member.path)}: left out: {error}"
    if not present:
        raise InputError(next(iter(absent.values())))
    return present, list(absent.values())


def refuse_absent_trace(experiment: Experiment, locate: Locate) -> None:
    """Raise MissingFileError if the trace folder is absent, and the configuration has the command to make it.

    Raises OutsideError if it is there, but outside the folders that may be read.
    """
    if experiment.trace.kind == "file":
        from traces.sources.file import FileSettings

        settings = experiment.trace.settings
        if isinstance(settings, FileSettings) and settings.build is not None:
            settings.located(locate)


def load_members(
    configurations: Sequence[Configuration], arms: Sequence[str] | None = None, *, allow_many: bool = False
) -> list[Member]:
    """The configurations, with those that have axes replaced by the cells of their sweep.

    Args:
        configurations: The configurations.
        arms: Names of the arms to run; configurations without any of them are left out. None for all.
        allow_many: Whether there may be more than `MOST_CELLS` cells.

    Raises:
        ConfigurationError: A configuration breaks a rule, two have the same name, there are too many cells,
            or no run depends on a swept key.
        UnknownNameError: No configuration has one of `arms`.
    """
    sweeps = [configuration.axes for configuration in configurations if configuration.axes]
    if not allow_many:
        refuse_too_many_cells(sweeps)
    drafts = [draft for configuration in configurations for draft in _drafts(configuration)]
    named: dict[str, _Draft] = {}
    for draft in drafts:
        name = draft.table["name"]
        if name in named:
            raise ConfigurationError(
                f"{draft.where}: name = {name!r}: is also that of {named[name].where}; every configuration "
                f"of a command needs a name of its own"
            )
        named[name] = draft
    refuse_unknown_arms(arms, dict.fromkeys(arm["name"] for draft in drafts for arm in draft.table["arm"]))
    members = [member for draft in drafts if (member := draft.member(arms)) is not None]
    for configuration in configurations:
        _refuse_unread_keys(configuration, [item for item in members if item.path == configuration.path])
    return members


@dataclass(frozen=True)
class _Draft:
    """A configuration that is checked, except the settings of rules and models.

    `where` names it in errors.
    """

    configuration: Configuration
    table: Table
    where: str
    cell: SweepCell | None = None

    def member(self, arms: Sequence[str] | None) -> Member | None:
        """The configuration, with those of `arms` that it has (None: all); None if it has none of them."""
        experiment = parse_experiment(self.table, self.where)
        names = {arm.name for arm in experiment.arm}
        chosen = None if arms is None else [arm for arm in arms if arm in names]
        if chosen is not None and not chosen:
            return None
        return Member(self.configuration.path, experiment, chosen, self.configuration.locate, self.cell)


def _drafts(configuration: Configuration) -> list[_Draft]:
    """The configuration, or the cells of its sweep."""
    if not configuration.axes:
        return [_Draft(configuration, configuration.table, named(configuration.path))]
    drafts: list[_Draft] = []
    order = given_order(configuration.axes)
    for values in cells(configuration.axes):
        table, where = _cell_table(configuration, values)
        if not drafts:  # the name must be valid by itself, before the cells' names are made of it
            take_first_look(table, where, configuration.locate)
        base = table["name"]
        table["name"] = cell_name(base, values)
        take_first_look(table, where, configuration.locate)
        drafts.append(_Draft(configuration, table, where, SweepCell(of=base, keys=values, order=order)))
    return drafts


def _cell_table(configuration: Configuration, values: Table) -> tuple[Table, str]:
    """The table of the configuration with these values, under its own name; and how errors name it."""
    table = copy.deepcopy(configuration.table)
    axes = [axis for axis in configuration.axes if axis.key in values]
    in_order = sorted(axes, key=_place)
    for axis in in_order:
        set_key(table, axis.key, copy.deepcopy(values[axis.key]), axis.where)
    for axis in in_order:
        if value_at(table, axis.key.split(".")) != values[axis.key]:
            raise ConfigurationError(
                f"{axis.where}: {axis.key} and another swept key set the same values; sweep one of them, "
                f"with whole tables as values"
            )
    shown = ", ".join(
        f"{axis.source} {axis.key} = {shorten(repr(values[axis.key]), MOST_SHOWN)}" for axis in axes
    )
    file = named(configuration.path)
    return table, f"{file} with {shown}" if axes else file


def _place(axis: Axis) -> tuple[int, bool]:
    """The place of a swept key among others: tables before keys in them, and a kind before its settings."""
    parts = axis.key.split(".")
    return len(parts), parts[-1] != "kind"


def _refuse_unread_keys(configuration: Configuration, members: Sequence[Member]) -> None:
    """ConfigurationError, which names the key, if no run of the `members` depends on a swept key."""
    if not members or not configuration.axes:
        return
    runs = {
        tuple(json.dumps(member.cell.keys[axis.key], sort_keys=True) for axis in configuration.axes): tuple(
            member.identities.values()
        )
        for member in members
        if member.cell is not None
    }
    unread = without_effect(configuration.axes, runs)
    if unread is None:
        alone = [axis for axis in configuration.axes if len(axis.values) == 1]
        unread = next((axis for axis in alone if _is_unread(configuration, axis, members[0])), None)
    if unread is not None:
        arms = "no arm" if members[0].arms is None else f"none of the arms {', '.join(members[0].arms)}"
        raise ConfigurationError(
            f"{unread.where}: {arms} reads {unread.key}, so it makes no difference to any run; leave it out, "
            f"or set it with --set"
        )


def _is_unread(configuration: Configuration, axis: Axis, member: Member) -> bool:
    """Whether the only value of `axis` changes the configuration of `member`, but none of its runs."""
    assert member.cell is not None
    values = {key: value for key, value in member.cell.keys.items() if key != axis.key}
    table, where = _cell_table(configuration, values)
    table["name"] = member.experiment.name
    try:
        without = replace(member, experiment=parse_experiment(table, where))
    except ConfigurationError:
        return False  # a key that must be given
    has_changed = without.experiment.resolved() != member.experiment.resolved()
    return has_changed and without.identities == member.identities
