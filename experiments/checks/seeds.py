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
from emulator.errors import MOST_NAMED, ConfigurationError, naming
from emulator.ports import Availability
from emulator.seeding import RandomStreams
from executor.malloc import give_back_freed_memory
from experiments.build import World, check_rounds
from experiments.checks.arms import refuse_late_reports
from experiments.config import Experiment
from experiments.devices import assign_devices
from experiments.locating import Locate
from traces.holders import Holders, names_of
from traces.sources import TraceContext, TraceSource
from traces.trace import Trace

CHECKED_OF_ROUNDS = (
    *("rounds", "seconds_per_round", "evaluate_every", "evaluate_every_s", "evaluate_clients"),
    *("participants", "min_online"),
)
"""The settings of rounds that decide whether a seed is refused."""

MOST_IDS = 10
"""Clients of a seed that are named in a line."""


def check_seeds(
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
        ConfigurationError: A trace cannot be built, or lacks data at some data step of the run; of its
            clients with data then none is ever online, or reports would be late. The message names the seed.
        DataFileError: A file is missing or damaged.
        RunError: There is no room for the file of a large trace.
    """
    source = experiment.trace.build()
    absent: list[str] = []
    for seed in sorted({*seeds, world.streams.seed}):
        streams = RandomStreams(seed)
        context = TraceContext(experiment.round.rounds, streams, locate, scratch)
        with naming("" if seed == world.streams.seed else f"seed {seed}"):
            holders: Holders = world.trace
            online = world.availability
            if seed != world.streams.seed:
                holders = _fitting_holders(experiment, source, world.trace, context)
                devices = assign_devices(experiment.devices, world.profile, holders, streams, locate)
                online = devices.availability
                refuse_late_reports(experiment, arms, online, holders.num_clients)
            never = never_online(online, holders.num_clients)
            if len(never):
                if not isinstance(holders, Trace):
                    holders = source.build(context)
                _refuse_steps_without_online(experiment, holders, never)
                absent.append(
                    f"seed {seed}: {len(never)} of {holders.num_clients} ({_listed(never, holders)})"
                )
        del holders
        give_back_freed_memory()
    if not absent:
        return []
    more = f", and of {len(absent) - MOST_NAMED} more seeds" if len(absent) > MOST_NAMED else ""
    return [
        f"clients that are never online, by devices.availability, take no part: "
        f"{'; '.join(absent[:MOST_NAMED])}{more}"
    ]


def _listed(ids: Ints, holders: Holders) -> str:
    """The first of some clients, by their names."""
    more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
    names = names_of(holders)
    return ", ".join(names[client] for client in ids[:MOST_IDS].tolist()) + more


def _refuse_steps_without_online(experiment: Experiment, holders: Holders, never: Ints) -> None:
    """ConfigurationError if at a data step of the run all clients with training samples are never online."""
    clients, rounds, each = holders.num_clients, experiment.round.rounds, holders.rounds_per_step
    ever = np.setdiff1d(np.arange(clients), never)
    if len(ever) == 0:
        raise ConfigurationError(f"devices.availability: none of the {clients} clients is ever online")
    for step in range(-(-rounds // each)):
        if not holders.anybody_holds(ever, ("train",), step):
            raise ConfigurationError(
                f"round.rounds = {rounds}: at data step {step}, which {experiment.round.counted} "
                f"{step * each} begins, all clients that hold a training sample are never online, by "
                f"devices.availability ({_listed(never, holders)})"
            )


def never_online(availability: Availability, num_clients: int) -> Ints:
    """The ids, ascending, of the clients that are offline at all times."""
    everyone = np.arange(num_clients)
    later = np.isfinite(availability.next_online_s(everyone, 0.0))
    return np.flatnonzero(~(later | availability.online(everyone, 0.0)))


def _fitting_holders(
    experiment: Experiment, source: TraceSource, first: Trace, context: TraceContext
) -> Holders:
    """Who is known to hold samples with a seed; ConfigurationError if its trace does not fit.

    `first` is the trace of another seed, which is fit.
    """
    certain = source.certain_holders(first, context)
    if certain is not None:
        with suppress(ConfigurationError):  # then the trace itself may do, or is refused for its own reason
            check_rounds(experiment, certain, context.streams)
            return certain
    trace = source.build(context)
    check_rounds(experiment, trace, context.streams)
    return trace
