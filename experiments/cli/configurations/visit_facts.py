"""Facts of `check` on the visits of each arm: how long they take, and how many rounds follow from that.

They are before any run, by its own latency model and settings: over the clients that hold samples at the
first data step, of one model each; without availability, faults and requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from coordinator.federation.method import Parts, RoundSettings
from coordinator.pacing import Pacing
from experiments.build import World, build_executor, build_parts, round_settings, visit_s
from experiments.config import Experiment

MOST_ROUNDS = 100_000
"""Rounds of a run beyond which there is a warning, if its shortest visits allow them."""

SECONDS = "{:,.4g} at least, {:,.4g} in the median, {:,.4g} or more for the slowest tenth"


def visit_facts(experiment: Experiment, world: World, note: Callable[[str], None]) -> dict[str, object]:
    """`seconds of a visit`, and where rounds follow virtual time `rounds of a run`; warnings go to `note`."""
    run_s, most = experiment.round.rounds * (experiment.round.seconds_per_round or 0), 0.0
    seconds, rounds = dict[str, str](), dict[str, str]()
    samples = world.trace.held(np.arange(world.trace.num_clients), "train", 0).counts()
    clients = np.flatnonzero(samples)
    for arm in experiment.arm:
        executor, parts = build_executor(experiment, arm, world), build_parts(experiment, arm)
        all_s = visit_s(experiment, arm, executor, world, clients, samples[clients])
        least_s, median_s, slow_s = np.quantile(all_s, [0, 0.5, 0.9]).tolist()
        seconds[arm.name] = SECONDS.format(least_s, median_s, slow_s)
        seconds[arm.name] += _assumed(round_settings(experiment, arm, executor.solver), parts)
        about = max(1, run_s / round_s(parts.pacing, median_s))
        rounds[arm.name] = f"about {float(f'{about:.2g}'):,.0f}, if every visit takes the median"
        most = max(most, run_s / round_s(parts.pacing, least_s))
    if most > MOST_ROUNDS:
        note(
            f"{experiment.name}: if every visit takes the least, a run has up to {most:,.0f} rounds, "
            f"over {MOST_ROUNDS:,}; raise devices.model_factor or shorten the run"
        )
    facts: dict[str, object] = {"seconds of a visit": _by_arm(seconds)}
    return facts if run_s == 0 else {**facts, "rounds of a run": _by_arm(rounds)}


def round_s(pacing: Pacing, visit_s: float) -> float:
    """Virtual seconds of a round of visits that all take `visit_s` and come back."""
    participants, most_s = pacing.cohort.participants, pacing.deadline_s or math.inf
    if pacing.concurrency is not None:
        return visit_s * participants / pacing.concurrency
    return min(visit_s, most_s) if pacing.closes(participants, visit_s) else most_s


def _assumed(settings: RoundSettings, parts: Parts) -> str:
    """In brackets, of which steps visits are, if these are not known before a run."""
    epochs = "of one epoch, as clients stop early" if settings.stops else "over the first data step's samples"
    assumed = [epochs] if settings.local_epochs is not None else []
    sets = {name for part in parts.schedules for name in part.sets} & {"batch_size", "local_steps"}
    assumed += [f"before schedules set {name}" for name in sorted(sets)]
    return f" ({', '.join(assumed)})" if assumed else ""


def _by_arm(texts: Mapping[str, str]) -> str:
    """The text if it is the same for all arms; otherwise each, after the names of its arms."""
    arms = {text: [arm for arm, other in texts.items() if other == text] for text in texts.values()}
    return "; ".join(f"{', '.join(names)}: {text}" if len(arms) > 1 else text for text, names in arms.items())
