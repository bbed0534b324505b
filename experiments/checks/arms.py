"""Checks of the arms of an experiment in the world of a seed, before any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import get_args

import numpy as np
from pydantic import ValidationError

from coordinator.adaptations.none import NoAdaptation
from coordinator.aggregators import AGGREGATORS
from coordinator.detectors import DETECTORS
from coordinator.detectors.base import Watches
from coordinator.distances import DISTANCES, SHARES_ONLY
from coordinator.federation.bank import ModelBank
from coordinator.federation.hearing.client_data import ClientData, Reference
from coordinator.federation.method import Parts
from coordinator.pacing import PACINGS
from coordinator.representations import Representation
from coordinator.representations.base import ReferenceSettings
from coordinator.schedules.base import TASK_SETTINGS
from coordinator.view import RunFacts
from emulator.errors import ConfigurationError, naming
from emulator.messages import BATCH_METRICS, BYTES_PER_PARAMETER, TASK_METRICS, SolverFacts
from emulator.plugins import Settings
from emulator.ports import Availability, unmeasured
from emulator.storage.log_lines import MOST_DRIFTS
from executor.executor import LocalExecutor
from experiments.build import (
    World,
    always_online,
    build_executor,
    build_parts,
    model_factors,
    reader_of,
)
from experiments.checks.fleet import limit_of, refuse_unreachable_limit, visits_of
from experiments.checks.objectives import refuse_readers_of_labels, refuse_unfit_samples
from experiments.checks.stopping import check_stopping
from experiments.checks.uses import refuse_unfit_use
from experiments.config import Arm, Experiment
from experiments.reference import reference_executor
from experiments.results.reading.recorded import curve_of
from experiments.running.machine import available_bytes
from traces.trace import Trace, TraceStream

REPORT_COPIES = 7
"""Copies of the clustered reports that a re-clustering holds at once, at most: by cosine distances."""

MEASURED_COPIES = 4
"""Copies of the measured vectors that an evaluation holds at once, at most."""

KEPT_COPIES = 3
"""Copies of the models that an adaptation keeps which are held at once, at most: while they are stored."""

MEMORY_COPIES = 2
"""Copies of what the solver remembers that are held at once, at most: while it is stored."""

DETECTOR_COPIES = 2
"""Copies of what a detector remembers that are held at once, at most: while it is stored."""

HEARD_COPIES = 4
"""Copies of all reports that are held while all clients report."""

REPRESENTATION: Watches = "representation"
TRAINING: Watches = "training"


def check_arms(experiment: Experiment, arms: Sequence[str], world: World) -> None:
    """Build the parts and the executor of each of `arms`, to check them before any run.

    Args:
        experiment: The configuration.
        arms: Names of arms of the experiment.
        world: The world of a seed.

    Raises:
        ConfigurationError: An arm, which the message names, cannot be built, a part does not fit the run, its
            clusterer does not fit its model or this trace, its reports do not fit its models or into memory,
            or its model factor cannot be determined.
    """
    by_name = {arm.name: arm for arm in experiment.arm}
    _refuse_several_measures(experiment)
    refuse_unfit_samples(experiment, world.trace)
    executors: dict[str, LocalExecutor] = {}  # by model and solver, which many arms may share
    stream = TraceStream(world.trace)
    for arm in (by_name[name] for name in arms):
        with naming(f"arm {arm.name!r}"):
            parts = build_parts(experiment, arm)
            refuse_readers_of_labels(experiment, arm, parts, world.trace)
            with naming(_adaptation_of(arm)):
                parts.adaptation.check_features(world.trace.sample_shape, integers=world.trace.integers)
            training = arm.training
            shape = reader_of(arm, world.trace).sample_shape
            trained = repr(
                (training.model, shape, training.batch_norm, training.last, training.start, arm.solver)
            )
            if trained not in executors:
                executors[trained] = build_executor(experiment, arm, world)
            if arm.training.batch_size < executors[trained].probed.least:
                raise ConfigurationError(
                    f"training.batch_size = {arm.training.batch_size}: the model's batch norm needs batches "
                    f"of at least {executors[trained].probed.least} samples"
                )
            parts.clusterer.check(executors[trained].layout, world.trace.concepts is not None)
            _refuse_unmeasured(parts)
            _refuse_adaptation(parts, arm, world.trace.num_labels)
            _refuse_oversize_models(experiment, parts, executors[trained], world.trace.num_clients)
            _refuse_parts_of_whole_rounds(parts, arm)
            _refuse_oversize_concurrency(parts, arm, executors[trained])
            _refuse_solver(parts, arm, executors[trained].solver)
            _refuse_unequal_numbers(parts, arm, executors[trained].solver)
            _refuse_step_norms(parts, arm, executors[trained].solver)
            _refuse_unread_settings(parts, arm, executors[trained].solver)
            check_stopping(experiment, parts, arm, executors[trained], world)
            if limit_of(parts.pacing)[1]:
                visits = visits_of(experiment, arm, executors[trained], parts, world)
                refuse_unreachable_limit(experiment, visits, world)
            _refuse_detectors(parts, arm, scored=experiment.detection is not None)
            _refuse_oversize_detectors(parts, world.trace.num_clients)
            _refuse_oversize_memory(experiment, parts, executors[trained], world.trace.num_clients)
            _check_run_of_parts(experiment, parts, arm, executors[trained], world.trace.num_clients)
            _refuse_selection_by_first_reports(parts, arm)
            if parts.needs_reports:
                _refuse_distances_of_shares(parts, arm)
                size = _size(parts.representation, experiment, arm, world, executors[trained], stream)
                _refuse_oversize(arm, parts, world.trace.num_clients, size)
            with naming("round.client_distance"):
                measure = experiment.round.client_distance.build()
                size = _size(measure, experiment, arm, world, executors[trained], stream)
                _refuse_oversize_measure(experiment, world.trace.num_clients, size)
    refuse_detection_without_truth(experiment, world.trace)
    refuse_model_accuracy_without_concepts(experiment, world.trace)
    model_factors(experiment, arms, world)
    late = late_reporting(experiment, arms)
    refuse_late_reports(experiment, late, world.availability, world.trace.num_clients)


def _check_run_of_parts(
    experiment: Experiment, parts: Parts, arm: Arm, executor: LocalExecutor, num_clients: int
) -> None:
    """Let each part check what is known of the run."""
    solver = executor.solver
    run = RunFacts(
        num_clients=num_clients,
        rounds=experiment.round.rounds if experiment.round.seconds_per_round is None else None,
        participants=parts.pacing.cohort.participants,
        buffer=parts.pacing.buffer,
        clusters=parts.clusterer.fixed_clusters,
        layout=executor.layout,
        representation=arm.representation.kind,
        has_shares=parts.representation.shares,
        watching_arrivals=tuple(parts.detectors_on("arrivals")),
        numbers={"learning_rate": arm.training.learning_rate, **solver.settings},
        check_number=partial(_check_number, arm),
    )
    kinds = {id(part): found.kind for part, found in zip(parts.schedules, arm.schedules, strict=True)}
    for part in parts.all:
        with naming(f"schedule {kinds[id(part)]!r}" if id(part) in kinds else ""):
            part.check_run(run)


def _check_number(arm: Arm, name: str, number: float) -> None:
    """ConfigurationError unless the rule of the solver that reads a number such as "adam.beta1" takes it."""
    key = name.rpartition(".")[2]
    for rule in (chosen.build() for chosen in arm.solver):
        if name in rule.task_settings:
            try:
                rule.Settings.model_validate({**rule.settings.model_dump(by_alias=True), key: number})
            except ValidationError as error:
                problem = error.errors()[0]["msg"].lower()
                raise ConfigurationError(f"{name} = {number:g}: {problem}") from error


def _refuse_unread_settings(parts: Parts, arm: Arm, solver: SolverFacts) -> None:
    """ConfigurationError if a schedule sets what nobody reads or takes."""
    choices = {*TASK_SETTINGS, *solver.settings}
    for schedule, chosen in zip(parts.schedules, arm.schedules, strict=True):
        for name in sorted(schedule.sets - choices):
            raise ConfigurationError(
                f"schedule {chosen.kind!r}: sets {name!r}, which no rule of the solver "
                f"[{', '.join(rule.kind for rule in arm.solver)}] reads; choices: "
                f"{', '.join(sorted(choices))}"
            )


def refuse_detection_without_truth(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError if detectors are to be scored, and the trace does not tell when clients drift."""
    settings = experiment.detection
    if settings is None:
        return
    drifts = trace.drifts
    if drifts is None:
        raise ConfigurationError(
            "[detection]: this trace does not tell which clients drift when, and so nobody can be scored; "
            "leave it out, or take a trace that does, such as one with trace.changes"
        )
    if len(drifts.step) > MOST_DRIFTS:
        raise ConfigurationError(
            f"[detection]: this trace has {len(drifts.step):,} drifts, each of a client at a step, and a "
            f"log records at most {MOST_DRIFTS:,}; leave it out, or take fewer clients or drifts"
        )
    rounds = experiment.round.rounds if experiment.round.seconds_per_round is None else None
    settings.check(rounds, drifts.kinds)


