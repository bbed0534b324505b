"""`driftscale.run`: plays a configuration from Python, by the engine of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftscale.arguments import (
    NOTHING,
    AnyPath,
    Config,
    Paths,
    data_of,
    names_of,
    path_of,
    seeds_of,
    source_of,
    sweep_of,
    table_of,
)
from driftscale.one_line import one_line
from emulator.errors import EmulatorError, InputError, RunError
from experiments.cli.output import note

if TYPE_CHECKING:
    from driftscale.results import Results
    from experiments.config import Experiment
    from experiments.playing.command import RunCommand, Several


@one_line
def run(
    config: Config,
    set: Mapping[str, Any] = NOTHING,  # noqa: A002  (the name of the option)
    seeds: int | Iterable[int] | None = None,
    out: AnyPath | None = None,
    jobs: int | str | None = None,
    *,
    arms: str | Iterable[str] | None = None,
    data: Paths = (),
    sweep: Mapping[str, Any] = NOTHING,
    fresh: bool = False,
    track: str | Iterable[str] | None = None,
    trial: bool = True,
    progress: bool = True,
) -> Results:
    """Play the unfinished runs of a configuration, write their report, and load the results.

    The same as the command `driftscale run`: finished runs of the run directory are kept, an unfinished one
    resumes from its last checkpoint, and Ctrl-C (in a notebook: interrupt the kernel) stores the runs first.

    Args:
        config: Path of a configuration (.toml) or of a folder of them; or the name of a shipped one, such as
            "digits", or of a folder of them, such as "fielding"; or its content as a mapping, as TOML would
            give it.
        set: Values that override keys of the configuration, by dotted key: {"round.rounds": 100}.
        seeds: Seeds that replace those of the configuration.
        out: Run directory, or the folder of those of several experiments; default: runs/<name>.
        jobs: Number of runs played at once, each in its own process, or "auto"; default: one after another
            in this process.
        arms: Names of the arms to run; default: all.
        data: Folder, or folders, to look for the configuration's data files in; default: those of the
            environment variable DRIFTSCALE_DATA.
        sweep: Lists of values by dotted key: {"round.participants": [5, 10]}. Each combination is an
            experiment of its own.
        fresh: Whether to delete the contents of the run directory first.
        track: Installed trackers that plot the runs while they are played: "tensorboard", "mlflow".
        trial: Whether to try own code before any run begins: to play the first round of its arms, twice.
        progress: Whether to show progress: a bar in a notebook, else bars or lines on standard error.

    Returns:
        The results, as `driftscale.load` gives them.

    Raises:
        EmulatorError: Of one line. An InputError if nothing was run, a RunError if runs have failed; finished
            runs can be loaded nevertheless.
        KeyboardInterrupt: The runs were interrupted, and are stored; the same call resumes them.
    """
    from executor.gloo import here
    from experiments.playing.scale import parse_scale

    if here() is not None:
        raise InputError("driftscale.run: cannot be called under torchrun; use the command driftscale run")
    from experiments.playing.command import RunCommand
    from experiments.tracking.registry import require_trackers

    trackers = names_of(track, "track") or []
    require_trackers(trackers, "track")
    is_table = isinstance(config, Mapping)
    overrides, swept = table_of(set, "set"), sweep_of(sweep)
    chosen, names = seeds_of(seeds), names_of(arms, "arms")
    command = RunCommand(
        overrides=overrides,
        sweep=swept,
        seeds=chosen,
        arms=names,
        data=data_of(data),
        out=None if out is None else path_of(out, "out"),
        fresh=fresh,
        track=trackers,
        trial=trial,
        scale=parse_scale(None if jobs is None else str(jobs), None, None, False),
        **source_of(config),
        arguments=_call(
            "<mapping>" if is_table else str(config),
            set=overrides or None,
            seeds=seeds if isinstance(seeds, int | range) else chosen,
            out=None if out is None else str(out),
            jobs=jobs,
            arms=arms if isinstance(arms, str) else names,
            data=data or None,
            sweep=swept or None,
            fresh=fresh or None,
            track=trackers or None,
            trial=None if trial else False,
        ),
    )
    try:
        path = _play(command, progress)
    except RunError as error:
        error.args = (f"{error}; driftscale.load of the run directory has the finished runs",)
        raise
    from driftscale import results

    return results.load(path)


def _play(command: RunCommand, progress: bool) -> Path:
    """Play the command; returns its run directory, or the folder of its run directories."""
    try:
        read = _read(command)
    except EmulatorError:
        if command.note:  # which `CallOutput` would show, whose modules take seconds to import
            note(command.note)
        raise
    from driftscale.output import CallOutput
    from experiments.config import Experiment
    from experiments.playing.play import play_one, play_several

    show = CallOutput.here(progress)
    if command.note:
        show.note(command.note)
    if isinstance(read, Experiment):
        return play_one(command, read, None, show)
    for line in read.left_out:
        show.note(line)
    return play_several(command, read, show)


def _read(command: RunCommand) -> Experiment | Several:
    """The experiment of the command, or those of its folder or sweep."""
    from experiments.playing.command import cells_of, experiment_of, read_folder, read_one

    if command.table is None and command.config.is_dir():
        return read_folder(command)
    configuration = read_one(command)
    return cells_of(command, configuration) if configuration.axes else experiment_of(command, configuration)


def _call(config: str, **options: object) -> list[str]:
    """The call as a manifest records it: the function, the configuration, and all options but None."""
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return ["driftscale.run", config, *given]
