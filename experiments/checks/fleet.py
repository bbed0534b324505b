"""What a fleet can do in the rounds of a configuration: how long visits take, and when clients are online.

By a run's own latency model and settings, over the clients that hold samples at the first data step, with one
model each; without faults and requests. Limits are what a pacing gives a visit: a duration, deadline or
time-out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

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
    ("seconds_per_sample", 10.0, math.inf, "milliseconds? Name it ms_per_sample"),
    ("download_bytes_per_s", 0.0, 1000.0, "kilobits or megabits? Name it download_kbps or download_mbps"),
    ("upload_bytes_per_s", 0.0, 1000.0, "kilobits or megabits? Name it upload_kbps or upload_mbps"),
    ("latency_s", 10.0, math.inf, "milliseconds? Name it latency_ms"),
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
        least_s: What a visit takes at least, of any client and at any step: its upload, and its computing,
            unless steps follow from the data, clients stop early or a schedule sets them. What a client has
            downloaded for a request is not sent again.
    """

    phases: Phases
    limit_s: float
    limit: str
    least_s: float

    @property
    def finishes(self) -> Bools:
        """(n,) whether the visit ends within the limit."""
        return self.phases.total_s <= self.limit_s

    def spread_s(self) -> tuple[float, float, float]:
        """The shortest, the median and the longest visit."""
        least, median, most = np.quantile(self.phases.total_s, [0, 0.5, 1]).tolist()
        return least, median, most


def visits_of(experiment: Experiment, arm: Arm, executor: Executor, parts: Parts, world: World) -> Visits:
    """The visits of an arm in a world, before its first round."""
    everyone = np.arange(world.trace.num_clients)
    samples = world.trace.held(everyone, "train", 0).counts()
    settings = round_settings(experiment, arm, executor.solver)
    of_all = visit_phases(experiment, arm, executor, world, everyone, samples)
    is_certain = settings.local_epochs is None and not settings.stops and not set_by_schedules(parts)
    least_s = of_all.upload_s + (of_all.compute_s if is_certain else 0)
    holding = samples > 0
    phases = Phases(of_all.download_s[holding], of_all.compute_s[holding], of_all.upload_s[holding])
    return Visits(phases, *limit_of(parts.pacing), float(least_s.min()))


def set_by_schedules(parts: Parts) -> list[str]:
    """The settings that schedules change and visits last by."""
    return sorted({name for part in parts.schedules for name in part.sets} & {"batch_size", "local_steps"})


def limit_of(pacing: Pacing) -> tuple[float, str]:
    """The least limit of a visit, in virtual seconds, and its key and value; inf and "" without one.

    A deadline is one if the visits that are out then are abandoned, though none is back.
    """
    limits: dict[str, float | None] = {"timeout_s": pacing.timeout_s}
    if pacing.deadline_s is not None and pacing.cancels:
        one, none = np.ones((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
        if pacing.full(one[0], one, none, np.array([[pacing.deadline_s]])).all():
            has_duration = "duration_s" in type(pacing.settings).model_fields
            limits["duration_s" if has_duration else "deadline_s"] = pacing.deadline_s
    known = [(value, f"pacing.{key} = {value:g}") for key, value in limits.items() if value is not None]
    return min(known, default=(math.inf, ""))


def refuse_unreachable_limit(experiment: Experiment, visits: Visits, world: World) -> None:
    """ConfigurationError if no client can ever finish a visit within the limit; jitter may shorten one."""
    if visits.limit_s < visits.least_s and not experiment.devices.jitter.of_visits:
        hints = "".join(f"; {hint}" for hint in unit_hints(world))
        raise ConfigurationError(
            f"{visits.limit}: no client can finish a visit in it: without its download the shortest takes "
            f"{visits.least_s:,.4g} s, by devices.profile = {experiment.devices.profile.path!r}{hints}; "
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
    """Virtual seconds of a run whose visits all take `visit_s`, from when somebody is online on."""
    each = experiment.round.seconds_per_round or round_s(pacing, visit_s)
    return experiment.round.rounds * each


def visit_warnings(experiment: Experiment, arm: str, visits: Visits) -> Iterator[str]:
    """That hardly a client of an arm finishes a visit in time."""
    share = float(visits.finishes.mean())
    profile = "devices.profile" + (" before jitter" if experiment.devices.jitter.of_visits else "")
    if share < FEWEST:
        yield (
            f"arm {arm!r}: {100 * share:.2g} % of the clients can finish a visit within {visits.limit}; the "
            f"median takes {visits.spread_s()[1]:,.4g} s, by {profile}; raise the limit, or lower "
            f"training.local_steps or devices.model_factor"
        )


def evaluation_warnings(
    experiment: Experiment, arm: str, visits: Visits, pacing: Pacing, first_s: float
) -> Iterator[str]:
    """That no evaluation of an arm but the last one is due, or none by the horizon.

    It is so even if all visits are as short, or as long, as any. Somebody is online from `first_s` on.
    """
    rounds, asked_s = experiment.round, experiment.report.horizon_s
    least_s, _, most_s = visits.spread_s()
    if rounds.evaluate_every_s is not None:
        key, earliest_s = f"round.evaluate_every_s = {rounds.evaluate_every_s:g}", rounds.evaluate_every_s
        is_last = earliest_s > end_s(experiment, run_s(experiment, pacing, most_s), first_s)
    else:
        shortest_s = round_s(pacing, least_s)
        key = f"round.evaluate_every = {rounds.evaluate_every}"
        earliest_s = rounds.evaluate_every * shortest_s
        is_last = rounds.evaluate_every > (rounds.closed or run_s(experiment, pacing, least_s) / shortest_s)
    if is_last:
        length = f" of {rounds.closed} rounds" if rounds.closed else ""
        yield f"arm {arm!r}: {key}: only the end of a run{length} is evaluated; lower it"
    elif asked_s is not None and earliest_s > asked_s:
        yield (
            f"arm {arm!r}: report.horizon_s = {asked_s:g}: no evaluation is due before {earliest_s:,.4g} s, "
            f"by {key}, and no figure has anything to show; raise the horizon, or evaluate earlier"
        )


def end_s(experiment: Experiment, length_s: float, first_s: float) -> float:
    """When a run of this length ends: from 0 on where rounds follow virtual time, else from `first_s` on.

    `first_s` is when somebody is online for the first time.
    """
    return length_s if experiment.round.seconds_per_round is not None else first_s + length_s


def online_warnings(experiment: Experiment, from_s: Floats, length_s: float) -> Iterator[str]:
    """What hours leave hardly anybody online: by the horizon or the end, or before a round is given up.

    `length_s` is that of a run, by its longest visits.
    """
    days, first_s = experiment.round.max_wait_days, float(from_s.min(initial=math.inf))
    last_s, tenth_s = end_s(experiment, length_s, first_s), tenth_online_s(from_s)
    end, horizon_s = f"the end of a run at about {last_s:,.6g} s", experiment.report.horizon_s
    if horizon_s is not None and horizon_s < last_s:
        last_s, end = horizon_s, f"report.horizon_s = {horizon_s:,.6g}"
    unit = "Unix seconds? Name the columns start and end" if first_s >= UNIX_S else "begin the hours earlier"
    if days * DAY_S < first_s < math.inf:
        yield (
            f"devices.availability: nobody is online before {first_s:,.6g} s, and a run waits "
            f"round.max_wait_days = {days:g}; {unit}"
        )
    elif last_s < tenth_s and first_s < math.inf:
        yield (
            f"devices.availability: not a tenth of the clients are online before {tenth_s:,.6g} s, after "
            f"{end}; {unit}"
        )