def refuse_model_accuracy_without_concepts(experiment: Experiment, trace: Trace) -> None:
    """ConfigurationError if models are measured by concept, and the trace does not know its concepts."""
    if experiment.round.log_model_accuracy and trace.concepts is None:
        raise ConfigurationError(
            "round.log_model_accuracy = true: this trace does not know its concepts, by which models are "
            "measured; leave it out, or take a trace that does, such as one with trace.changes"
        )


def _refuse_unmeasured(parts: Parts) -> None:
    """ConfigurationError if a part reads a metric of training that executors do not compute."""
    for part in parts.all:
        if not isinstance(part.needs, frozenset):
            raise ConfigurationError(
                f"{part.name}.needs is {part.needs!r}: must be a property that returns a frozenset of "
                f"metrics; choices: {', '.join(TASK_METRICS)}"
            )
        for metric in sorted(part.needs - set(TASK_METRICS)):
            raise ConfigurationError(
                f"{part.name} needs the metric {metric!r} of training, which nobody computes; choices: "
                f"{', '.join(TASK_METRICS)}"
            )


def _refuse_adaptation(parts: Parts, arm: Arm, num_labels: int) -> None:
    """ConfigurationError if the adaptation does not fit the clusterer, or the labels of the trace."""
    refuse_unfit_use(parts, arm)
    adaptation, key = parts.adaptation, _adaptation_of(arm)
    if not adaptation.federates and arm.clusterer.kind != "single":
        raise ConfigurationError(
            f"{key}: no models are federated, and clusterer = {arm.clusterer.kind!r} makes some; set "
            f"clusterer = 'single'"
        )
    if adaptation.serves_one and parts.clusterer.serves_several:
        raise ConfigurationError(
            f"{key}: adapts the one model that serves a client, and clusterer = {arm.clusterer.kind!r} "
            f"combines several; choices beside it: 'none', 'prior', 'relabelled'"
        )
    adaptation.check(num_labels)


