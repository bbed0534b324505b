"""`driftscale run`: reads and checks configurations before the modules that play them are imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.errors import ConfigurationError, InputError
from experiments.cli.output import OutputFormat, say
from experiments.playing.command import RunCommand, cells_of, experiment_of, read_folder, read_one
from experiments.playing.scale import Scale
from experiments.shipped import named

if TYPE_CHECKING:
    from executor.gloo import Job

ONE_AT_A_TIME = "under torchrun, run one configuration at a time"


def run_one(command: RunCommand, output: OutputFormat, *, explain: bool = False) -> None:
    """Run one configuration, or the cells of its sweep, then report; under torchrun, ranks follow rank 0."""
    job = _job()
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
    _say_which(command)
    configuration = read_one(command)
    if configuration.axes:
        if job is not None:
            raise InputError(f"{named(command.config)}: is a sweep; {ONE_AT_A_TIME}")
        several = cells_of(command, configuration)
        from experiments.cli.playing import Printed
        from experiments.playing.play import play_several

        play_several(command, several, Printed(output, explain))
        return
    experiment = experiment_of(command, configuration)
    from experiments.cli.playing import Printed
    from experiments.playing.play import play_one

    play_one(command, experiment, job, Printed(output, explain))


def run_all_of(command: RunCommand, output: OutputFormat, *, explain: bool = False) -> None:
    """Run every configuration of a folder, or the cells of its sweep, then make one table of all of them."""
    job = _job()
    if job is not None and job.rank > 0:
        raise SystemExit(InputError.exit_code)  # rank 0 prints the reason
    _say_which(command)
    if job is not None:
        raise InputError(f"{named(command.config)}: is a folder; {ONE_AT_A_TIME}")
    several = read_folder(command)
    for line in several.left_out:
        say(line, aside=True)
    from experiments.cli.playing import Printed
    from experiments.playing.play import play_several

    play_several(command, several, Printed(output, explain))


def _say_which(command: RunCommand) -> None:
    """Print, on standard error, which configuration the command has taken, where two could be meant."""
    if command.note:
        say(command.note, aside=True)


def _job() -> Job | None:
    """The job that torchrun started this process for, if it did; raises as `executor.gloo.here`."""
    if "RANK" not in os.environ:
        return None
    from executor.gloo import here

    return here()
