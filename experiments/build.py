"""Composition: the world of a seed, and the run of one arm in it.

Assembles the engine's own classes (trace stream, faults, latency, coordinator, local executor) and the parts
that the configuration chooses from the registries. It knows neither run directories nor how several ranks
share a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from coordinator.adaptations import Adaptation
from coordinator.adaptations.context import WithContext
from coordinator.coordinator import Coordinator
from coordinator.detectors import DETECTORS
from coordinator.federation import Federation
from coordinator.federation.evaluation.measurement import measured_distance, scored_clients
from coordinator.federation.evaluation.uses import Use
from coordinator.federation.faults import Faults
from coordinator.federation.hearing.client_data import Reference
from coordinator.federation.method import Parts, RoundSettings
from coordinator.federation.tasks import TaskCosts, expected_phases
from coordinator.pacing import CohortSize
from coordinator.representations import Representation
from coordinator.schedules import Schedule
from device_profiles import SUFFIXES as PROFILE_SUFFIXES
from device_profiles import DeviceProfile, Fleet, load_profile, read_profile
from emulator.arrays import Floats, Floats32, Ints
from emulator.counts import exact
from emulator.emulation import Emulation, Log, Observer
from emulator.errors import ConfigurationError
from emulator.latency import NO_JITTER, TIME_MODELS, LatencyModel, Phases
from emulator.messages import SolverFacts
from emulator.own.guards import inspecting, without_chance
from emulator.own_parts import is_own
from emulator.plugins import Chosen
from emulator.ports import Availability, Executor
from emulator.seeding import RandomStreams
from emulator.storage.runlog import DRIFT_COLUMNS
from emulator.storage.table_paths import TablePath
from executor.executor import LocalExecutor
from executor.flops import forward_flops
from executor.malloc import give_back_freed_memory
from executor.models.files import ModelStart
from executor.models.settings import ContextSettings
from executor.objectives.base import Objective
from executor.probing import Probed
from executor.replicas import ReplicatedExecutor
from experiments.config import Arm, Experiment, StatedObjective
from experiments.devices import assign_devices
from experiments.locating import Locate
from experiments.stopwatch import Stopwatch
from traces.holders import Holders
from traces.sources import TraceContext
from traces.tables.changed import ChangedTable
from traces.trace import Trace, TraceStream
from traces.ways import Ways

PROBED_S = 2 * 86_400
MOST_CONCEPTS = 10_000  # entries of a table of concepts, and ids of onsets, that a log's header has


@dataclass(frozen=True)
class World:
    """The world of a seed, which all its arms share: data, devices, availability and faults of the clients.

    Attributes:
        streams: The seed's random streams.
        trace: The data of every client, with labels flipped for the clients of the fault `label_flip`.
        profile: The device profile that the fleet was drawn from.
        fleet: The device of every client.
        availability: When every client is online.
        faults: Which clients are byzantine, and which visits and updates fail.
        assigned: Where `speeds` and `hours` come from, and how clients got theirs, as texts.
        references: The reference models trained so far, by their settings: the parameters, and the number of
            samples of each label.
        probed: What models of the arms do that were probed so far, by the model.
        starts: Where the files of models lie that arms start from, by their name in the configuration.
    """

    streams: RandomStreams
    trace: Trace
    profile: DeviceProfile
    fleet: Fleet
    availability: Availability
    faults: Faults
    assigned: Mapping[str, str] = field(default_factory=dict, compare=False)
    references: dict[str, tuple[Floats32, Ints]] = field(default_factory=dict, compare=False, repr=False)
    probed: dict[str, Probed] = field(default_factory=dict, compare=False, repr=False)
    starts: Mapping[str, Path] = field(default_factory=dict, compare=False, repr=False)

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the trace, the fleet and the availability, by name; they are the same for the same world.

        Returns:
            sha256 in hex of `trace`; of `fleet`, its columns; and of `availability`: the next times of all
            clients to be online and offline, at 8 instants of the first two days.
        """
        everyone = np.arange(self.trace.num_clients)
        next_s = [
            query(everyone, float(time_s))
            for time_s in range(0, PROBED_S, PROBED_S // 8)
            for query in (self.availability.next_online_s, self.availability.next_offline_s)
        ]
        return {
            "trace": self.trace.digest(),
            "fleet": _sha256(*self.fleet.columns().values()),
            "availability": _sha256(*next_s),
        }


def _sha256(*columns: Floats) -> str:
    state = hashlib.sha256()
    for column in columns:
        state.update(np.ascontiguousarray(column).tobytes())
    return state.hexdigest()


def build_world(experiment: Experiment, seed: int, locate: Locate, scratch: Path | None = None) -> World:
    """Draw the world of one seed.

    Args:
        experiment: The configuration.
        seed: Seed of all random streams.
        locate: Finds the files that the configuration names.
        scratch: Folder of the unnamed file that holds a large trace; None: the system's temporary folder.

    Raises:
        ConfigurationError: The trace has fewer clients than `round.participants` or `round.min_online`, or
            the trace does not fit `round.rounds`, `round.evaluate_every` or `report.published`; at some data
            step of the run nobody holds a training sample, or no scored client a test sample.
        DataFileError: A file is missing or damaged.
        UnknownNameError: The catalogue has no device profile of that name.
        RunError: There is no room for the file of a large trace.
    """
    streams = RandomStreams(seed)
    context = TraceContext(experiment.round.rounds, streams, locate, scratch)
    with inspecting(without_chance):
        trace = experiment.trace.build().build(context)
        _refuse_unapplied_changes(experiment, trace)
        clients = trace.num_clients
        check_rounds(experiment, trace, streams)
        profile = find_profile(experiment.devices.profile, locate)
        devices = assign_devices(experiment.devices, profile, trace, streams, locate)
        fleet = devices.fleet(profile, clients, streams)
        starts = {file: locate(file) for file in _start_files(experiment)}
    faults = Faults(experiment.faults, clients, streams, experiment.devices.jitter)
    trace = trace.with_flipped_labels(faults.clients("label_flip"))
    give_back_freed_memory()
    return World(
        streams, trace, profile, fleet, devices.availability, faults, devices.assigned, starts=starts
    )


def _refuse_unapplied_changes(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError if a source of one's own has left out the changes of its settings."""
    if getattr(experiment.trace.settings, "changes", ()) and not isinstance(trace.table, ChangedTable):
        raise ConfigurationError(
            f"trace.changes: the source {experiment.trace.kind!r} does not apply them; end its build with "
            f"return self.changed(trace, context), or leave changes out"
        )


def build_emulation(
    experiment: Experiment,
    arm: Arm,
    world: World,
    executor: Executor,
    log: Log,
    observers: tuple[Observer, ...],
    stopwatch: Stopwatch,
    reference: Reference | None = None,
    measuring: Reference | None = None,
    uses: Sequence[Use] = (),
) -> Emulation:
    """The emulation of one (arm, seed), ready to run.

    Args:
        experiment: The configuration.
        arm: The arm, one of the experiment's.
        world: The world of the seed.
        executor: Trains, scores and evaluates models.
        log: Receives the record of each round.
        observers: Called with the record of each round.
        stopwatch: Collects the wall seconds of training, evaluation, scores, reports and clustering.
        reference: The model that clients measure their reports with; None if the arm needs none.
        measuring: The model that `round.client_distance` is measured with; None if it needs none.
        uses: Other uses of what the arm trains.

    Returns:
        An emulation at virtual time 0.

    Raises:
        ConfigurationError: Two schedules set the same number, or the model factor cannot be determined.
    """
    parts = build_parts(experiment, arm)
    federation = Federation(
        parts,
        round_settings(experiment, arm, executor.solver),
        stream=TraceStream(world.trace),
        availability=world.availability,
        latency=build_latency(experiment, arm, world),
        executor=executor,
        reference=reference,
        measuring=measuring,
        streams=world.streams,
        faults=world.faults,
        ways=ways_of(executor),
        meter=stopwatch.measure,
        uses=uses,
    )
    return Emulation(Coordinator(federation, parts.pacing), log, observers)


def round_settings(experiment: Experiment, arm: Arm, solver: SolverFacts) -> RoundSettings:
    """The settings of the rounds and the local training of one arm, whose solver this is."""
    configured = experiment.round
    of_arm: dict[str, Any] = {
        "accuracies": frozenset(configured.accuracies),
        "client_distance": configured.client_distance.build(),
        "local_steps": arm.training.local_steps,
        "local_epochs": solver.epochs or arm.training.local_epochs,
        "stops": solver.stops,
        "last": arm.training.last,
        "batch_size": arm.training.batch_size,
        "learning_rate": arm.training.learning_rate,
        "log_detection": experiment.detection is not None,
    }
    # By name: a new key of [round] needs a field of `RoundSettings` alone.
    names = {item.name for item in fields(RoundSettings)} - of_arm.keys()
    return RoundSettings(**{name: getattr(configured, name) for name in names}, **of_arm)


def build_latency(experiment: Experiment, arm: Arm, world: World) -> LatencyModel:
    """How long visits take in one arm; ConfigurationError, as `resolve_model_factor` raises it."""
    factor = resolve_model_factor(experiment, arm, world)
    of_devices = device_factors(experiment, arm, world)
    return TIME_MODELS[experiment.devices.time_model](world.fleet, factor, of_devices)


def device_factors(experiment: Experiment, arm: Arm, world: World) -> Floats | None:
    """(N,) the factors of `devices.jitter.model` on the computing of each client; None: all are 1."""
    model = arm.training.model
    name = f"{model.kind} {model.settings!r}"
    return experiment.devices.jitter.device_factors(world.streams, world.trace.num_clients, name)


def visit_phases(
    experiment: Experiment, arm: Arm, executor: Executor, world: World, ids: Ints, held: Ints
) -> Phases:
    """The phases of a visit of `arm` to each client of `ids` (n,) that holds `held` (n,) samples.

    It trains one model. A visit that may stop early is of one epoch, which all take, without predictions.
    """
    samples = round_settings(experiment, arm, executor.solver).visit_samples(held)
    costs = TaskCosts.of(executor.solver, executor.num_parameters)
    return expected_phases(ids, np.ones(len(ids)), samples, costs, build_latency(experiment, arm, world))


def build_parts(experiment: Experiment, arm: Arm) -> Parts:
    """New instances of the parts of one arm; ConfigurationError if two schedules set the same number."""
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
        representation=arm.representation.build(),
        adaptation=build_adaptation(arm),
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
    executor = LocalExecutor(
        reader_of(arm, world.trace),
        arm.training.model.build(),
        [rule.build() for rule in arm.solver],
        world.streams,
        experiment.executor,
        arm.training.batches,
        arm.training.last,
        arm.training.batch_norm,
        world.probed.get(repr(arm.training.model)),
        start_of(arm, world),
        objective_of(experiment, world.trace),
    )
    world.probed[repr(arm.training.model)] = executor.probed
    return executor


def objective_of(experiment: Experiment, trace: Trace) -> Objective:
    """The objective of a configuration, or the one that its trace states.

    Raises:
        ConfigurationError: The samples have not what it reads, or the trace states none that is known.
    """
    chosen = _chosen_objective(experiment, trace)
    objective: Objective = chosen.build()
    objective.check(trace, chosen.kind)
    return objective


def objective_kind(experiment: Experiment, trace: Trace) -> str:
    """The name of the objective of a configuration, or of the one that its trace states."""
    kind: str = _chosen_objective(experiment, trace).kind
    return kind


def _chosen_objective(experiment: Experiment, trace: Trace) -> Chosen[Any]:
    chosen, stated = experiment.training.objective, trace.objective
    if chosen is None and stated is None and trace.num_targets > 0:
        raise ConfigurationError(
            "training.objective: samples have targets beside their label, and nothing says what is told; "
            "choices: 'squared_error', 'absolute_error', 'multi_label', or 'labels'"
        )
    return chosen or stated_objective(stated)


def stated_objective(table: Mapping[str, Any] | None) -> Chosen[Any]:
    """The objective that a trace states, or `labels`; ConfigurationError if it is none that is known."""
    stated = {"objective": "labels" if table is None else table}
    if table is not None and is_own(str(table.get("kind"))):  # whose code no run would be known by
        raise ConfigurationError(
            f"the objective of the trace: {table['kind']!r} is of your own; set it as training.objective"
        )
    try:
        return StatedObjective.model_validate(stated).objective
    except ValidationError as error:
        from experiments.remedies.mistakes import mistakes

        raise ConfigurationError(f"the objective of the trace: {mistakes(error, stated)[0]}") from error


def build_adaptation(arm: Arm) -> Adaptation:
    """A new instance of the adaptation of one arm, or of what gives its model the context that it takes.

    Raises:
        ConfigurationError: The arm has both, or its model has one inside that takes a context.
    """
    model, chosen = arm.training.model, arm.adaptation
    if (inner := getattr(model.settings, "inner", None)) is not None:
        refuse_context(inner, f"model = {model.kind!r}: inner")
    if not isinstance(model.settings, ContextSettings):
        return chosen.build()
    if chosen.kind != "none":
        raise ConfigurationError(
            f"adaptation = {chosen.kind!r}: model = {model.kind!r} has samples read with the context of "
            f"their client, and an arm has one way of reading; set adaptation = 'none'"
        )
    return WithContext(model.settings.size)


def refuse_context(model: Chosen[Any], key: str) -> None:
    """ConfigurationError, which begins with the `key` of a model, if that takes a context."""
    if isinstance(model.settings, ContextSettings):
        raise ConfigurationError(
            f"{key} = {model.kind!r}: takes samples with the context of their client, which the model of an "
            f"arm alone has; take another one, such as 'mlp'"
        )


def reader_of(arm: Arm, trace: Trace) -> Trace | Ways:
    """What the executor of an arm reads: its samples, in the ways that its adaptation chooses if it does."""
    adaptation = build_adaptation(arm)
    return Ways(trace, adaptation.read) if adaptation.reads or adaptation.hears else trace


def ways_of(executor: Executor) -> Ways | None:
    """The ways in which an executor reads samples; None: all are plain."""
    reader = getattr(executor, "reader", None)
    return reader if isinstance(reader, Ways) else None


def _start_files(experiment: Experiment) -> list[str]:
    """The files that arms start from, by their names in the configuration."""
    return sorted({arm.training.start.file for arm in experiment.arm if arm.training.start is not None})


def start_of(arm: Arm, world: World) -> ModelStart | None:
    """The model that an arm starts from; None: a drawn one."""
    start = arm.training.start
    if start is None:
        return None
    return ModelStart(world.starts[start.file], start.cluster, new_head=start.head == "new")


@dataclass(frozen=True)
class HeaderField:
    """A field of the header of a log: what it is, and when it is there; always, if `present` is empty."""

    about: str
    present: str = ""


HEADER: Mapping[str, HeaderField] = {
    "arm": HeaderField("name of the arm"),
    "seed": HeaderField("seed of the run"),
    "num_clients": HeaderField("number of clients"),
    "num_labels": HeaderField("number of labels"),
    "outputs": HeaderField(
        "number of outputs of a model, of a sample or of each of its tokens", "if it is not `num_labels`"
    ),
    "objective": HeaderField(
        "`kind` of the objective, and the `word` for the mean of its hits, which stand as accuracy",
        'if it is not "labels"',
    ),
    "num_parameters": HeaderField("number of parameters of a model"),
    "base": HeaderField(
        "number of frozen parameters, which each client downloads once, with its first model",
        "if there are some",
    ),
    "strategy": HeaderField("how many clients are trained together: `stacked`, `dense` or `loop`"),
    "chunk": HeaderField("how many clients are stacked, at most"),
    "model_factor": HeaderField(
        "how many times slower a sample is than with the reference model of the device profile"
    ),
    "jitter": HeaderField("`devices.jitter`: standard deviations of logs", "if one is not 0"),
    "concepts": HeaderField(
        "true concept of each client (column) at each data step (row); the last row is for tests only",
        f"if the trace knows its concepts, and their table has at most {MOST_CONCEPTS:,} entries",
    ),
    "test_then_train": HeaderField(
        "false: tests are of the row of their own data step, not of the next",
        "beside `concepts`, if it is false",
    ),
    "test_concepts": HeaderField(
        "true concept of the test samples of each client (column) at each data step (row)",
        "beside `concepts`, if these do not tell it",
    ),
    "scored_clients": HeaderField(
        "ids of the clients that are scored", "if only a sample is (`round.evaluate_clients`)"
    ),
    "byzantine": HeaderField("ids of the byzantine clients, by kind", "if there are some"),
    "hear": HeaderField(
        "`round.hear`, the clients that report", 'if it is not "online", and a client is ever offline'
    ),
    "reference": HeaderField(
        "`samples` of each label that the reference model was trained on, of at most `per_label`",
        "if clients report with a reference model",
    ),
    "client_distance": HeaderField(
        "`kind` of the representation in which distances are measured, the `distance`, and the `reference` "
        "model, if there is one",
        'if `round.client_distance` is not "label"',
    ),
    "solver": HeaderField(
        "what a solver does besides plain training: `uploads`, the models that a task sends up, or a part "
        "of one; `gradients`, those that a step takes",
        "if `uploads` or `gradients` is not 1",
    ),
    "onsets": HeaderField(
        "who begins to receive data of another distribution, besides the clients whose concept changes: "
        "`steps`, the data steps at which some do, `counts`, how many at each, and `clients`, their ids",
        "if it is known and there are some; changes of concept are among them if `concepts` is left out; "
        f"`clients` if these are at most {MOST_CONCEPTS:,} ids",
    ),
    "detectors": HeaderField(
        "what each detector of the arm watches, by its name: `representation`, `arrivals` or `training`",
        "with `[detection]`",
    ),
    "drifts": HeaderField(
        "who begins to receive training data of another distribution, in columns: `client`, at which data "
        "`step`, its concept `before` and `after`, -1 where the trace knows none, and the `kind`, a row of "
        "`kinds`",
        "with `[detection]`",
    ),
}
"""The fields of a header; a log has no others."""


def run_header(
    experiment: Experiment,
    arm: Arm,
    world: World,
    executor: LocalExecutor | ReplicatedExecutor,
    reference: Reference | None = None,
    measuring: Reference | None = None,
) -> dict[str, Any]:
    """The header of a run's log, its first line: the facts about the run that all its rounds share.

    Returns:
        The header's fields by name, as `HEADER` describes them.
    """
    concepts = world.trace.concepts
    known: dict[str, Any] = {}
    if concepts is not None and concepts.size <= MOST_CONCEPTS:
        known = {"concepts": concepts.tolist()}
        if not world.trace.test_then_train:
            known["test_then_train"] = False
        if world.trace.test_concepts is not None:
            known["test_concepts"] = world.trace.test_concepts.tolist()
    clients = world.trace.num_clients
    scored = scored_clients(clients, experiment.round.evaluate_clients, world.streams)
    sampled = {"scored_clients": scored} if len(scored) < clients else {}
    byzantine = {group.kind: world.faults.clients(group.kind) for group in world.faults.byzantine}
    faulty = {"byzantine": byzantine} if byzantine else {}
    hear = experiment.round.hear
    heard = {} if hear == "online" or always_online(world.availability, clients) else {"hear": hear}
    trained: dict[str, Any] = {}
    if reference is not None:
        trained = {"reference": _trained_on(arm.representation.build(), reference)}
    chosen = experiment.round.client_distance
    measured: dict[str, Any] = {}
    if chosen.kind != "label":
        by = chosen.build()
        measured = {"client_distance": {"kind": chosen.kind, "distance": measured_distance(by)}}
        if measuring is not None:
            measured["client_distance"]["reference"] = _trained_on(by, measuring)
    jitter = experiment.devices.jitter
    return {
        "arm": arm.name,
        "seed": world.streams.seed,
        "num_clients": world.trace.num_clients,
        "num_labels": world.trace.num_labels,
        **_objective_of(experiment, world.trace),
        "num_parameters": executor.num_parameters,
        **({"base": executor.solver.base} if executor.solver.base > 0 else {}),
        "strategy": executor.strategy,
        "chunk": executor.chunk,
        "model_factor": resolve_model_factor(experiment, arm, world),
        **({"jitter": jitter.model_dump()} if jitter != NO_JITTER else {}),
        **known,
        **sampled,
        **faulty,
        **heard,
        **trained,
        **measured,
        **_solver_of(executor),
        **_onsets_of(world.trace, beside_concepts=bool(known)),
        **_detection_of(experiment, arm, world.trace),
    }


def _objective_of(experiment: Experiment, trace: Trace) -> dict[str, Any]:
    """The fields of a header that tell the objective; empty if it is `labels`."""
    objective, kind = objective_of(experiment, trace), objective_kind(experiment, trace)
    if kind == "labels":
        return {}
    outputs = objective.num_outputs(trace)
    beside = {} if outputs == trace.num_labels else {"outputs": outputs}
    return {**beside, "objective": {"kind": kind, "word": objective.word}}


def _detection_of(experiment: Experiment, arm: Arm, trace: Trace) -> dict[str, Any]:
    """The fields of a header by which detectors are scored; empty without `[detection]`."""
    drifts = None if experiment.detection is None else trace.drifts
    if drifts is None:
        return {}
    watched = {name: DETECTORS.find(detector.kind).watches for name, detector in arm.detectors.items()}
    columns = {name: getattr(drifts, name) for name in DRIFT_COLUMNS}
    return {"detectors": watched, "drifts": {"kinds": list(drifts.kinds), **columns}}


def _solver_of(executor: LocalExecutor | ReplicatedExecutor) -> dict[str, Any]:
    """The field `solver` of a header; empty if a task sends up one model, and a step takes one gradient."""
    solver, size = executor.solver, executor.num_parameters
    uploads = 1 + (solver.uploads * (size - solver.statistics) - solver.unsent) / size
    if uploads == 1 and solver.gradients == 1:
        return {}
    return {"solver": {"uploads": uploads, "gradients": solver.gradients}}


def _onsets_of(trace: Trace, *, beside_concepts: bool) -> dict[str, Any]:
    """The field `onsets` of a header, in which the concepts are or are not; empty without any to tell."""
    onsets = trace.moves if beside_concepts else trace.onsets
    if onsets is None or len(onsets) == 0:
        return {}
    steps, counts = onsets.by_step()
    written = {"steps": steps.tolist(), "counts": counts.tolist()}
    if len(onsets) <= MOST_CONCEPTS:
        by_step = np.split(onsets.client, np.cumsum(counts)[:-1])
        written["clients"] = [clients.tolist() for clients in by_step]
    return {"onsets": written}


def _trained_on(representation: Representation, reference: Reference) -> dict[str, Any]:
    """The samples of each label that a reference model was trained on, and the most that it could be."""
    settings = representation.reference
    assert settings is not None, "a reference model has settings"
    return {"per_label": settings.per_label, "samples": reference.samples.tolist()}


def always_online(availability: Availability, num_clients: int) -> bool:
    """Whether nobody is ever offline."""
    everyone = np.arange(num_clients)
    online, until_s = availability.online(everyone, 0.0), availability.next_offline_s(everyone, 0.0)
    return bool(online.all() and np.isinf(until_s).all())


def world_settings(experiment: Experiment) -> dict[str, Any]:
    """The settings that a world is drawn from: two worlds of a seed are the same if these are.

    `build_world` also checks others, as `check_rounds` does.
    """
    table, drawn = experiment.resolved(), ("trace", "devices", "faults")
    known = {"rounds": experiment.round.rounds, "starts": _start_files(experiment)}
    return {**known, **{key: table[key] for key in drawn}}


def check_rounds(experiment: Experiment, trace: Holders, streams: RandomStreams) -> None:
    """ConfigurationError if the rounds or the published accuracies of `experiment` do not fit its trace."""
    for key in ("participants", "min_online"):
        required = getattr(experiment.round, key)
        if required > trace.num_clients:
            raise ConfigurationError(
                f"round.{key} = {required}: more than the {trace.num_clients} clients of the trace"
            )
    refuse_steps_without_data(experiment, trace, streams)
    refuse_steps_without_evaluation(experiment, trace)
    refuse_published_without_concepts(experiment, trace)


def refuse_steps_without_data(experiment: Experiment, trace: Holders, streams: RandomStreams) -> None:
    """ConfigurationError if at a data step of the run nobody can train, or be evaluated where that is due.

    Where rounds or evaluations follow virtual time, any data step may be one that is evaluated. A sample of
    clients that is scored is drawn from `streams`.
    """
    settings = experiment.round
    rounds, every = settings.rounds, settings.evaluate_every
    if settings.seconds_per_round is not None or settings.evaluate_every_s is not None:
        every = 1
    everyone = np.arange(trace.num_clients)
    scored = scored_clients(trace.num_clients, settings.evaluate_clients, streams)
    number = np.arange(rounds)
    evaluated = np.unique(
        number[((number + 1) % every == 0) | (number + 1 == rounds)] // trace.rounds_per_step
    )
    for step in range(-(-rounds // trace.rounds_per_step)):
        if not trace.anybody_holds(everyone, ("train",), step):
            lacking = "no client holds a training sample"
        elif step in evaluated and not trace.anybody_holds(scored, ("train", "test"), step):
            who = "scored client" if len(scored) < trace.num_clients else "client"
            lacking = f"no {who} holds both a training and a test sample"
            if trace.test_on == "next":
                lacking += ", one that arrives at the next data step (trace.test_on = 'next')"
        else:
            continue
        first = step * trace.rounds_per_step
        way_out = (
            f"data step {step - 1} is the last before it at which one does, so set round.rounds = {first}"
        )
        if step == 0:
            way_out = "begin the trace later, where enough clients have data"
        if len(scored) < trace.num_clients and "scored" in lacking:
            more = f"raise round.evaluate_clients = {len(scored)}"
            way_out = more if step == 0 else f"{way_out}, or {more}"
        raise ConfigurationError(
            f"round.rounds = {rounds}: at data step {step}, which {settings.counted} {first} begins, "
            f"{lacking}; {way_out}"
        )


def refuse_steps_without_evaluation(experiment: Experiment, trace: Holders) -> None:
    """ConfigurationError if the trace knows its concepts, but not every data step ends with an evaluation.

    With `round.seconds_per_round` the last round of a data step is the first that closes at or after the
    instant of the next one: it is evaluated if all rounds are, or if evaluations are due at these instants.
    """
    if trace.concepts is None:
        return
    each, settings = trace.rounds_per_step, experiment.round
    every, every_s, round_s = settings.evaluate_every, settings.evaluate_every_s, settings.seconds_per_round
    scored = "so that every data step is scored at its end"
    if round_s is None and every_s is not None:
        raise ConfigurationError(
            f"round.evaluate_every_s = {every_s:g}: data steps follow rounds, so evaluations must, too, "
            f"{scored}: set round.evaluate_every, or round.seconds_per_round"
        )
    if round_s is None and each % every != 0:
        raise ConfigurationError(
            f"round.evaluate_every = {every}: must divide trace.rounds_per_step = {each}, {scored}"
        )
    if round_s is None or (every_s is None and every == 1):
        return
    step_s = each * exact(round_s)
    if every_s is None:
        raise ConfigurationError(
            f"round.evaluate_every = {every}: data steps follow virtual time, so it must be 1, or "
            f"round.evaluate_every_s be given that divides their {float(step_s):g} s, {scored}"
        )
    if step_s % exact(every_s) != 0:
        raise ConfigurationError(
            f"round.evaluate_every_s = {every_s:g}: must divide the {float(step_s):g} s of a data step, "
            f"trace.rounds_per_step x round.seconds_per_round, {scored}"
        )


def refuse_published_without_concepts(experiment: Experiment, trace: Holders) -> None:
    """ConfigurationError if accuracies are published, but the trace does not know its concepts.

    Without concepts there are no drift cells, and so no accuracy of ours to compare with.
    """
    if trace.concepts is None and any(values for _, values in experiment.report.published or ()):
        raise ConfigurationError(
            "report.published: accuracies omitting and including drift need a trace that knows its concepts, "
            'as trace.source = "concepts" does; leave it out'
        )


def find_profile(profile: TablePath, locate: Locate) -> DeviceProfile:
    """The device profile with that name in the catalogue, or in the file that `locate` finds.

    Args:
        profile: A name, or the path of a table or a .toml.
        locate: Finds the file.

    Raises:
        UnknownNameError: The catalogue has no such name.
        DataFileError: The file is missing, or is not a valid profile; or a name is given as a table.
    """
    if profile.path.endswith(PROFILE_SUFFIXES):
        return read_profile(locate(profile.path), profile)
    profile.refuse_of(Path(profile.path), "a name")
    return load_profile(profile.path, where="devices.profile")


def model_factors(experiment: Experiment, arms: Sequence[str], world: World) -> dict[str, float]:
    """The model factor of each of `arms`, by name; computed once per model.

    Raises ConfigurationError, as `resolve_model_factor` does.
    """
    by_name = {arm.name: arm for arm in experiment.arm}
    factors: dict[str, float] = {}
    for arm in (by_name[name] for name in arms):
        model = repr(arm.training.model)
        if model not in factors:
            factors[model] = resolve_model_factor(experiment, arm, world)
    return {name: factors[repr(by_name[name].training.model)] for name in arms}


def resolve_model_factor(experiment: Experiment, arm: Arm, world: World) -> float:
    """`devices.model_factor` as a number: how many times slower a sample is than with the reference model.

    Returns:
        The configured number; for "flops", the FLOPs of a forward pass of the arm's model over those of the
        profile's reference model; 1 with `devices.time_model = "fedscale"`, which ignores the model.

    Raises:
        ConfigurationError: The time model "fedscale" is combined with a number other than 1, or the profile
            does not state the FLOPs of its reference model.
    """
    factor = experiment.devices.model_factor
    if experiment.devices.time_model == "fedscale":
        if factor not in ("flops", 1):
            raise ConfigurationError(
                f'devices.model_factor = {factor:g}: devices.time_model = "fedscale" ignores the model; set 1'
            )
        return 1.0
    if factor != "flops":
        return factor
    if world.profile.reference_flops is None:
        raise ConfigurationError(
            f'devices.model_factor = "flops": the profile {experiment.devices.profile.path!r} does not '
            f"state the FLOPs of its reference model; give a number, such as 1"
        )
    spec, reader = arm.training.model.build(), reader_of(arm, world.trace)
    outputs = objective_of(experiment, world.trace).num_outputs(reader)
    flops = forward_flops(spec, reader.sample_shape, outputs, reader.integers)
    return flops / world.profile.reference_flops