def _adaptation_of(arm: Arm) -> str:
    """What the adaptation of an arm is called in errors: its key, or the model that has its own."""
    if arm.adaptation.kind == "none":
        return f"model = {arm.training.model.kind!r}"
    return f"adaptation = {arm.adaptation.kind!r}"


def _refuse_parts_of_whole_rounds(parts: Parts, arm: Arm) -> None:
    """ConfigurationError if a part needs whole rounds, and the pacing has several dispatches in one."""
    if parts.pacing.whole_rounds:
        return
    for part in parts.all:
        if part.needs_whole_rounds:
            whole = ", ".join(repr(name) for name in PACINGS.ours() if PACINGS.find(name).whole_rounds)
            how = "" if type(part).needs_whole_rounds else " with these settings"
            raise ConfigurationError(
                f"{part.name}{how}: needs rounds of one dispatch and one server step each, unlike those of "
                f"pacing = {arm.pacing.kind!r}; choices beside it: {whole}"
            )


def _refuse_solver(parts: Parts, arm: Arm, solver: SolverFacts) -> None:
    """ConfigurationError if the solver does not fit the aggregator, the adaptation or the clusterer."""
    aggregator, kinds = parts.aggregator, ", ".join(rule.kind for rule in arm.solver)
    kinds += ", with batch_norm = 'kept'" if arm.training.batch_norm == "kept" else ""
    missing, unread = solver.receives - aggregator.broadcasts, aggregator.broadcasts - solver.receives
    if missing:
        name = min(missing)
        senders = [kind for kind in AGGREGATORS.ours() if name in AGGREGATORS.find(kind).broadcasts]
        raise ConfigurationError(
            f"solver [{kinds}]: reads {name!r}, which aggregator = {arm.aggregator.kind!r} does not send "
            f"along with the models; aggregators that do: {', '.join(map(repr, senders)) or 'none of ours'}"
        )
    if unread:
        raise ConfigurationError(
            f"aggregator = {arm.aggregator.kind!r}: sends {min(unread)!r} along with the models, which no "
            f"rule of the solver [{kinds}] reads; put the local rule that does into the solver"
        )
    lasting = {name for name, slot in solver.state.items() if slot.until == "model"}
    if not aggregator.averages <= lasting:
        raise ConfigurationError(
            f"aggregator = {arm.aggregator.kind!r}: averages {min(aggregator.averages - lasting)!r} over "
            f"clients, which the solver [{kinds}] does not keep until a model ends; put the local rule that "
            f"does into the solver"
        )
    if aggregator.averages and not aggregator.needs_whole_rounds:
        raise ConfigurationError(
            f"aggregator = {arm.aggregator.kind!r}: reads what clients remember, which may change between "
            f"versions of a model; it must declare needs_whole_rounds = True"
        )
    if not parts.adaptation.federates and solver.receives:
        raise ConfigurationError(
            f"adaptation = {arm.adaptation.kind!r}: no models are federated, and the solver [{kinds}] reads "
            f"what an aggregator sends along with them"
        )
    if not parts.adaptation.federates and solver.shares:
        raise ConfigurationError(
            f"adaptation = {arm.adaptation.kind!r}: no models are federated, and the solver [{kinds}] shares "
            f"{min(solver.shares)!r} with an aggregator"
        )
    if solver.personal and not isinstance(parts.adaptation, NoAdaptation):
        instead = "set adaptation = 'none'" if arm.adaptation.kind != "none" else "take another model"
        raise ConfigurationError(
            f"{_adaptation_of(arm)}: the solver [{kinds}] makes personal parameters, and only one of the two "
            f"can say what a client uses; {instead}"
        )
    if solver.personal and parts.clusterer.serves_several:
        raise ConfigurationError(
            f"solver [{kinds}]: makes personal parameters of the one model that serves a client, and "
            f"clusterer = {arm.clusterer.kind!r} combines several"
        )


