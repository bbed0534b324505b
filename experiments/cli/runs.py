"""`driftscale run`: its configurations are read, and refused, before what plays them is imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import ConfigurationError, InputError
from executor.gloo import here
from experiments.cli.output import OutputFormat
from experiments.cli.workers import Scale
from experiments.config import parse_experiment, read_experiment
from experiments.running.members import load_folder, refuse_unknown_arms


@dataclass(frozen=True)
class RunCommand:
    """What `driftscale run` was told; `config` is a configuration, or a folder of them."""

    config: Path
    settings: Sequence[str]
    seeds: Sequence[int] | None
    arms: Sequence[str] | None
    data: Path | None
    out: Path | None
    fresh: bool
    scale: Scale
    output: OutputFormat


def run_one(asked: RunCommand) -> None:
    """Run one configuration, then report; the ranks of torchrun but the first follow that one."""
    job = here()
    if job is not None and asked.scale != Scale():
        raise ConfigurationError(
            "--jobs and --cluster play several runs at once; under torchrun all ranks play each run"
        )
    if job is not None and job.rank > 0:
        from experiments.cli.playing import follow_first

        follow_first(job, asked)
        return
    table = read_experiment(asked.config, asked.settings, asked.seeds, asked.data)
    refuse_unknown_arms(asked.arms, [arm["name"] for arm in table["arm"]])
    experiment = parse_experiment(table, str(asked.config))
    from experiments.cli.playing import play_one

    play_one(asked, experiment, job)


def run_all_of(asked: RunCommand) -> None:
    """Run every configuration of a folder, then make their table."""
    job = here()
    if job is not None and job.rank > 0:
        raise SystemExit(InputError.exit_code)  # rank 0 says why
    if job is not None:
        raise InputError(f"{asked.config}: is a folder; under torchrun, run one configuration at a time")
    members = load_folder(asked.config, asked.settings, asked.seeds, asked.arms, asked.data)
    from experiments.cli.playing import play_folder

    play_folder(asked, members)
