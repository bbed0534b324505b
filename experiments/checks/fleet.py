"""What a fleet can do in the rounds of a configuration: how long visits take, and when clients are online.

By a run's own latency model and settings, over the clients that hold samples at the first data step, with one
model each; without faults and requests. Limits are what a pacing gives a visit: a duration, deadline or
time-out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator.federation.method import Parts
from coordinator.pacing import Pacing
from emulator.arrays import Bools, Floats
from emulator.errors import ConfigurationError
from emulator.latency import Phases
from emulator.ports import Availability, Executor
from experiments.build import World, round_settings, visit_phases
from experiments.config import Arm, Experiment

DAY_S = 86_400.0
FEWEST = 0.1
"""Share of clients that are to finish a visit, and to be online, by when it matters."""

UNITS = (
    ("seconds_per_sample", 10.0, math.inf, "milliseconds? Divide it by 1,000"),
    ("download_bytes_per_s", 0.0, 1000.0, "kilobits or megabits? Name it download_kbps, of 1,000 bits"),
    ("upload_bytes_per_s", 0.0, 1000.0, "kilobits or megabits? Name it upload_kbps, of 1,000 bits"),
    ("latency_s", 10.0, math.inf, "milliseconds? Divide it by 1,000"),
)
"""For each column of a fleet between which bounds its median suggests another unit, and what to do."""

UNIX_S = 5e8
"""First instants from here on are Unix seconds: virtual time begins at 0, and this is the year 1985."""


@dataclass(frozen=True)
class Visits:
    """The visits of an arm; columns of shape (n,), of the clients that hold samples at first.

    Attributes:
        phases: How long each phase takes.
        limit_s: What a visit may take at most; inf: nothing limits it.
        limit: That limit as its key and value; empty without one.
        is_certain: Whether visits compute so long in any case: not where steps follow from the data, clients
            stop early or a schedule sets them.
    """

    phases: Phases
    limit_s: float
    limit: str
    is_certain: bool

    @property
    def finishes(self) -> Bools:
        """(n,) whether the visit ends within the limit."""
        return self.phases.total_s <= self.limit_s

    @property
    def longest_phase(self) -> str:
        """The phase that takes most of the shortest visit."""
        at = int(np.argmin(self.phases.total_s))
        names = ("download_s", "compute_s", "upload_s")
        return max(names, key=lambda name: getattr(self.phases, name)[at]).removesuffix("_s")


def visits_of(experiment: Experiment, arm: Arm, executor: Executor, parts: Parts, world: World) -> Visits:
    """The visits of an arm in a world, before its first round."""
    samples = world.trace.held(np.arange(world.trace.num_clients), "train", 0).counts()
    clients = np.flatnonzero(samples)
    settings = round_settings(experiment, arm, executor.solver)
    limit_s, limit = _limit(parts.pacing)
    return Visits(
        visit_phases(experiment, arm, executor, world, clients, samples[clients]),
        limit_s,
        limit,
        settings.local_epochs is None and not settings.stops and not set_by_schedules(parts),
    )


def set_by_schedules(parts: Parts) -> list[str]:
    """The settings that schedules change and visits last by."""
    return sorted({name for part in parts.schedules for name in part.sets} & {"batch_size", "local_steps"})


def _limit(pacing: Pacing) -> tuple[float, str]:
    """The least limit of a visit, in virtual seconds, and its key and value; inf and "" without one."""
    named: dict[str, Any] = {
        "duration_s" if hasattr(pacing.settings, "duration_s") else "deadline_s": pacing.deadline_s,
        "timeout_s": pacing.timeout_s,
    }
    limits = [(value, f"pacing.{key} = {value:g}") for key, value in named.items() if value is not None]
    return min(limits, default=(math.inf, ""))


def refuse_unreachable_limit(experiment: Experiment, visits: Visits, world: World) -> None:
    """ConfigurationError if no client can ever finish a visit within the limit.

    Of visits whose computing is not certain, only the transfers count.
    """
    phases = visits.phases
    least = phases.total_s if visits.is_certain else phases.download_s + phases.upload_s
    if len(least) and visits.limit_s < least.min():
        hints = "".join(f"; {hint}" for hint in unit_hints(world))
        raise ConfigurationError(
            f"{visits.limit}: no client can finish a visit in it: the shortest takes {least.min():,.4g} s, "
            f"most of it {visits.longest_phase}, by devices.profile = {experiment.devices.profile!r}{hints}; "
            f"raise it, or lower training.local_steps or devices.model_factor"
        )


def unit_hints(world: World) -> Iterator[str]:
    """What looks like another unit in the fleet, each as a phrase with the value and the remedy."""
    for column, least, most, remedy in UNITS:
        median = float(np.median(getattr(world.fleet, column)))
        if least < median < most:
            yield f"{column} = {median:,.4g} in the median: {remedy}"


def online_from(availability: Availability, num_clients: int) -> Floats:
    """(n,) when each client is online for the first time; inf: never."""
    everyone = np.arange(num_clients)
    later = availability.next_online_s(everyone, 0.0)
    return np.where(availability.online(everyone, 0.0), 0.0, later)


def tenth_online_s(from_s: Floats) -> float:
    """When the tenth part of clients, rounded up, have been online; inf: never."""
    return float(np.sort(from_s)[math.ceil(FEWEST * len(from_s)) - 1])


def round_s(pacing: Pacing, visit_s: float) -> float:
    """Virtual seconds of a round of visits that all take `visit_s` and come back."""
    participants, most_s = pacing.cohort.participants, pacing.deadline_s or math.inf
    if pacing.concurrency is not None:
        return visit_s * participants / pacing.concurrency
    return min(visit_s, most_s) if pacing.closes(participants, visit_s) else most_s


def run_s(experiment: Experiment, pacing: Pacing, visit_s: float) -> float:
    """Virtual seconds of a run whose visits all take `visit_s`."""
    each = experiment.round.seconds_per_round or round_s(pacing, visit_s)
    return experiment.round.rounds * each


def fleet_warnings(experiment: Experiment, arm: str, visits: Visits, pacing: Pacing) -> Iterator[str]:
    """What of an arm's rounds leaves hardly anything to see: few visits that end, or no evaluation."""
    share = float(visits.finishes.mean()) if len(visits.finishes) else 1.0
    median_s = float(np.median(visits.phases.total_s)) if len(visits.finishes) else 0.0
    if share < FEWEST:
        yield (
            f"arm {arm!r}: {100 * share:.2g} % of the clients can finish a visit within {visits.limit}; the "
            f"median takes {median_s:,.4g} s, by devices.profile; raise the limit, or lower "
            f"training.local_steps or devices.model_factor"
        )
    rounds, asked_s = experiment.round, experiment.report.horizon_s
    length_s = run_s(experiment, pacing, median_s)
    if rounds.evaluate_every_s is not None:
        key, first_s = f"round.evaluate_every_s = {rounds.evaluate_every_s:g}", rounds.evaluate_every_s
    else:
        each_s = length_s / rounds.rounds if rounds.seconds_per_round is None else round_s(pacing, median_s)
        key, first_s = f"round.evaluate_every = {rounds.evaluate_every}", rounds.evaluate_every * each_s
    if first_s > length_s:
        yield f"arm {arm!r}: {key}: of about {length_s:,.4g} s only the end is evaluated; lower it"
    elif asked_s is not None and first_s > asked_s:
        yield (
            f"arm {arm!r}: report.horizon_s = {asked_s:g}: the first evaluation is at about {first_s:,.4g} "
            f"s, by {key}, and no figure has anything to show; raise the horizon, or evaluate earlier"
        )