def _refuse_unequal_numbers(parts: Parts, arm: Arm, solver: SolverFacts) -> None:
    """ConfigurationError if the solver and the aggregator do not share the same numbers."""
    ours, theirs = parts.aggregator.shares, solver.shares
    of_aggregator = f"aggregator = {arm.aggregator.kind!r}"
    of_solver = f"solver [{', '.join(rule.kind for rule in arm.solver)}]"
    for name in sorted(ours.keys() | theirs.keys()):
        rule, _, key = name.rpartition(".")
        if name not in theirs:
            raise ConfigurationError(
                f"{of_aggregator}: {key} = {ours[name]} is a number that it shares with the local rule "
                f"{rule!r}, which {of_solver} does not have; put it into the solver"
            )
        if name not in ours:
            sharing = ", ".join(repr(kind) for kind in AGGREGATORS.ours() if name in _shared_by(kind))
            raise ConfigurationError(
                f"{of_solver}: {name} = {theirs[name]} must be a number of the aggregator, too, which "
                f"{of_aggregator} does not have; aggregators that do: {sharing or 'none of ours'}"
            )
        if ours[name] != theirs[name]:
            raise ConfigurationError(
                f"{of_solver}: {name} = {theirs[name]}, and {key} = {ours[name]} of {of_aggregator}; must be "
                f"the same number"
            )


def _shared_by(kind: str) -> Mapping[str, float]:
    """The numbers that one of our aggregators shares with a solver, with its default settings."""
    aggregator = AGGREGATORS.find(kind)
    return aggregator(aggregator.Settings()).shares


def _refuse_step_norms(parts: Parts, arm: Arm, solver: SolverFacts) -> None:
    """ConfigurationError if a part reads the norms of the solver's steps, which have none, or one by task."""
    set_by = {
        name: chosen.kind
        for schedule, chosen in zip(parts.schedules, arm.schedules, strict=True)
        for name in sorted(schedule.sets & solver.settings.keys())
    }
    for part in parts.all:
        if "step_norm" not in part.needs:
            continue
        for name, kind in set_by.items():
            raise ConfigurationError(
                f"{part.name}: needs the metric 'step_norm', which follows from the numbers of the solver, "
                f"and schedule {kind!r} gives tasks others of {name}; leave the schedule out"
            )
        if solver.form is None:
            raise ConfigurationError(
                f"{part.name}: needs the metric 'step_norm', which the steps of the solver "
                f"[{', '.join(rule.kind for rule in arm.solver)}] do not have; those of 'sgd' have it, also "
                f"behind rules that leave gradients as they are, or pull, as 'fedprox' does"
            )


