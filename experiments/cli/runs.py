"""`driftscale run`: reads and checks configurations before the modules that play them are imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from emulator.errors import ConfigurationError, InputError
from executor.gloo import here
from experiments.cli.output import OutputFormat
from experiments.cli.workers import Scale
from experiments.config import parse_experiment
from experiments.running.members import (
    load_folder,
    load_members,
    read_configuration,
    refuse_unknown_arms,
    with_traces,
)


@dataclass(frozen=True)
class RunCommand:
    """Arguments and options of `driftscale run`.

    `config` is a configuration or a folder of them; `started` is when the command was given; `allow_many` is
    --yes.
    """

    config: Path
    overrides: Sequence[str]
    sweep: Sequence[str]
    allow_many: bool
    seeds: Sequence[int] | None
    arms: Sequence[str] | None
    data: Sequence[Path]
    out: Path | None
    fresh: bool
    scale: Scale
    output: OutputFormat
    started: datetime = field(default_factory=lambda: datetime.now(UTC))


def run_one(command: RunCommand) -> None:
    """Run one configuration, or the cells of its sweep, then report; under torchrun, ranks follow rank 0."""
    job = here()
    if job is not None and command.scale != Scale():
        raise ConfigurationError(
            "--jobs and --cluster play several runs at once; under torchrun all ranks play each run together"
        )
    if job is not None and job.rank > 0:
        if command.sweep:
            raise SystemExit(InputError.exit_code)  # rank 0 prints the reason
        from experiments.cli.playing import follow_first

        follow_first(job, command)
        return
    configuration = read_configuration(
        command.config, command.overrides, command.seeds, command.data, command.sweep
    )
    if configuration.axes:
        if job is not None:
            raise InputError(f"{command.config}: is a sweep; under torchrun, run one configuration at a time")
        members = load_members([configuration], command.arms, allow_many=command.allow_many)
        from experiments.cli.playing import play_members

        name = configuration.table["name"]
        play_members(command, members, name, f"{name}-sweep")
        return
    refuse_unknown_arms(command.arms, [arm["name"] for arm in configuration.table["arm"]])
    experiment = parse_experiment(configuration.table, str(command.config))
    from experiments.cli.playing import play_one

    play_one(command, experiment, job)


def run_all_of(command: RunCommand) -> None:
    """Run every configuration of a folder, or the cells of its sweep, then make one table of all of them."""
    job = here()
    if job is not None and job.rank > 0:
        raise SystemExit(InputError.exit_code)  # rank 0 prints the reason
    if job is not None:
        raise InputError(f"{command.config}: is a folder; under torchrun, run one configuration at a time")
    members = load_folder(
        command.config,
        command.overrides,
        command.seeds,
        command.arms,
        command.data,
        command.sweep,
        allow_many=command.allow_many,
    )
    members, left_out = with_traces(members)
    for line in left_out:
        print(line, file=sys.stderr)
    from experiments.cli.playing import play_members

    name = command.config.resolve().name
    play_members(command, members, name, name)