def end_of(experiment: Experiment, length_s: float, first_s: float) -> tuple[float, str]:
    """When figures end, and what says so: the horizon, or the end of a run.

    A run whose rounds do not follow virtual time lasts about `length_s` from when somebody is online on, at
    `first_s`.
    """
    end_s = length_s if experiment.round.seconds_per_round is not None else first_s + length_s
    horizon_s = experiment.report.horizon_s
    if horizon_s is not None and horizon_s < end_s:
        return horizon_s, f"report.horizon_s = {horizon_s:,.6g}"
    return end_s, f"the end of a run at about {end_s:,.6g} s"


def online_warnings(experiment: Experiment, from_s: Floats, length_s: float) -> Iterator[str]:
    """What hours leave hardly anybody online: by when figures end, or before a round is given up."""
    days, first_s = experiment.round.max_wait_days, float(from_s.min(initial=math.inf))
    end_s, end = end_of(experiment, length_s, first_s)
    unit = "Unix seconds? Subtract the first instant" if first_s >= UNIX_S else "begin the hours earlier"
    tenth_s = tenth_online_s(from_s)
    if days * DAY_S < first_s < math.inf:
        yield (
            f"devices.availability: nobody is online before {first_s:,.6g} s, and a run waits "
            f"round.max_wait_days = {days:g}; {unit}"
        )
    elif end_s < tenth_s and first_s < math.inf:
        yield (
            f"devices.availability: not a tenth of the clients are online before {tenth_s:,.6g} s, after "
            f"{end}; {unit}"
        )