def _refuse_unread_arrivals(name: str, parts: Parts, arm: Arm, *, scored: bool) -> None:
    """ConfigurationError for a detector that watches arrivals, in time of visits, and that nobody reads."""
    if not parts.adaptation.federates:
        raise ConfigurationError(
            f"detectors.{name}: watches arrivals, and nobody receives a model to score with adaptation = "
            f"{arm.adaptation.kind!r}; leave it out"
        )
    if not parts.schedules and not scored:
        raise ConfigurationError(
            f"detectors.{name}: watches arrivals, and nothing reads what it flags; give the arm a schedule, "
            f"such as 'on_drift', or the configuration [detection], which scores it"
        )


def _refuse_detectors(parts: Parts, arm: Arm, *, scored: bool) -> None:
    """ConfigurationError for a detector that is none, or one that the clusterer reads and cannot have."""
    for name, detector in parts.detectors.items():
        if detector.watches not in get_args(Watches):
            raise ConfigurationError(
                f"detectors.{name}: {detector.name}.watches = {detector.watches!r}; choices: "
                f"{', '.join(get_args(Watches))}"
            )
        if detector.watches == "training" and not (
            len(detector.needs) == 1 and detector.needs <= BATCH_METRICS
        ):
            raise ConfigurationError(
                f"detectors.{name}: {detector.name} watches training, and needs {sorted(detector.needs)}; "
                f"must need one of {', '.join(sorted(BATCH_METRICS))}"
            )
        if detector.watches == "arrivals" and detector.needs:
            raise ConfigurationError(
                f"detectors.{name}: {detector.name} watches arrivals, and needs {sorted(detector.needs)}; "
                f"must need no metric of training"
            )
    _refuse_thresholds(parts, arm)
    for key, names in parts.clusterer.reads_detectors.items():
        for name in names:
            if name not in parts.detectors:
                raise ConfigurationError(
                    f"clusterer.{key}: the arm has no detector {name!r}; it has "
                    f"{', '.join(parts.detectors) or 'none'}"
                )
            if (watched := parts.detectors[name].watches) != "training":
                raise ConfigurationError(
                    f"clusterer.{key}: the detector {name!r} ({arm.detectors[name].kind}) watches "
                    f"{'reports' if watched == REPRESENTATION else watched}, and not training; those that "
                    f"do: {', '.join(_watching(TRAINING))}"
                )
    for name in parts.detectors_on("arrivals"):
        _refuse_unread_arrivals(name, parts, arm, scored=scored)


def _refuse_thresholds(parts: Parts, arm: Arm) -> None:
    """ConfigurationError for a detector at several thresholds, if anything depends on what it flags."""
    curves: dict[str, list[str]] = {}
    for name in parts.detectors:
        curves.setdefault(curve_of(name)[0], []).append(name)
    read = {name for names in parts.clusterer.reads_detectors.values() for name in names}
    for curve, names in curves.items():
        if len(names) < 2:
            continue
        detectors = [parts.detectors[name] for name in names]
        alike = {
            (type(each), *sorted(each.settings.model_dump(exclude={each.threshold or ""}).items()))
            for each in detectors
        }
        if len(alike) > 1:
            raise ConfigurationError(
                f"detectors: {', '.join(names)} are named as one at several thresholds, and differ in other "
                f"ways; name them without @ and a number"
            )
        for name, each in zip(names, detectors, strict=True):
            named, played = curve_of(name)[1], getattr(each.settings, each.threshold or "", None)
            if named != played:
                raise ConfigurationError(
                    f"detectors.{name}: is named as one at the threshold {named:g}, and has {played}; name "
                    f"it without @ and a number"
                )
        # Reports are compared with those that earlier flags brought about.
        watched = detectors[0].watches
        if watched == REPRESENTATION or (watched == "arrivals" and parts.schedules) or read & {curve, *names}:
            raise ConfigurationError(
                f"detectors.{curve}: what it flags may change the run, so thresholds cannot share an arm; "
                f"leave out thresholds, and play each in an arm of its own"
            )


