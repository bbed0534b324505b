"""Checks of the worlds of all seeds of an experiment in which the first one was drawn, before any run.

What a run refuses may depend on its seed: who holds samples at each data step, and who is ever online. Both
follow from label counts and spells, so that no fleet is drawn, no model built and nothing trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError, abbreviated, naming
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from experiments.build import World, refuse_unfit_rounds
from experiments.config import Experiment
from experiments.locating import Locate
from experiments.unfit import refuse_late_reports
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace


def refuse_unfit_seeds(
    experiment: Experiment,
    arms: Sequence[str],
    seeds: Iterable[int],
    world: World,
    locate: Locate,
    scratch: Path | None,
) -> list[str]:
    """Check the worlds of all `seeds`, one after another.

    Args:
        experiment: The configuration.
        arms: Names of the arms that are `late_reporting`.
        seeds: The seeds whose runs are to be played.
        world: The world of one of them, which has been checked.
        locate: Finds the files that the configuration names.
        scratch: Folder for the file of a large trace.

    Returns:
        Warnings, lines that name the clients that are never online.

    Raises:
        ConfigurationError: A trace cannot be built, or lacks data at some data step of the run; nobody is
            ever online, or reports would be late. The message names the seed.
        DataFileError: A file is missing or damaged.
        RunError: There is no room for the file of a large trace.
    """
    source, availability = experiment.trace.build(), experiment.devices.availability.build()
    absent: list[str] = []
    for seed in sorted({*seeds, world.streams.seed}):
        streams = RandomStreams(seed)
        clients, online = world.trace.num_clients, world.availability
        if seed != world.streams.seed:
            with naming(f"seed {seed}"):
                context = TraceContext(experiment.round.rounds, streams, locate, scratch)
                clients = _fitting_clients(experiment, source, world.trace, context)
                online = availability.build(clients, streams.generator("availability"), locate)
                refuse_late_reports(experiment, arms, online, clients)
        never = never_online(online, clients)
        if len(never) == clients:
            raise ConfigurationError(
                f"devices.availability: of the {clients} clients of seed {seed} none is ever online"
            )
        if len(never):
            absent.append(
                f"seed {seed}: {len(never)} of {clients} ({abbreviated([str(i) for i in never], ', ')})"
            )
    if not absent:
        return []
    return [f"clients that are never online, by devices.availability, take no part: {abbreviated(absent)}"]


def never_online(availability: Availability, num_clients: int) -> Ints:
    """The ids, ascending, of the clients that are offline at all times."""
    everyone = np.arange(num_clients)
    later = np.isfinite(availability.next_online_s(everyone, 0.0))
    return np.flatnonzero(~(later | availability.online(everyone, 0.0)))


def _fitting_clients(experiment: Experiment, source: TraceSource, first: Trace, context: TraceContext) -> int:
    """The number of clients of a seed's trace; ConfigurationError if it is unfit.

    `first` is the trace of another seed, which is fit.
    """
    certain = source.certain_holders(first, context)
    if certain is not None:
        with suppress(ConfigurationError):  # then the trace itself may do, or is refused for its own reason
            refuse_unfit_rounds(experiment, certain, context.streams)
            return certain.num_clients
    trace = source.build(context)
    refuse_unfit_rounds(experiment, trace, context.streams)
    return trace.num_clients
