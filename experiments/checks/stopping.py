"""Checks of arms whose clients stop early, in the world of a seed, before any run."""

from __future__ import annotations

from functools import partial

import numpy as np

from coordinator.federation.method import Parts
from emulator.errors import ConfigurationError
from executor.executor import LocalExecutor
from experiments.build import World, visit_phases
from experiments.config import Arm, Experiment

AT_ONCE = 1_000
"""Clients whose held-out samples are drawn at once."""


def check_stopping(
    experiment: Experiment,
    parts: Parts,
    arm: Arm,
    executor: LocalExecutor,
    world: World,
) -> None:
    """Reject an arm whose clients stop early, if it cannot be timed, or nobody has done an epoch in time.

    Args:
        experiment: The configuration.
        parts: The parts of the arm.
        arm: The arm.
        executor: Its executor.
        world: The world of a seed.

    Raises:
        ConfigurationError: One line with the key, the value and the rule.
    """
    if not executor.solver.stops:
        return
    solver = f"solver [{', '.join(rule.kind for rule in arm.solver)}]"
    if experiment.devices.time_model == "fedscale":
        raise ConfigurationError(
            f'devices.time_model = "fedscale": takes no time to predict samples, as the {solver} does after '
            f'each epoch; set devices.time_model = "driftscale"'
        )
    if (executor.solver.epochs or arm.training.local_epochs) is None:
        raise ConfigurationError(
            f"{solver}: stops after an epoch, and training.local_steps = {arm.training.local_steps} counts "
            f"steps; set training.local_epochs, the most epochs of a visit"
        )
    for schedule, chosen in zip(parts.schedules, arm.schedules, strict=True):
        if "local_steps" in schedule.sets:
            raise ConfigurationError(
                f"schedule {chosen.kind!r}: sets local_steps, and the {solver} decides how many steps a task "
                f"takes; take one of the two"
            )
    if arm.training.last == "short" and parts.adaptation.serves_one:
        raise ConfigurationError(
            f"training.last = 'short': what adaptation = {arm.adaptation.kind!r} costs is counted over all "
            f"that a client holds, and the {solver} holds some of that out; set last = 'filled'"
        )
    if not parts.adaptation.federates:
        raise ConfigurationError(
            f"adaptation = {arm.adaptation.kind!r}: trains for so many steps, and the {solver} decides how "
            f"many a task takes; leave the rule out"
        )
    limits_s = [
        limit_s for limit_s in (parts.pacing.deadline_s, parts.pacing.timeout_s) if limit_s is not None
    ]
    if limits_s:
        _refuse_short_deadline(min(limits_s), experiment, arm, executor, world)


def _refuse_short_deadline(
    deadline_s: float, experiment: Experiment, arm: Arm, executor: LocalExecutor, world: World
) -> None:
    """ConfigurationError if no client can have done one epoch, over what it holds at first, by a deadline."""
    epoch = partial(visit_phases, experiment, arm, executor, world)
    counts = world.trace.held(np.arange(world.trace.num_clients), "train", 0).counts()
    clients = np.flatnonzero(counts)
    # The fastest first, so that mostly a look at some of them will do.
    clients = clients[np.argsort(epoch(clients, counts[clients]).total_s, kind="stable")]
    fastest_s = np.inf
    for first in range(0, len(clients), AT_ONCE):
        some = clients[first : first + AT_ONCE]
        samples = world.trace.held(some, "train", 0)
        seconds = epoch(some, samples.counts() - executor.held_out(samples)).total_s
        fastest_s = min(fastest_s, float(seconds.min()))
        if fastest_s <= deadline_s:
            return
    raise ConfigurationError(
        f"pacing = {arm.pacing.kind!r}: its {deadline_s:g} s end before any client has done one epoch, which "
        f"takes the fastest one {fastest_s:.4g} s with its transfers; give it more time, or lower "
        f"devices.model_factor"
    )
