"""Composition: a seed's world, and one run of an arm in it.

Puts the engine's own classes (trace stream, faults, latency, coordinator, local executor) together with the
parts that the configuration has chosen from the registries. Knows no run directory, and not how several ranks
share a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coordinator.coordinator import Coordinator
from coordinator.federation import Federation
from coordinator.federation.faults import Faults
from coordinator.federation.measurement import scored_clients
from coordinator.federation.method import Parts, RoundSettings
from coordinator.pacing import CohortSize
from coordinator.schedules import Schedule
from device_profiles import SUFFIXES as PROFILE_SUFFIXES
from device_profiles import DeviceProfile, Fleet, load_profile, read_profile
from emulator.arrays import Floats
from emulator.emulation import Emulation, Log, Observer
from emulator.errors import ConfigurationError
from emulator.latency import TIME_MODELS
from emulator.ports import Availability, Executor, Segment
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.flops import forward_flops
from executor.malloc import give_back_freed_memory
from executor.replicas import ReplicatedExecutor
from experiments.config import Arm, Experiment, Locate
from experiments.naming import naming
from experiments.stopwatch import Stopwatch
from traces.sources import TraceContext
from traces.trace import Trace, TraceStream

PROBED_S = 2 * 86_400
MOST_CONCEPTS = 10_000  # entries of the table of concepts that a log's header still carries


@dataclass(frozen=True)
class World:
    """What all arms of one seed share: the clients, their data, their devices, when these are online, and
    what goes wrong."""

    streams: RandomStreams
    trace: Trace
    profile: DeviceProfile
    fleet: Fleet
    availability: Availability
    faults: Faults

    def fingerprint(self) -> dict[str, str]:
        """sha256 of the trace, of the fleet's columns, and of what availability answers over two days."""
        everyone = np.arange(self.trace.num_clients)
        answers = [
            query(everyone, float(time_s))
            for time_s in range(0, PROBED_S, PROBED_S // 8)
            for query in (self.availability.next_online_s, self.availability.next_offline_s)
        ]
        return {
            "trace": self.trace.digest(),
            "fleet": _sha256(*self.fleet.columns().values()),
            "availability": _sha256(*answers),
        }


def _sha256(*columns: Floats) -> str:
    state = hashlib.sha256()
    for column in columns:
        state.update(np.ascontiguousarray(column).tobytes())
    return state.hexdigest()


def build_world(experiment: Experiment, seed: int, locate: Locate, scratch: Path | None = None) -> World:
    """Draw the clients of one seed; ConfigurationError when the rounds ask for more than there are.

    A large trace is laid out in a file without a name in the folder `scratch` (None: the system's).
    """
    streams = RandomStreams(seed)
    trace = experiment.trace.build().build(TraceContext(experiment.round.rounds, streams, locate, scratch))
    clients = trace.num_clients
    for key in ("participants", "min_online"):
        wanted = getattr(experiment.round, key)
        if wanted > clients:
            raise ConfigurationError(f"round.{key} = {wanted}: more than the {clients} clients of the trace")
    refuse_steps_without_evaluation(experiment, trace)
    refuse_published_without_concepts(experiment, trace)
    profile = find_profile(experiment.devices.profile, locate)
    fleet = profile.draw(clients, streams.generator("devices"))
    availability = experiment.devices.availability.build().build(
        clients, streams.generator("availability"), locate
    )
    faults = Faults(experiment.faults, clients, trace.num_labels, streams)
    trace = trace.with_flipped_labels(faults.clients("label_flip"))
    give_back_freed_memory()
    return World(streams, trace, profile, fleet, availability, faults)


def build_emulation(
    experiment: Experiment,
    arm: Arm,
    world: World,
    executor: Executor,
    log: Log,
    observers: tuple[Observer, ...],
    stopwatch: Stopwatch,
) -> Emulation:
    """One (arm, seed), ready to run; `stopwatch` collects where its wall time goes."""
    parts = build_parts(experiment, arm)
    latency = TIME_MODELS[experiment.devices.time_model](
        world.fleet, resolve_model_factor(experiment, arm, world)
    )
    settings = RoundSettings(
        rounds=experiment.round.rounds,
        local_steps=arm.training.local_steps,
        batch_size=arm.training.batch_size,
        learning_rate=arm.training.learning_rate,
        evaluate_every=experiment.round.evaluate_every,
        min_online=experiment.round.min_online,
        max_wait_days=experiment.round.max_wait_days,
        evaluate_clients=experiment.round.evaluate_clients,
        log_client_accuracy=experiment.round.log_client_accuracy,
        nonfinite_updates=experiment.round.nonfinite_updates,
    )
    federation = Federation(
        parts,
        settings,
        stream=TraceStream(world.trace),
        availability=world.availability,
        latency=latency,
        executor=executor,
        streams=world.streams,
        faults=world.faults,
        meter=stopwatch.measure,
    )
    return Emulation(Coordinator(federation, parts.pacing), log, observers)


def build_parts(experiment: Experiment, arm: Arm) -> Parts:
    """The row of parts of one arm, fresh; ConfigurationError when two schedules set the same number."""
    cohort = CohortSize(
        experiment.round.participants,
        experiment.round.over_commit,
        rounding="down" if experiment.devices.time_model == "fedscale" else "up",
    )
    return Parts(
        clusterer=arm.clusterer.build(),
        detectors={name: detector.build() for name, detector in arm.detectors.items()},
        selector=arm.selector.build(),
        memory=arm.memory.build(),
        aggregator=arm.aggregator.build(),
        pacing=arm.pacing.build(cohort),
        schedules=_build_schedules(arm),
    )


def _build_schedules(arm: Arm) -> tuple[Schedule, ...]:
    schedules = []
    set_by: dict[str, str] = {}
    for chosen in arm.schedules:
        schedule = chosen.build()
        for name in sorted(schedule.sets):
            if name in set_by:
                raise ConfigurationError(
                    f"schedules {set_by[name]!r} and {chosen.kind!r} both set {name}; only one may"
                )
            set_by[name] = chosen.kind
        schedules.append(schedule)
    return tuple(schedules)


def build_executor(experiment: Experiment, arm: Arm, world: World) -> LocalExecutor:
    """The executor that trains and scores one arm, in this process."""
    return LocalExecutor(
        world.trace,
        arm.training.model.build(),
        [rule.build() for rule in arm.solver],
        world.streams,
        experiment.executor,
    )


def run_header(
    experiment: Experiment, arm: Arm, world: World, executor: LocalExecutor | ReplicatedExecutor
) -> dict[str, Any]:
    """The first line of a run's log: what the rounds below it are of.

    `concepts` is the true one of each client (columns) at each data step (rows, the last for tests only),
    where the trace knows it and the table is not too large. `scored_clients` are the ids of those that are
    scored, where these are a sample; `byzantine` byzantine clients, by kind, where there are any.
    """
    concepts = world.trace.concepts
    known = {} if concepts is None or concepts.size > MOST_CONCEPTS else {"concepts": concepts.tolist()}
    clients = world.trace.num_clients
    scored = scored_clients(clients, experiment.round.evaluate_clients, world.streams)
    sampled = {"scored_clients": scored} if len(scored) < clients else {}
    byzantine = {each.kind: world.faults.clients(each.kind) for each in world.faults.byzantine}
    faulty = {"byzantine": byzantine} if byzantine else {}
    return {
        "arm": arm.name,
        "seed": world.streams.seed,
        "num_clients": world.trace.num_clients,
        "num_labels": world.trace.num_labels,
        "num_parameters": executor.num_parameters,
        "strategy": executor.strategy,
        "chunk": executor.chunk,
        "model_factor": resolve_model_factor(experiment, arm, world),
        **known,
        **sampled,
        **faulty,
    }


def refuse_steps_without_evaluation(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError unless a trace that knows its concepts is evaluated at the end of each data step."""
    every = experiment.round.evaluate_every
    if trace.concepts is not None and trace.rounds_per_step % every != 0:
        raise ConfigurationError(
            f"round.evaluate_every = {every}: must divide trace.rounds_per_step = {trace.rounds_per_step}, "
            f"so that every data step is scored at its end"
        )


def refuse_published_without_concepts(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError where published accuracies have nothing of ours to stand beside."""
    if trace.concepts is None and any(values for _, values in experiment.report.published or ()):
        raise ConfigurationError(
            "report.published: accuracies omitting and including drift need a trace that knows its concepts, "
            'as trace.source = "concepts" does; leave it out'
        )


def refuse_unfit_arms(experiment: Experiment, arms: Sequence[str], world: World) -> None:
    """ConfigurationError names the first of `arms` that cannot be put together, or not in this world."""
    named = {arm.name: arm for arm in experiment.arm}
    layouts: dict[str, Mapping[str, Segment]] = {}  # of each model and solver, however many arms have it
    for arm in (named[name] for name in arms):
        with naming(f"arm {arm.name!r}"):
            clusterer = build_parts(experiment, arm).clusterer
            trained = repr((arm.training.model, arm.solver))
            if trained not in layouts:
                layouts[trained] = build_executor(experiment, arm, world).layout
            clusterer.check(layouts[trained], world.trace.concepts is not None)
    model_factors(experiment, arms, world)


def find_profile(name_or_path: str, locate: Locate) -> DeviceProfile:
    """The profile of that name, or in the file that `locate` finds."""
    if name_or_path.endswith(PROFILE_SUFFIXES):
        return read_profile(locate(name_or_path))
    return load_profile(name_or_path, where="devices.profile")


def model_factors(experiment: Experiment, arms: Sequence[str], world: World) -> dict[str, float]:
    """The model factor of each of `arms`; that of a model is worked out once."""
    named = {arm.name: arm for arm in experiment.arm}
    factors: dict[str, float] = {}
    for arm in (named[name] for name in arms):
        model = repr(arm.training.model)
        if model not in factors:
            factors[model] = resolve_model_factor(experiment, arm, world)
    return {name: factors[repr(named[name].training.model)] for name in arms}


def resolve_model_factor(experiment: Experiment, arm: Arm, world: World) -> float:
    """`devices.model_factor` as a number: given, or the FLOPs of the arm's model over the reference's."""
    factor = experiment.devices.model_factor
    if experiment.devices.time_model == "fedscale":
        if factor not in ("flops", 1):
            raise ConfigurationError(
                f'devices.model_factor = {factor:g}: devices.time_model = "fedscale" is blind to the model; '
                f"set 1"
            )
        return 1.0
    if factor != "flops":
        return factor
    if world.profile.reference_flops is None:
        raise ConfigurationError(
            f'devices.model_factor = "flops": the profile {experiment.devices.profile!r} does not say how '
            f"many FLOPs its reference model needs; give a number, such as 1"
        )
    spec = arm.training.model.build()
    return (
        forward_flops(spec, world.trace.sample_shape, world.trace.num_labels) / world.profile.reference_flops
    )
