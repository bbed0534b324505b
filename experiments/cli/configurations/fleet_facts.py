"""Facts of `check` on the fleet: where it comes from, how long visits take, and when clients are online.

They are the table "fleet", of facts whose names begin with `FLEET`; see `experiments.checks.fleet`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from coordinator.federation.method import Parts
from emulator.arrays import Floats
from emulator.latency import NO_JITTER
from emulator.messages import SolverFacts
from experiments.build import World, build_executor, build_parts, round_settings
from experiments.checks.fleet import (
    Visits,
    end_s,
    evaluation_warnings,
    online_from,
    online_warnings,
    round_s,
    run_s,
    set_by_schedules,
    tenth_online_s,
    unit_hints,
    visit_warnings,
    visits_of,
)
from experiments.cli.configurations.check_table import FLEET
from experiments.config import Arm, Experiment

MOST_ROUNDS = 100_000
"""Rounds of a run beyond which there is a warning, if its shortest visits allow them."""

PHASES = ("download", "compute", "upload")


def fleet_facts(experiment: Experiment, world: World, note: Callable[[str], None]) -> dict[str, object]:
    """The facts of the table "fleet", by name; warnings go to `note`."""
    facts: dict[str, dict[str, str]] = {}  # by arm
    from_s = online_from(world.availability, world.trace.num_clients)
    first_s = float(from_s.min())
    most, typical_s, longest_s, warnings = 0.0, 0.0, 0.0, list[str]()
    for arm in experiment.arm:
        executor, parts = build_executor(experiment, arm, world), build_parts(experiment, arm)
        visits, pacing = visits_of(experiment, arm, executor, parts, world), parts.pacing
        facts[arm.name] = _of_visits(visits, _assumed(experiment, arm, executor.solver, parts))
        least_s, median_s, most_s = visits.spread_s()
        length_s = run_s(experiment, pacing, median_s)
        typical_s, longest_s = max(typical_s, length_s), max(longest_s, run_s(experiment, pacing, most_s))
        if experiment.round.seconds_per_round is not None:
            about = float(f"{max(1, length_s / round_s(pacing, median_s)):.2g}")
            facts[arm.name]["rounds of a run"] = f"about {about:,.0f}, if every visit takes the median"
            most = max(most, length_s / round_s(pacing, least_s))
        warnings += visit_warnings(experiment, arm.name, visits)
        warnings += evaluation_warnings(experiment, arm.name, visits, pacing, first_s)
    warnings += [f"devices.profile: {hint}" for hint in unit_hints(world)]
    warnings += online_warnings(experiment, from_s, longest_s)
    if most > MOST_ROUNDS:
        warnings.append(
            f"if every visit takes the least, a run has up to {most:,.0f} rounds, over {MOST_ROUNDS:,}; "
            f"raise devices.model_factor or shorten the run"
        )
    for warning in warnings:
        note(f"{experiment.name}: {warning}")
    names = dict.fromkeys(name for of_arm in facts.values() for name in of_arm)
    by_arm = {name: {arm: known[name] for arm, known in facts.items() if name in known} for name in names}
    return {
        **{f"{FLEET}{name}": text for name, text in world.assigned.items()},
        **_jitter(experiment),
        **{f"{FLEET}{name}": _by_arm(texts) for name, texts in by_arm.items()},
        f"{FLEET}online at the start": int((from_s == 0).sum()),
        f"{FLEET}online from": _online(experiment, from_s, end_s(experiment, typical_s, first_s)),
    }


def _of_visits(visits: Visits, assumed: str) -> dict[str, str]:
    """The facts on the visits of one arm."""
    seconds = {f"seconds of {name}": getattr(visits.phases, f"{name}_s") for name in PHASES}
    facts = {name: _spread(values) for name, values in seconds.items()}
    facts["seconds of a visit"] = f"{_spread(visits.phases.total_s)}{assumed}"
    if visits.limit:
        count, clients = int(visits.finishes.sum()), len(visits.finishes)
        facts["can finish in time"] = (
            f"{count:,} of {clients:,} clients ({100 * count / max(1, clients):.3g} %), by {visits.limit}"
        )
    return facts


def _spread(seconds: Floats) -> str:
    low, median, high = np.quantile(seconds, [0.1, 0.5, 0.9]).tolist()
    return f"{median:,.4g} in the median, {low:,.4g} to {high:,.4g} for 10 to 90 %"


def _online(experiment: Experiment, from_s: Floats, last_s: float) -> str:
    """When the first client and the tenth part of all are online, beside the ends of a run and of a wait."""
    horizon_s = experiment.report.horizon_s
    horizon = "" if horizon_s is None else f"report.horizon_s = {horizon_s:,.6g}, "
    return (
        f"the first at {float(from_s.min()):,.6g} s, a tenth of all by {tenth_online_s(from_s):,.6g} s; "
        f"{horizon}a run ends at about {last_s:,.6g} s, round.max_wait_days = "
        f"{experiment.round.max_wait_days:g}"
    )


def _assumed(experiment: Experiment, arm: Arm, solver: SolverFacts, parts: Parts) -> str:
    """In brackets, of which steps visits are, if these are not known before a run."""
    settings = round_settings(experiment, arm, solver)
    epochs = "of one epoch, as clients stop early" if settings.stops else "over the first data step's samples"
    assumed = [epochs] if settings.local_epochs is not None else []
    assumed += [f"before schedules set {name}" for name in set_by_schedules(parts)]
    return f" ({', '.join(assumed)})" if assumed else ""


def _jitter(experiment: Experiment) -> dict[str, str]:
    """The three standard deviations, if one is not 0."""
    jitter = experiment.devices.jitter
    if jitter == NO_JITTER:
        return {}
    deviations = f"compute {jitter.compute:g}, network {jitter.network:g}, model {jitter.model:g}"
    visits = "; that of visits is not in these seconds" if jitter.of_visits else ""
    return {f"{FLEET}jitter": f"sd of the logs of factors: {deviations}{visits}"}


def _by_arm(texts: Mapping[str, str]) -> str:
    """The text if it is the same for all arms; otherwise each, after the names of its arms."""
    arms = {text: [arm for arm, other in texts.items() if other == text] for text in texts.values()}
    return "; ".join(f"{', '.join(names)}: {text}" if len(arms) > 1 else text for text, names in arms.items())