def _watching(watched: Watches) -> list[str]:
    """The names of our detectors that watch this."""
    return [kind for kind in DETECTORS.ours() if DETECTORS.find(kind).watches == watched]


def _refuse_oversize_memory(
    experiment: Experiment, parts: Parts, executor: LocalExecutor, num_clients: int
) -> None:
    """ConfigurationError if what the solver remembers of the clients that may train does not fit into memory.

    Where rounds are not whole, or follow virtual time, all clients may.
    """
    width = executor.solver.state_width(executor.num_parameters)
    clients, cohort = num_clients, parts.pacing.cohort
    if parts.pacing.whole_rounds and experiment.round.seconds_per_round is None:
        clients = min(clients, experiment.round.rounds * cohort.over_committed(cohort.participants))
    _refuse_beyond_memory(
        BYTES_PER_PARAMETER * MEMORY_COPIES * clients * width,
        f"solver: remembers {width:,} numbers of each of up to {clients:,} clients, for a model of "
        f"{executor.num_parameters:,} parameters, which",
        "take fewer clients or rounds, or a smaller model",
    )


def _refuse_oversize_concurrency(parts: Parts, arm: Arm, executor: LocalExecutor) -> None:
    """ConfigurationError if the results of all visits that may be out at once do not fit into memory."""
    concurrency = parts.pacing.concurrency
    if concurrency is None:
        return
    numbers = executor.num_parameters + executor.solver.state_width(executor.num_parameters)
    _refuse_beyond_memory(
        BYTES_PER_PARAMETER * concurrency * numbers,
        f"pacing.concurrency = {concurrency}: to keep {numbers:,} numbers for each of the visits",
        "lower it, or take a smaller model",
    )


def _refuse_oversize_detectors(parts: Parts, num_clients: int) -> None:
    """ConfigurationError if what a detector remembers of all clients does not fit into memory."""
    for name, detector in parts.detectors.items():
        size = detector.bytes_per_client
        _refuse_beyond_memory(
            DETECTOR_COPIES * num_clients * size,
            f"detectors.{name}: remembers {size:,} bytes or more of each of {num_clients:,} clients, which",
            "take fewer clients, or settings with which it remembers less",
        )


def _refuse_oversize_models(
    experiment: Experiment, parts: Parts, executor: LocalExecutor, num_clients: int
) -> None:
    """ConfigurationError if the models that an adaptation keeps for scored clients do not fit into memory."""
    if not parts.adaptation.keeps_models:
        return
    numbers = executor.num_parameters + executor.solver.state_width(executor.num_parameters)
    scored = min(num_clients, experiment.round.evaluate_clients or num_clients)
    _refuse_beyond_memory(
        BYTES_PER_PARAMETER * KEPT_COPIES * scored * numbers,
        f"{parts.adaptation.name}: to keep {numbers:,} numbers for each of {scored} clients",
        "set round.evaluate_clients, or take a smaller model",
    )


def late_reporting(experiment: Experiment, arms: Sequence[str]) -> list[str]:
    """Those of `arms` whose clusterer uses reports from a later round on, of clients that are online then.

    Reports at the present models are comparable only if all clients report at the same models.
    """
    if experiment.round.hear == "everyone":
        return []
    built = {name: build_parts(experiment, experiment.find_arm(name)) for name in arms}
    return [
        name
        for name, parts in built.items()
        if parts.clusterer.reports_from > 0 and parts.representation.at_present_models
    ]


def refuse_late_reports(
    experiment: Experiment, arms: Sequence[str], availability: Availability, num_clients: int
) -> None:
    """ConfigurationError if one of `arms`, which are `late_reporting`, has clients that are ever offline."""
    if arms and not always_online(availability, num_clients):
        first = build_parts(experiment, experiment.find_arm(arms[0])).clusterer.reports_from
        raise ConfigurationError(
            f"arm {arms[0]!r}: clusterer.at_round = {first}: the reports of clients that are offline as that "
            f"round is opened would be of another model; set round.hear = 'everyone', or "
            f"representation.at = 'frozen'"
        )


def _refuse_selection_by_first_reports(parts: Parts, arm: Arm) -> None:
    """ConfigurationError if the selector compares reports, and clients send none after they registered."""
    reporting = parts.detectors_on("representation") or parts.representation.at_present_models
    if parts.selector.needs_reports and not reporting:
        raise ConfigurationError(
            f"selector = {arm.selector.kind!r}: compares clients by reports, and without detectors nobody "
            f"reports new data; set detectors, as in {{ changed = 'changed' }}; choices: "
            f"{', '.join(_watching(REPRESENTATION))}"
        )


