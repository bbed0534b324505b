"""A fleet of phones with availability, for workloads with faked training or without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from device_profiles import Fleet, load_profile
from emulator.arrays import NO_IDS, Floats, Floats32, Ints
from emulator.assigning import deal
from emulator.latency import DriftscaleLatency
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    SolverFacts,
    TrainTasks,
    Work,
)
from emulator.ports import Segment, Split
from emulator.seeding import RandomStreams
from traces.availability.diurnal import DiurnalSettings, generate
from traces.availability.interval_availability import DeviceIntervals, IntervalAvailability

SEED = 1
NUM_LABELS = 10
SAMPLES = 100  # per client and split
LOCAL_STEPS, BATCH_SIZE = 20, 20
BYTES_PER_VISIT = 38_440.0  # in each direction: the parameters of the dense network of `training`


@dataclass(frozen=True)
class Population:
    """N clients: their devices, their availability, and the online intervals of the devices they share."""

    fleet: Fleet
    availability: IntervalAvailability
    intervals: DeviceIntervals

    @classmethod
    def of(cls, clients: int) -> Population:
        """Draw that many smartphones with diurnal availability, as in the shipped digits-online."""
        streams = RandomStreams(SEED)
        fleet = load_profile("smartphones").draw(clients, streams.generator("devices"))
        rng = streams.generator("availability")
        devices = min(clients, DiurnalSettings().num_devices)
        intervals = generate(devices, rng)
        return cls(fleet, IntervalAvailability(intervals, deal(clients, devices, rng)), intervals)

    def __len__(self) -> int:
        return len(self.fleet.seconds_per_sample)

    @property
    def latency(self) -> DriftscaleLatency:
        return DriftscaleLatency(self.fleet)

    def visit_s(self, clients: Ints, bytes_each_way: float = BYTES_PER_VISIT) -> Floats:
        """Seconds of a visit of each client, of shape (n,), with that many bytes downloaded, and uploaded."""
        work = Work.of(
            len(clients),
            download_bytes=bytes_each_way,
            upload_bytes=bytes_each_way,
            trained_samples=LOCAL_STEPS * BATCH_SIZE,
        )
        return self.latency.phases(clients, work).total_s


class StillStream:
    """A `SampleStream` whose data never changes: equally many samples per client, uniform labels."""

    num_labels = NUM_LABELS
    concepts: Ints | None = None
    test_concepts: Ints | None = None
    newest_onset: Ints | None = None

    def __init__(self, clients: int) -> None:
        self.num_clients = clients
        self.step = -1
        self.holding = np.ones(clients, dtype=bool)

    def advance_to_round(self, round_: int) -> Ints:
        first_call, self.step = self.step < 0, 0
        return np.arange(self.num_clients) if first_call else NO_IDS

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        first = (2 * ids + (split == "test")) * SAMPLES
        return SampleRanges.one_each(first, first + SAMPLES)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        return self.held(ids, "train")

    def label_histograms(self, ids: Ints) -> Floats:
        return np.full((len(ids), NUM_LABELS), 1 / NUM_LABELS)


class InstantExecutor:
    """An `Executor` whose training, scoring and evaluation cost nothing and change nothing."""

    num_parameters = 1
    weights_from = 2**20
    embedding_size = 1
    layout: Mapping[str, Segment] = {"weight": Segment(0, 1, (1,))}
    solver = SolverFacts()

    def initial(self, number: int) -> Floats32:
        return np.zeros(1, dtype=np.float32)

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        return received

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        return ArrayUpdates(
            tasks.client,
            tasks.model,
            tasks.samples.counts(),
            tasks.settings["local_steps"].astype(np.int64),
            np.zeros((len(tasks), 1), dtype=np.float32),
            {name: np.zeros(len(tasks)) for name in ("loss", *sorted(tasks.measure))},
        )

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        zeros = np.zeros((len(samples), len(models)))
        return Scores(samples.counts(), correct=zeros, loss=zeros)

    def embeddings(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        return np.zeros((len(samples), 1), dtype=np.float32)

    def gradients(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        return np.zeros((len(samples), 1), dtype=np.float32)

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        return Evaluation(np.ones(len(samples)), np.zeros(len(samples)))
