"""Fakes of the ports, set by hand: linear models and no randomness of their own.

`Population` combines them and runs them through the real `Emulation`, `Coordinator` and `Federation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from coordinator.adaptations import Adaptation
from coordinator.adaptations.none import NoAdaptation
from coordinator.aggregators import Aggregator
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.clusterers.single import Single
from coordinator.coordinator import Coordinator
from coordinator.detectors import Detector
from coordinator.detectors.changed import Changed
from coordinator.distances import DistanceName
from coordinator.federation import Federation
from coordinator.federation.faults import Faults
from coordinator.federation.hearing.client_data import Reference
from coordinator.federation.method import FurtherAccuracy, Parts, RoundSettings
from coordinator.memories import Memory
from coordinator.memories.held import Held, HeldSettings
from coordinator.pacing import CohortSize, Pacing
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.population import FaultSettings, Hear
from coordinator.representations import Representation
from coordinator.representations.label import Label
from coordinator.schedules import Schedule
from coordinator.selectors import Selector
from coordinator.selectors.random import Random
from coordinator.view import ScoreRequest, TrainRequest, View
from device_profiles import Fleet
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.counts import LastBatch, epoch_steps
from emulator.emulation import Emulation, Log
from emulator.latency import NO_JITTER, TIME_MODELS, Jitter
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    SolverFacts,
    TrainTasks,
    Trigger,
    Updates,
    VisitRows,
)
from emulator.plugins import NoSettings
from emulator.ports import Meter, SampleStream, Segment, Split, unmeasured
from emulator.seeding import RandomStreams
from emulator.storage.runlog import RoundRecord
from traces.ways import Ways

Intervals = Sequence[tuple[float, float]]

NOTHING = NoSettings()
INF = float("inf")


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def one_hot(*labels: int, of: int) -> Floats:
    """(len(labels), of): clients that hold one label each."""
    return np.eye(of)[list(labels)]


class FakeExecutor:
    """An executor of linear models: a task moves its model by the share `pull` of the way to a target.

    `targets` is (N,) or (N, P), one per client. A client's accuracy is 1 minus the distance between its
    target and the first parameter of the model that serves it. A task's loss, also `loss_before`, is the mean
    distance of the received parameters from their targets, `loss_squared` the mean squared distance; each of
    its batches has that loss, and as error rate that loss, at most 1. Without samples the update is zero, and
    metrics and accuracy are NaN. Of `tampering` it implements `scale` and
    `nan`.

    It records each wave of tasks with the models they start from, and what it scored, measured and evaluated.
    """

    def __init__(self, targets: npt.ArrayLike, num_parameters: int = 1, pull: float = 0.5) -> None:
        columns = np.array(targets, dtype=np.float64)
        columns = columns[:, None] if columns.ndim == 1 else columns
        self.targets = np.broadcast_to(columns, (len(columns), num_parameters))
        self.num_parameters = num_parameters
        self.pull = pull
        self.embedding_size = 2
        self.layout = {"weight": Segment(0, num_parameters, (num_parameters,))}
        self.solver = SolverFacts()
        self.waves: list[TrainTasks] = []
        self.starts: list[Floats32] = []
        self.evaluated: list[tuple[Floats32, Ints]] = []
        self.scored: list[tuple[Floats32, SampleRanges]] = []
        self.measured: list[tuple[Floats32, SampleRanges]] = []

    @property
    def trained(self) -> list[list[int]]:
        """The clients of each wave."""
        return [wave.client.tolist() for wave in self.waves]

    def initial(self, number: int) -> Floats32:
        return np.full(self.num_parameters, number, dtype=np.float32)

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        """The first slot, if the solver makes personal parameters of some; else the served models."""
        return state[min(state)] if state else received

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        starts = models[start]
        self.waves.append(tasks)
        self.starts.append(starts)
        counts = tasks.samples.counts()
        distance = np.where(counts[:, None] > 0, self.targets[tasks.client] - starts, 0.0)
        zeros = np.zeros(len(tasks))
        loss = np.abs(distance).mean(axis=1)
        steps = np.where(counts > 0, tasks.settings["local_steps"], 0)
        takes = np.arange(int(steps.max(initial=0))) < steps[:, None]
        metrics = {
            "loss": loss,
            "loss_before": loss,
            "loss_squared": np.square(distance).mean(axis=1),
            "step_norm": np.where(counts > 0, tasks.settings["local_steps"], np.nan),
            "batch_losses": np.where(takes, loss[:, None], np.nan),
            "batch_errors": np.where(takes, np.minimum(loss[:, None], 1), np.nan),
        }
        for name in ("loss", "loss_before", "loss_squared"):
            metrics[name] = np.where(counts > 0, metrics[name], np.nan)
        scale = tasks.tampering.get("scale", zeros + 1)
        scale = scale + np.where(tasks.tampering.get("nan", zeros), np.nan, 0)
        return ArrayUpdates(
            client=tasks.client,
            model=tasks.model,
            num_samples=counts,
            num_steps=tasks.settings["local_steps"].astype(np.int64),
            delta=(scale[:, None] * self.pull * distance).astype(np.float32),
            metrics={name: metrics[name] for name in ("loss", *sorted(tasks.measure))},
            state={name: column + 1 for name, column in tasks.state.items()},
        )

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        """Score a table row with the loss |target - model|, and the share 1 - loss of correct predictions.

        The client of a row is the row number modulo the number of clients.
        """
        self.scored.append((models.copy(), samples))
        correct = np.zeros((len(samples), len(models)))
        for request in range(len(samples)):
            targets = self.targets[samples.rows(request) % len(self.targets), 0]
            correct[request] = (1 - np.abs(targets[:, None] - models[:, 0])).sum(axis=0)
        loss = samples.counts()[:, None] - correct if "loss" in metrics else None
        return Scores(samples.counts(), correct=correct, loss=loss)

    def embeddings(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The number of a request's samples, and the first parameter of the model."""
        self.measured.append((parameters.copy(), samples))
        counts = samples.counts()
        return np.stack([counts, np.where(counts > 0, parameters[0], 0)], axis=1).astype(np.float32)

    def gradients(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The difference between the model and the target of the client that a request's rows belong to.

        The client of a row is the row number modulo the number of clients.
        """
        self.measured.append((parameters.copy(), samples))
        client = samples.first % len(self.targets)
        found: Floats32 = (parameters - self.targets[client]).astype(np.float32)
        return np.where(samples.counts()[:, None] > 0, found, np.float32(0))

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        serves = plan.first()
        self.evaluated.append((models.copy(), serves.copy()))
        # Of some clients alone, whose test samples are then one each.
        client = slice(None) if len(samples) == len(self.targets) else samples.first % len(self.targets)
        distance = np.abs(self.targets[client, 0] - models[serves, 0])
        empty = (samples.counts() == 0) | (serves < 0)
        return Evaluation(np.where(empty, np.nan, 1 - distance), np.where(empty, np.nan, distance))


class StoppingExecutor(FakeExecutor):
    """A fake whose clients stop after so many `epochs` (N,), by `held_out` (N,) samples of their own.

    Batches are filled. It predicts before the first epoch, and after each but the last possible one.
    """

    def __init__(
        self, targets: npt.ArrayLike, epochs: npt.ArrayLike, held_out: npt.ArrayLike, num_parameters: int = 1
    ) -> None:
        super().__init__(targets, num_parameters)
        self.solver = SolverFacts(stops=True)
        self._epochs, self._held_out = np.array(epochs), np.array(held_out)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        updates, sizes = super().train(tasks, models, start), tasks.settings["batch_size"]
        epochs, held_out = self._epochs[tasks.client], self._held_out[tasks.client]
        steps = epochs * epoch_steps(updates.num_samples - held_out, sizes)
        looks = np.where(held_out > 0, 1 + np.minimum(epochs, tasks.settings["local_epochs"] - 1), 0)
        stopped = {
            "epochs": epochs.astype(np.float64),
            "held_out": held_out.astype(np.float64),
            "trained_samples": steps * sizes,
            "forward_samples": looks * held_out,
        }
        return replace(updates, num_steps=steps, metrics={**updates.metrics, **stopped})


class FakeSamples:
    """Implements `emulator.ports.SampleReader`: `num_rows` samples of one feature, `times` their row."""

    sample_shape = (1,)

    def __init__(self, num_rows: int, num_labels: int, times: int = 1) -> None:
        self._num_rows, self.num_labels, self._times = num_rows, num_labels, times

    def __len__(self) -> int:
        return self._num_rows

    def features(self, rows: Ints) -> Floats32:
        return (self._times * rows[:, None]).astype(np.float32)

    def labels(self, rows: Ints) -> Ints:
        return rows % self.num_labels

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 7 + rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        return np.arange(per_label)


class FakeStream:
    """A stream with label histograms set by hand.

    `histograms` is (steps, N, L), with a step every `rounds_per_step` rounds. A client's data changes when
    its histogram does, and where `touched` (steps, N) is true. `train` and `test` are the numbers of samples
    of each client: one range of the table, the same at every step, all of which arrived at the current step.
    `concepts` (steps + 1, N), if given, are the true concepts; the last row is of test samples only.
    `holding` (steps, N) is who takes part, everybody by default, and must fit the histograms and numbers.
    """

    def __init__(
        self,
        histograms: npt.ArrayLike,
        rounds_per_step: int = 1,
        train: Sequence[int] | None = None,
        test: Sequence[int] | None = None,
        touched: npt.ArrayLike | None = None,
        concepts: npt.ArrayLike | None = None,
        holding: npt.ArrayLike | None = None,
    ) -> None:
        self.histograms = np.array(histograms, dtype=np.float64)
        self.num_steps, self.num_clients, self.num_labels = self.histograms.shape
        self.rounds_per_step = rounds_per_step
        self.step = -1
        differs = (self.histograms[1:] != self.histograms[:-1]).any(axis=2)
        self._touched = np.vstack([np.ones((1, self.num_clients), dtype=bool), differs])
        if touched is not None:
            self._touched |= np.array(touched, dtype=bool)
        everybody = np.ones((self.num_steps, self.num_clients), dtype=bool)
        self._holding: Bools = everybody if holding is None else np.array(holding, dtype=bool)
        self._concepts = None if concepts is None else np.array(concepts, dtype=np.int64)
        sizes = {"train": train or [1] * self.num_clients, "test": test or [1] * self.num_clients}
        self._last = {split: np.cumsum(np.array(column)) for split, column in sizes.items()}
        self._sizes = {split: np.array(column) for split, column in sizes.items()}

    def advance_to_round(self, round_: int) -> Ints:
        step = min(round_ // self.rounds_per_step, self.num_steps - 1)
        changed = self._touched[self.step + 1 : step + 1].any(axis=0)
        self.step = step
        return np.flatnonzero(changed)

    @property
    def holding(self) -> Bools:
        return self._holding[max(self.step, 0)]

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        last = self._last[split][ids]
        return SampleRanges.one_each(last - self._sizes[split][ids], last)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        ranges = self.held(ids, "train")
        last = ranges.last if first_step <= self.step <= last_step else ranges.first
        return SampleRanges.one_each(ranges.first, last)

    @property
    def concepts(self) -> Ints | None:
        return None if self._concepts is None else self._concepts[self.step]

    @property
    def test_concepts(self) -> Ints | None:
        return None if self._concepts is None else self._concepts[self.step + 1]

    @property
    def newest_onset(self) -> Ints | None:
        if self._concepts is None:
            return None
        newest = np.zeros(self.num_clients, dtype=np.int64)
        for step in range(1, self.step + 1):
            newest[self._concepts[step] != self._concepts[step - 1]] = step
        return newest

    def label_histograms(self, ids: Ints) -> Floats:
        histograms: Floats = self.histograms[self.step, ids]
        return histograms


class FakeAvailability:
    """Intervals [start, end) by client, scanned one by one; a client without an entry is always online."""

    def __init__(self, intervals: Mapping[int, Intervals] | None = None) -> None:
        self.intervals = dict(intervals or {})

    @property
    def facts(self) -> Mapping[str, int]:
        return {}

    def _of(self, client: int) -> Intervals:
        return self.intervals.get(client, [(-INF, INF)])

    def online(self, ids: Ints, time_s: float) -> Bools:
        flags = [any(start <= time_s < end for start, end in self._of(c)) for c in ids.tolist()]
        return np.array(flags, dtype=bool)

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        ends = [min([e for _, e in self._of(c) if e > time_s], default=INF) for c in ids.tolist()]
        return np.array(ends, dtype=np.float64)

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        starts = [min([s for s, _ in self._of(c) if s > time_s], default=INF) for c in ids.tolist()]
        return np.array(starts, dtype=np.float64)


def a_fleet(
    num_clients: int,
    seconds_per_sample: float | Sequence[float] = 1.0,
    download_bytes_per_s: float | Sequence[float] = 1.0,
    upload_bytes_per_s: float | Sequence[float] = 1.0,
    latency_s: float | Sequence[float] = 0.0,
) -> Fleet:
    """A fleet by its columns; a single number applies to all clients."""
    columns = (seconds_per_sample, download_bytes_per_s, upload_bytes_per_s, latency_s)
    return Fleet(*(np.full(num_clients, column, dtype=np.float64) for column in columns))


class FakeClusterer(Clusterer):
    """A clusterer that follows a script: its n-th call of `on_data`, from 0, returns `script.get(n)`.

    Without a script all clients are always in one cluster. With `reports` clients report label histograms. It
    records the views it was given.
    """

    Settings = NoSettings

    def __init__(self, script: Mapping[int, Assignment] | None = None, reports: bool = False) -> None:
        self.script = script
        self.reports = reports
        self.views: list[View] = []

    @property
    def needs_reports(self) -> bool:
        return self.reports

    def on_data(self, view: View) -> Assignment | None:
        call = len(self.views)
        # The coordinator keeps updating its table of reports.
        self.views.append(replace(view, reports=view.reports.copy()))
        if self.script is not None:
            return self.script.get(call)
        return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))


def fresh(members: Sequence[int], num_parameters: int = 1) -> Assignment:
    """A first assignment, with the cluster of each client and models that are all zero."""
    return Assignment.fresh(np.array(members), max(members) + 1, np.zeros(num_parameters, dtype=np.float32))


@dataclass
class MemoryLog:
    """A log that keeps its records in a list, and the visits of each server step in another."""

    records: list[RoundRecord] = field(default_factory=list)
    visits: list[VisitRows] = field(default_factory=list)

    def append_visits(self, rows: VisitRows) -> None:
        self.visits.append(rows)

    def append(self, record: RoundRecord) -> None:
        self.records.append(record)


@dataclass
class Population:
    """Clients, their devices and a method, ready to run; every field but the executor has a simple default.

    With the default fleet a model of one parameter takes 4 s to download and 4 s to upload, and a sample 1 s
    to train on: a visit takes 9 s.
    """

    executor: FakeExecutor
    stream: SampleStream | None = None
    availability: FakeAvailability = field(default_factory=FakeAvailability)
    fleet: Fleet | None = None
    time_model: Literal["driftscale", "fedscale"] = "driftscale"
    model_factor: float = 1.0
    clusterer: Clusterer = field(default_factory=lambda: Single(NOTHING))
    detectors: Mapping[str, Detector] = field(default_factory=lambda: {"changed": Changed(NOTHING)})
    selector: Selector = field(default_factory=lambda: Random(NOTHING))
    memory: Memory = field(default_factory=lambda: Held(HeldSettings()))
    aggregator: Aggregator = field(default_factory=lambda: FedAvg(FedAvgSettings()))
    participants: int | None = None  # all clients
    over_commit: float = 1.0
    pacing: SyncSettings | Callable[[CohortSize], Pacing] = field(default_factory=SyncSettings)
    schedules: tuple[Schedule, ...] = ()
    representation: Representation = field(default_factory=lambda: Label(NOTHING))
    adaptation: Adaptation = field(default_factory=lambda: NoAdaptation(NOTHING))
    reference: Reference | None = None
    rounds: int = 1
    seconds_per_round: float | None = None
    local_steps: int = 1
    local_epochs: int | None = None
    last: LastBatch = "filled"
    batch_size: int = 1
    evaluate_every: int = 1
    evaluate_every_s: float | None = None
    log_model_accuracy: bool = False
    log_visits: bool = False
    accuracies: frozenset[FurtherAccuracy] = frozenset()
    min_online: int = 1
    max_wait_days: float = 30.0
    nonfinite_updates: Literal["drop", "stop"] = "drop"
    hear: Hear = "online"
    client_distance: Representation = field(default_factory=lambda: Label(NOTHING))
    measuring: Reference | None = None
    faults: FaultSettings = field(default_factory=FaultSettings)
    jitter: Jitter = NO_JITTER
    seed: int = 0
    ways: Ways | None = None
    meter: Meter = unmeasured

    def coordinator(self) -> Coordinator:
        clients = len(self.executor.targets)
        stream = self.stream or FakeStream(np.ones((1, clients, 1)))
        cohort = CohortSize(self.participants or clients, self.over_commit)
        pacing = self.pacing(cohort) if callable(self.pacing) else Sync(self.pacing, cohort)
        federation = Federation(
            Parts(
                clusterer=self.clusterer,
                detectors=self.detectors,
                selector=self.selector,
                memory=self.memory,
                aggregator=self.aggregator,
                pacing=pacing,
                schedules=self.schedules,
                representation=self.representation,
                adaptation=self.adaptation,
            ),
            RoundSettings(
                rounds=self.rounds,
                local_steps=self.local_steps,
                local_epochs=self.local_epochs,
                stops=self.executor.solver.stops,
                last=self.last,
                batch_size=self.batch_size,
                learning_rate=0.1,
                seconds_per_round=self.seconds_per_round,
                evaluate_every=self.evaluate_every,
                evaluate_every_s=self.evaluate_every_s,
                log_model_accuracy=self.log_model_accuracy,
                log_visits=self.log_visits,
                accuracies=self.accuracies,
                min_online=self.min_online,
                max_wait_days=self.max_wait_days,
                nonfinite_updates=self.nonfinite_updates,
                hear=self.hear,
                client_distance=self.client_distance,
            ),
            stream=stream,
            availability=self.availability,
            latency=TIME_MODELS[self.time_model](
                self.fleet or a_fleet(clients),
                self.model_factor,
                self.jitter.device_factors(RandomStreams(self.seed), clients, "fake"),
            ),
            executor=self.executor,
            reference=self.reference,
            measuring=self.measuring,
            streams=RandomStreams(self.seed),
            faults=Faults(self.faults, clients, RandomStreams(self.seed), self.jitter),
            ways=self.ways,
            meter=self.meter,
        )
        return Coordinator(federation, pacing)

    def play(self, log: Log | None = None) -> Played:
        """Run to the end; `log` receives the records instead of `Played.records`, if given."""
        coordinator = self.coordinator()
        memory = MemoryLog()
        Emulation(coordinator, log or memory).run()
        return Played(memory.records, coordinator, self.executor, memory.visits)


@dataclass(frozen=True)
class Played:
    """The records of a run, its coordinator and executor at the end, and its visits if they are logged."""

    records: list[RoundRecord]
    coordinator: Coordinator
    executor: FakeExecutor
    visits: list[VisitRows] = field(default_factory=list)

    @property
    def models(self) -> list[list[float]]:
        models: list[list[float]] = self.coordinator.federation.bank.parameters.tolist()
        return models


def a_view(
    reports: npt.ArrayLike | None = None,
    *,
    drifted: Sequence[int] = (),
    assignment: Assignment | None = None,
    models: npt.ArrayLike | None = None,
    model_ids: Sequence[int] = (),
    held: SampleRanges | None = None,
    num_clients: int | None = None,
    round_: int = 0,
    step: int = 0,
    seed: int = 0,
    changed: Sequence[int] = (),
    participants: Sequence[int] = (),
    updates: Updates | None = None,
    concepts: Sequence[int] | None = None,
    claimed: Sequence[int] = (),
    score: ScoreRequest | None = None,
    train: TrainRequest | None = None,
    expected_s: Callable[[Ints], Floats] | None = None,
    layout: Mapping[str, Segment] | None = None,
    arrived: Callable[[Ints, int, int], SampleRanges] | None = None,
    triggers: list[Trigger] | None = None,
    distance: DistanceName = "l1",
    absent: Sequence[int] = (),
    joined: Sequence[int] = (),
    left: Sequence[int] = (),
    rebased: bool = False,
    remembered: Mapping[str, Floats] | None = None,
) -> View:
    """A view with a client for each row of `reports`, or with `num_clients` clients.

    All but `absent` hold data. `drifted` are the clients that a detector has flagged. Client requests fail
    unless `score` or `train` handles them. Each client's samples have arrived at `step`, unless `arrived` is
    given.
    """
    reports = np.array(reports if reports is not None else np.zeros((num_clients or 1, 1)), dtype=np.float64)
    flags = np.zeros(len(reports), dtype=bool)
    flags[list(drifted)] = True
    ranges = held or SampleRanges.one_each(np.arange(len(reports)), np.arange(len(reports)) + 1)
    return View(
        round=round_,
        step=step,
        num_clients=len(reports),
        num_labels=reports.shape[1],
        streams=RandomStreams(seed),
        assignment=assignment,
        models=np.array(np.zeros((0, 2)) if models is None else models, dtype=np.float32),
        model_ids=np.array(model_ids, dtype=np.int64),
        cluster_labels=np.array(model_ids, dtype=np.int64),
        layout=layout or {},
        reports=reports,
        holding=~np.isin(np.arange(len(reports)), list(absent)),
        distance=distance,
        drift={"changed": flags},
        changed=np.array(changed, dtype=np.int64),
        participants=np.array(participants, dtype=np.int64),
        updates=updates,
        truth=lambda: None if concepts is None else np.array(concepts, dtype=np.int64),
        onset_truth=lambda: None,
        initial=lambda number: np.full(2, number, dtype=np.float32),
        held=ranges.take,
        arrived=arrived or (lambda ids, first, last: ranges.take(ids)),
        claimed=lambda: np.array(claimed, dtype=np.int64),
        score=score or _refuse_request,
        train=train or _refuse_request,
        expected_s=expected_s or (lambda ids: np.ones(len(ids))),
        local_steps=5,
        batch_size=20,
        learning_rate=0.1,
        log_trigger=(triggers if triggers is not None else []).append,
        rebased=rebased,
        joined=np.array(joined, dtype=np.int64),
        left=np.array(left, dtype=np.int64),
        remembered=remembered or {},
    )


def _refuse_request(*request: object, **more: object) -> NoReturn:
    raise AssertionError("a part sent a client request")
