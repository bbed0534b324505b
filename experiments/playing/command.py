"""What a command that plays runs was given, and its configurations, read before torch is imported."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.config import Experiment, parse_experiment
from experiments.playing.scale import Scale
from experiments.running.members import (
    Configuration,
    Member,
    load_folder,
    load_members,
    read_configuration,
    refuse_unknown_arms,
    with_traces,
)
from experiments.shipped import named

RESUMES = "finished runs are kept; the same {}{} resumes the rest from the last checkpoint"

MAPPING = Path("config")
"""What errors call a configuration that is no file."""


def _command_line() -> Sequence[str]:
    return ["driftscale", *sys.argv[1:]]


@dataclass(frozen=True)
class RunCommand:
    """Arguments and options of `driftscale run`.

    `config` is a configuration or a folder of them, and `note` a line that says which was taken, where two
    could be meant; `started` is when the command was given; `allow_many` is --yes; `track` are names of
    installed trackers, and `trial` is --trial. In a call from Python, `table` may have the configuration,
    `overrides` and `sweep` have values by key, and `arguments` have the call, as manifests record it.
    """

    config: Path
    overrides: Sequence[str] | Mapping[str, Any] = ()
    sweep: Sequence[str] | Mapping[str, Any] = ()
    allow_many: bool = False
    seeds: Sequence[int] | None = None
    arms: Sequence[str] | None = None
    data: Sequence[Path] = ()
    out: Path | None = None
    fresh: bool = False
    scale: Scale = field(default_factory=Scale)
    track: Sequence[str] = ()
    trial: bool = True
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    arguments: Sequence[str] = field(default_factory=_command_line)
    table: Mapping[str, Any] | None = None
    note: str = ""

    def folder_of(self, name: str) -> Path:
        """The run directory of the experiment `name`, or the folder of those of several."""
        return self.out or Path("runs") / name

    @property
    def resumes(self) -> str:
        """What the message of an error says where the command ended early."""
        again = "command" if self.arguments[0] == "driftscale" else "call"
        return RESUMES.format(again, ", without --fresh," if self.fresh else "")


@dataclass(frozen=True)
class Several:
    """The configurations of a folder, or the cells of a sweep.

    `name`, of the folder or of the swept configuration, heads their table; the default --out is `folder` in
    `runs`. `left_out` has a line for each configuration that is not played.
    """

    members: Sequence[Member]
    name: str
    folder: str
    left_out: Sequence[str] = ()


def read_one(command: RunCommand) -> Configuration:
    """The configuration of the command; for the errors see `read_configuration`."""
    return read_configuration(
        command.config,
        command.overrides,
        command.seeds,
        command.data,
        command.sweep,
        table=None if command.table is None else copy.deepcopy(dict(command.table)),
    )


def experiment_of(command: RunCommand, configuration: Configuration) -> Experiment:
    """The experiment of a configuration without a sweep; ConfigurationError if it breaks a rule.

    UnknownNameError if it lacks one of the arms that the command names; InputError if it names a file that is
    not there, unless some of its runs are finished: if all are, it is needed no more.
    """
    refuse_unknown_arms(command.arms, [arm["name"] for arm in configuration.table["arm"]])
    from experiments.results.reading.run_directory import (
        RunDirectory,  # after the mistakes that are found without
    )

    directory = RunDirectory(command.folder_of(configuration.table["name"]))
    if not (directory.experiment_path.is_file() and directory.finished_pairs()):
        configuration.refuse_absent_files()
    return parse_experiment(configuration.table, named(command.config))


def cells_of(command: RunCommand, configuration: Configuration) -> Several:
    """The cells of a configuration with a sweep; for the errors see `load_members`."""
    members = load_members([configuration], command.arms, allow_many=command.allow_many)
    name = configuration.table["name"]
    return Several(members, name, f"{name}-sweep")


def read_folder(command: RunCommand) -> Several:
    """The configurations of the command's folder, but for those whose trace is absent.

    For the errors see `load_folder` and `with_traces`.
    """
    members, left_out = with_traces(
        load_folder(
            command.config,
            command.overrides,
            command.seeds,
            command.arms,
            command.data,
            command.sweep,
            allow_many=command.allow_many,
        )
    )
    name = command.config.resolve().name
    return Several(members, name, name, left_out)


def members_of(command: RunCommand) -> tuple[Sequence[Member], Sequence[str]]:
    """The configurations of the command, and a line for each of a folder that is left out.

    For the errors see `read_folder`, `read_one` and `load_members`.
    """
    if command.table is None and command.config.is_dir():
        several = read_folder(command)
        return several.members, several.left_out
    configuration = read_one(command)
    configuration.refuse_absent_files()
    return load_members([configuration], command.arms, allow_many=command.allow_many), ()
