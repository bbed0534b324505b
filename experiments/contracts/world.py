"""A little world to play parts in: clients, their samples, real models and a real memory, and no training.

Everything that a client says is a fixed function of (client, model parameters, samples).
"""

from __future__ import annotations

import math

import numpy as np

from coordinator.aggregators.fedavg import FedAvg, FedAvgParameters
from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.memories import Memory
from coordinator.memories.claimed import Claimed, ClaimedParameters
from coordinator.view import Answers, ClaimedBy, Part, Samples, View
from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, Metric, SampleRanges, Trigger
from emulator.ports import Segment
from emulator.seeding import RandomStreams
from experiments.contracts.scores import METRICS, scores_of, target_of

LAYOUT = {"weight": Segment(0, 3, (3,)), "mask": Segment(3, 6, (3,), trainable=False)}
NUM_PARAMETERS = 6
NUM_LABELS = 4
HELD_STEPS = 3
"""Data steps after which samples expire."""


class LittleWorld:
    """`labels` (S, N, L): the label shares of what each client receives in each of S data steps; the largest
    is its concept. The last of several clients receives nothing in odd steps.

    It opens a round when it is told to, and does between the moments what the coordinator does. When
    `silent_step` is given, every third client is away in the first round of a step, client 1 answers no
    question ever, and in that step nobody answers any.
    """

    def __init__(self, labels: Floats, memory: Memory | None = None, silent_step: int | None = None) -> None:
        self.num_steps, self.num_clients, _ = labels.shape
        self.round = -1
        self.step = -1
        self.assignment: Assignment | None = None
        self.bank = ModelBank(NUM_PARAMETERS)
        self.memory = memory or Claimed(ClaimedParameters())
        self.reports: Floats = np.full(labels.shape[1:], np.nan)
        self.triggers: list[Trigger] = []
        self.questions: list[tuple[Ints, Ints, str, str, int | None]] = []
        self._labels = labels
        self._silent_step = silent_step
        self._online: Bools = np.ones(self.num_clients, dtype=bool)
        self._has_news: Bools = np.zeros(self.num_clients, dtype=bool)
        client, step = np.mgrid[: self.num_clients, : self.num_steps]
        sizes = 4 + (3 * client + 5 * step) % 7
        if self.num_clients > 1:
            sizes[-1, 1::2] = 0
        # The table is sorted by client and step: these are its borders, (N, S + 1).
        ends = np.cumsum(sizes.ravel())
        before = np.concatenate(([0], ends[:-1])).reshape(sizes.shape)
        self._borders: Ints = np.hstack([before, ends.reshape(sizes.shape)[:, -1:]]).astype(np.int64)
        self._row_concept = np.repeat(labels.argmax(axis=2).T.ravel(), sizes.ravel())

    # -- facts -----------------------------------------------------------------------------------------------

    def arrived(self, clients: Ints, first_step: int, last_step: int) -> SampleRanges:
        """What arrived in these steps and is still held: one range each."""
        first = int(np.clip(first_step, max(self.step - HELD_STEPS + 1, 0), self.step + 1))
        last = max(min(last_step, self.step) + 1, first)
        return SampleRanges.one_each(self._borders[clients, first], self._borders[clients, last])

    def held(self, clients: Ints) -> SampleRanges:
        """All samples that each client holds now: one range each."""
        return self.arrived(clients, 0, self.step)

    def claimed(self) -> Ints:
        """(M,) samples that the memory holds for each model."""
        everyone, view = np.arange(self.num_clients), self.view(self.memory)
        held = [self.memory.samples(everyone, row, view).counts().sum() for row in range(len(self.bank))]
        return np.array(held, dtype=np.int64)

    @property
    def concepts(self) -> Ints:
        """(N,) the concept of each client's newest samples."""
        newest = self._borders[:, self.step + 1] - 1
        concepts: Ints = self._row_concept[newest]
        return concepts

    def view(
        self,
        part: Part,
        *,
        drift: dict[str, Bools] | None = None,
        changed: Ints = NO_IDS,
        participants: Ints = NO_IDS,
        updates: ArrayUpdates | None = None,
    ) -> View:
        """What `part` may see of what is true now; what is new at this moment is named."""
        return View(
            round=self.round,
            step=self.step,
            num_clients=self.num_clients,
            num_labels=NUM_LABELS,
            streams=RandomStreams(9),
            assignment=self.assignment,
            models=self.bank.parameters,
            model_ids=self.bank.ids,
            layout=LAYOUT,
            reports=self.reports,
            drift=drift or {},
            changed=changed,
            participants=participants,
            updates=updates,
            truth=lambda: self._truth_for(part),
            initial=initial,
            held=self.held,
            arrived=self.arrived,
            claimed=self.claimed,
            score=self.score,
            log_trigger=self.log_trigger,
        )

    def _truth_for(self, part: Part) -> Ints:
        assert part.oracle, f"{part.name} looks at the true concepts, and does not declare `oracle = True`"
        return self.concepts

    def log_trigger(self, trigger: Trigger) -> None:
        """As in a run; refuses what a log cannot hold."""
        kinds = type(trigger.shift), type(trigger.clusters), type(trigger.fired)
        assert kinds == (float, int, bool), f"{trigger}: not a float, an int and a bool of Python's"
        for number in (trigger.shift, trigger.mean_distance, trigger.threshold):
            assert number is None or math.isfinite(number), f"{trigger}: its numbers must be finite"
        self.triggers.append(trigger)

    # -- questions -------------------------------------------------------------------------------------------

    def score(
        self,
        clients: Ints,
        models: Ints,
        samples: Samples,
        metrics: frozenset[Metric] = frozenset({"correct"}),
        limit: int | None = None,
    ) -> Answers:
        """As `coordinator.view.Ask` says; refuses what no run could answer."""
        for name, ids, most in (("clients", clients, self.num_clients), ("models", models, len(self.bank))):
            assert ids.dtype == np.int64, f"a question names {name} by {ids.dtype} numbers, not int64"
            assert ((ids >= 0) & (ids < most)).all(), f"a question to {name} {ids}, and there are {most}"
        assert (np.diff(clients) > 0).all(), f"a question to clients {clients}: not ascending and distinct"
        assert len(models), "a question about no model"
        assert metrics, "a question that asks for no metric"
        assert metrics <= METRICS, f"a question for {sorted(metrics)}; there are {sorted(METRICS)}"
        assert limit is None or limit >= 1, f"a question about at most {limit} samples"
        self.questions.append((clients.copy(), models.copy(), repr(samples), repr(sorted(metrics)), limit))
        ranges = self._samples_of(samples, clients)
        asked = np.flatnonzero(self._answers()[clients] & (ranges.counts() > 0))
        counts = ranges.counts()[asked]
        if limit is not None and counts.sum() > limit:
            counts = counts * limit // counts.sum()
        rows = [ranges.rows(row)[:count] for row, count in zip(asked.tolist(), counts, strict=True)]
        scores = scores_of(self.bank.parameters[models], rows, self._row_concept, NUM_LABELS, metrics)
        return Answers(clients[asked], scores)

    def _samples_of(self, samples: Samples, clients: Ints) -> SampleRanges:
        if isinstance(samples, ClaimedBy):
            model, most = samples.model, len(self.bank)
            assert 0 <= model < most, f"a question about samples of model {model}, and there are {most}"
            return self.memory.samples(clients, model, self.view(self.memory))
        assert samples == "arrived", f"a question about samples {samples!r}"
        return self.arrived(clients, self.step, self.step)

    def _answers(self) -> Bools:
        """(N,) who answers questions now."""
        if self._silent_step is None:
            return self._online
        answers: Bools = self._online & (np.arange(self.num_clients) != 1)
        return answers & (self.step != self._silent_step)

    # -- what a coordinator does between the moments ---------------------------------------------------------

    def open_round(self, step: int, reports: bool = False) -> tuple[Ints, dict[str, Bools]]:
        """The next round, at data step `step`; who has news, and, where `reports` are made, who drifted.

        Everybody registers in the first round; later, who is away is heard when it is back.
        """
        clients = np.arange(self.num_clients)
        if step > self.step:
            self._has_news |= self._borders[:, step + 1] > self._borders[:, step]
        first_of_step, self.step, self.round = step > self.step, step, self.round + 1
        away = first_of_step and self.round > 0 and self._silent_step is not None
        self._online = (clients + step) % 3 != 0 if away else np.ones(self.num_clients, dtype=bool)
        news = np.flatnonzero(self._has_news & self._online)
        self._has_news[news] = False
        if not reports:
            return news, {}
        # NaN differs from everything: who never reported has drifted.
        drifted = np.zeros(self.num_clients, dtype=bool)
        drifted[news] = (self.reports[news] != self._labels[step, news]).any(axis=1)
        self.reports[drifted] = self._labels[step, drifted]
        return news, {"changed": drifted}

    def apply(self, assignment: Assignment) -> None:
        """The models and members of `assignment` are those of now."""
        if self.assignment is None or assignment.changes_models:
            self.bank.apply(assignment)
            self.memory.remix(assignment)
        self.assignment = assignment

    def claim(self) -> None:
        """The memory notes who belongs where."""
        self.memory.claim(self.view(self.memory))

    def participants(self) -> Ints:
        """Two of three clients that are online and have a lane."""
        assert self.assignment is not None
        ready = np.flatnonzero(self._online & (self.assignment.lane >= 0))
        return ready[(ready + self.round) % 3 != 0] if len(ready) > 1 else ready

    def train(self, participants: Ints) -> ArrayUpdates | None:
        """What came back of their tasks, aggregated; None when nobody had samples to train on."""
        client, row, samples = self.memory.rows(
            participants, self.view(self.memory, participants=participants)
        )
        counts = samples.counts()
        if not counts.any():
            return None
        starts = self.bank.parameters[row]
        delta = np.zeros_like(starts)
        weight = LAYOUT["weight"]
        for task in np.flatnonzero(counts).tolist():
            target = target_of(self._row_concept[samples.rows(task)]).mean()
            own = 0.01 * np.sin(client[task] + np.arange(weight.first, weight.last))
            delta[task, : weight.last] = 0.5 * (target - starts[task, : weight.last]) + own
        updates = ArrayUpdates(
            client=client,
            model=self.bank.ids[row],
            num_samples=counts,
            num_steps=np.full(len(client), 4),
            delta=delta,
            metrics={"loss": np.where(counts > 0, np.abs(delta).mean(axis=1), np.nan)},
        )
        fedavg = FedAvg(FedAvgParameters())
        models = fedavg.aggregate(updates, self.view(fedavg, updates=updates))
        self.bank.publish(models, updated=np.isin(self.bank.ids, updates.model))
        return updates


def initial(number: int) -> Floats32:
    """(P,) the number-th initialisation: its weights are `number`, and it sees everything."""
    return np.array([number] * 3 + [1] * 3, dtype=np.float32)


def settled_view(part: Part, num_clients: int, num_models: int) -> View:
    """What `part` may see in the middle of a round, when all clients are on the first of so many different
    models."""
    world = LittleWorld(np.full((1, num_clients, NUM_LABELS), 1 / NUM_LABELS))
    starts = np.random.default_rng(4).normal(size=(num_models, NUM_PARAMETERS)).astype(np.float32)
    world.open_round(0)
    world.apply(Assignment.fresh(np.zeros(num_clients, dtype=np.int64), num_models, starts))
    return world.view(part)