def _size(
    representation: Representation,
    experiment: Experiment,
    arm: Arm,
    world: World,
    executor: LocalExecutor,
    stream: TraceStream,
) -> int:
    """The number of numbers in what clients measure; ConfigurationError if its settings do not fit."""
    reference = representation.reference
    data = ClientData(
        stream=stream,
        bank=ModelBank(0),
        executor=executor,
        reference=None if reference is None else _untrained(experiment, arm, world, reference),
        streams=world.streams,
        meter=unmeasured,
    )
    return representation.size(data)


def _refuse_several_measures(experiment: Experiment) -> None:
    """ConfigurationError if arms of different models would measure the distance of clients with their own."""
    measure = experiment.round.client_distance
    reference = measure.build().reference
    models = {repr(arm.training.model): arm.name for arm in experiment.arm}
    if reference is not None and reference.model is None and len(models) > 1:
        one, other, *_ = models.values()
        raise ConfigurationError(
            f"round.client_distance = {measure.kind!r}: arms {one!r} and {other!r} have different models and "
            f"would measure with their own; name one for all, as in model = 'linear'"
        )


def _refuse_oversize_measure(experiment: Experiment, num_clients: int, size: int) -> None:
    """ConfigurationError if vectors of `size` numbers of all scored clients do not fit into memory."""
    scored = min(num_clients, experiment.round.evaluate_clients or num_clients)
    _refuse_beyond_memory(
        8 * MEASURED_COPIES * scored * size,
        f"to measure {size:,} numbers of {scored} clients",
        "set round.evaluate_clients, or take a smaller model",
    )


def _untrained(experiment: Experiment, arm: Arm, world: World, settings: ReferenceSettings) -> Reference:
    """The reference model before it is trained: of the size that it will have."""
    executor = reference_executor(experiment, arm, world, settings)
    return Reference(executor, executor.initial(0), np.zeros(0, dtype=np.int64), 1.0)


def _refuse_oversize(arm: Arm, parts: Parts, num_clients: int, size: int) -> None:
    """ConfigurationError if the reports of `size` numbers do not fit into memory."""
    # Of a large fleet only a subsample is clustered, beside the last reports of all.
    clustered = min(num_clients, getattr(parts.clusterer.settings, "kmeans_clients", num_clients))
    rows = max(HEARD_COPIES * num_clients, num_clients + (REPORT_COPIES - 1) * clustered)
    _refuse_beyond_memory(
        8 * rows * size,
        f"representation = {arm.representation.kind!r}: to cluster {num_clients} clients by reports of "
        f"{size:,} numbers",
        _to_shrink(arm.representation.settings),
    )


def _refuse_beyond_memory(needed: int, what: str, instead: str) -> None:
    """ConfigurationError if `what` takes `needed` bytes, and fewer are free."""
    available = available_bytes()
    if needed > available:
        raise ConfigurationError(
            f"{what} takes {needed / 2**30:.1f} GiB of memory, and {available / 2**30:.1f} GiB are free; "
            f"{instead}"
        )


def _to_shrink(settings: Settings) -> str:
    """What makes the reports of a representation with `settings` smaller."""
    sketch = getattr(settings, "sketch", 0)
    if sketch == 0:  # it has no such setting
        return "take a smaller model" if isinstance(settings, ReferenceSettings) else "take fewer labels"
    return f"{'set' if sketch is None else 'lower'} representation.sketch, or take a smaller model"


def _refuse_distances_of_shares(parts: Parts, arm: Arm) -> None:
    """ConfigurationError if a part compares reports that are not shares in a distance between shares."""
    if parts.representation.shares:
        return
    detectors = {f"detectors.{name}": detector for name, detector in parts.detectors.items()}
    for key, part in {"clusterer": parts.clusterer, "selector": parts.selector, **detectors}.items():
        distance = getattr(part.settings, "distance", None)
        if distance in SHARES_ONLY:
            others = ", ".join(sorted(DISTANCES.keys() - SHARES_ONLY))
            raise ConfigurationError(
                f"{key}.distance = {distance!r}: is defined between shares, which the reports of "
                f"representation = {arm.representation.kind!r} are not; choices: {others}"
            )
