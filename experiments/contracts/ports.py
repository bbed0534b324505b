"""Fake ports of a federation of a few clients: a sample stream, availability by table, and toy models.

Samples arrive and expire. Nothing is random: the samples, updates and responses of a client are fixed
functions of its id, of model parameters and of samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from device_profiles import Fleet
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import (
    METRICS_BY_LABEL,
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    SolverFacts,
    TrainTasks,
)
from emulator.ports import Segment, Split
from traces.ways import Ways

LAYOUT = {"weight": Segment(0, 3, (3,)), "mask": Segment(3, 6, (3,), trainable=False)}
NUM_PARAMETERS = 6
NUM_LABELS = 4
HELD_STEPS = 3
"""Data steps after which samples expire."""

SLOT_S = 100.0
"""Virtual seconds between possible changes of availability."""


class LabelStream:
    """Implements `emulator.ports.SampleStream` for given label shares `labels` (S, N, L) of S data steps.

    The label of largest share is the concept of the samples that arrive. Clients start with samples of
    `HELD_STEPS` steps. Of several clients the last receives nothing in odd steps from 1 on, and no client
    receives anything in `silent_step`; samples expire all the same. With `turnover` (S, N) clients come and
    go: what a client starts with and what arrives at a step is left out where it is False at that step (of
    what clients start with: at step 0).
    """

    def __init__(
        self,
        labels: Floats,
        rounds_per_step: int = 1,
        silent_step: int | None = None,
        turnover: Bools | None = None,
    ) -> None:
        self.num_steps, self.num_clients, self.num_labels = labels.shape
        self.step = -1
        self._labels = labels
        self._rounds_per_step = rounds_per_step
        client, step = np.mgrid[: self.num_clients, 1 - HELD_STEPS : self.num_steps]
        sizes = 4 + (3 * client + 5 * step) % 7
        if self.num_clients > 1:
            sizes[-1, (step[-1] > 0) & (step[-1] % 2 == 1)] = 0
        sizes[step == silent_step] = 0
        if turnover is not None:
            sizes[~turnover[np.maximum(step, 0), client]] = 0
        self._arrives = sizes > 0
        # The table is sorted by client and step; the first row of each, and the end: (N, steps + 1).
        ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
        self._borders: Ints = np.hstack([ends[:, :1] - sizes[:, :1], ends]).astype(np.int64)
        concept = np.concatenate([labels[:1]] * (HELD_STEPS - 1) + [labels]).argmax(axis=2)
        self.row_concept: Ints = np.repeat(concept.T.ravel(), sizes.ravel())

    def advance_to_round(self, round_: int) -> Ints:
        before, self.step = self.step, min(round_ // self._rounds_per_step, self.num_steps - 1)
        if before < 0:
            return np.arange(self.num_clients)
        moved = [
            self._arrives[:, self._column(last) + 1 : self._column(last + self.step - before) + 1]
            for last in (before, before - HELD_STEPS)
        ]
        return np.flatnonzero(np.hstack(moved).any(axis=1))

    @property
    def holding(self) -> Bools:
        return self.held(np.arange(self.num_clients), "train").counts() > 0

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        return self.arrived(ids, 1 - HELD_STEPS, self.step)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        oldest = self.step - HELD_STEPS + 1
        first = self._column(max(oldest, first_step) if first_step > 0 else oldest)
        last = max(self._column(min(last_step, self.step)) + 1, first)
        return SampleRanges.one_each(self._borders[ids, first], self._borders[ids, last])

    @property
    def concepts(self) -> Ints:
        newest = self._borders[:, self._column(self.step) + 1] - 1
        concepts: Ints = self.row_concept[newest]
        return concepts

    @property
    def test_concepts(self) -> Ints:
        return self.concepts

    @property
    def newest_onset(self) -> Ints:
        steps = np.arange(1, self.step + 1)[:, None]
        concept = self._labels[: self.step + 1].argmax(axis=2)
        changes: Ints = np.where(concept[1:] != concept[:-1], steps, 0).max(axis=0, initial=0)
        return changes

    def label_histograms(self, ids: Ints) -> Floats:
        histograms: Floats = self._labels[self.step, ids]
        return histograms

    def _column(self, step: int) -> int:
        """The column of `_arrives` and `_borders` for the samples that arrive at `step`."""
        return step + HELD_STEPS - 1


class Presence:
    """Implements `emulator.ports.Availability` by a table `online` (slots, N), a row per `SLOT_S` seconds.

    After the last slot availability does not change any more.
    """

    def __init__(self, online: Bools) -> None:
        self._online = online
        self._starts_s = SLOT_S * np.arange(len(online))
        edge = np.zeros_like(online[:1])
        self._comes: Bools = np.vstack([edge, online[1:] & ~online[:-1]])
        self._goes: Bools = np.vstack([edge, online[:-1] & ~online[1:]])

    @property
    def facts(self) -> Mapping[str, int]:
        return {}

    def online(self, ids: Ints, time_s: float) -> Bools:
        slot = int(np.searchsorted(self._starts_s, time_s, side="right")) - 1
        online: Bools = self._online[max(slot, 0), ids]
        return online

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        return self._next_s(self._goes, ids, time_s)

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        return self._next_s(self._comes, ids, time_s)

    def _next_s(self, changes: Bools, ids: Ints, time_s: float) -> Floats:
        later = np.where(
            changes[:, ids] & (self._starts_s > time_s)[:, None], self._starts_s[:, None], np.inf
        )
        earliest: Floats = later.min(axis=0)
        return earliest


class ToySamples:
    """Implements `emulator.ports.SampleReader` for the samples of a `LabelStream`, of two numbers by two.

    The label of a sample is its concept, and its features are a fixed function of its row.
    """

    sample_shape = (2, 2)
    num_labels = NUM_LABELS

    def __init__(self, stream: LabelStream) -> None:
        self._concepts = stream.row_concept

    def __len__(self) -> int:
        return len(self._concepts)

    def features(self, rows: Ints) -> Floats32:
        numbers = np.sin(rows[:, None, None] + np.array([[0.0, 1.0], [2.0, 4.0]]))
        features: Floats32 = (self._concepts[rows, None, None] + numbers).astype(np.float32)
        return features

    def labels(self, rows: Ints) -> Ints:
        return self._concepts[rows]

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 0 * rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        return np.arange(per_label)


class ToyModels:
    """Implements `emulator.ports.Executor` for models of three weights behind a mask, on `stream`'s samples.

    With `ways` it reads them in these: the concept of a sample that is not plain is its label as it is read,
    less a tenth of its first feature.

    A task moves its weights halfway to the mean target of its samples' concepts, plus a small offset that
    depends on its client. Its losses are functions of the update, NaN without samples.
    """

    layout: Mapping[str, Segment] = LAYOUT
    solver = SolverFacts()
    num_parameters = NUM_PARAMETERS
    embedding_size = 2

    def __init__(self, stream: LabelStream, ways: Ways | None = None) -> None:
        self._stream, self._ways = stream, ways

    def _concept(self, rows: Ints) -> Floats | Ints:
        """(n,) the concepts of table rows (n,)."""
        if self._ways is None or (rows < len(self._ways)).all():
            return self._stream.row_concept[rows]
        features = self._ways.features(rows).reshape(len(rows), -1)
        return self._ways.labels(rows) - 0.1 * features[:, 0]

    def initial(self, number: int) -> Floats32:
        return initial(number)

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        return received

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        starts = models[start]
        counts = tasks.samples.counts()
        delta = np.zeros_like(starts)
        weight = LAYOUT["weight"]
        for task in np.flatnonzero(counts * tasks.settings["local_steps"]).tolist():
            target = target_of(self._concept(tasks.samples.rows(task))).mean()
            offset = 0.01 * np.sin(tasks.client[task] + np.arange(weight.first, weight.last))
            delta[task, : weight.last] = 0.5 * (target - starts[task, : weight.last]) + offset
        moved = np.abs(delta).mean(axis=1, dtype=np.float64)
        moved = np.where(counts > 0, moved, np.nan)
        takes = np.arange(1, int(tasks.settings["local_steps"].max(initial=0)) + 1)
        of_batches = np.where(takes <= tasks.settings["local_steps"][:, None], moved[:, None] / takes, np.nan)
        metrics = {
            "loss": moved,
            "loss_before": 2 * moved,
            "loss_squared": np.square(moved),
            "step_norm": np.where(counts > 0, tasks.settings["local_steps"], np.nan),
            "batch_losses": of_batches,
            "batch_errors": np.minimum(of_batches, 1),
        }
        return ArrayUpdates(
            client=tasks.client,
            model=tasks.model,
            num_samples=counts,
            num_steps=tasks.settings["local_steps"].astype(np.int64),
            delta=delta,
            metrics={name: metrics[name] for name in ("loss", *sorted(tasks.measure))},
        )

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        rows = [samples.rows(request) for request in range(len(samples))]
        concepts = [self._concept(of_request) for of_request in rows]
        plain = [of_request % len(self._stream.row_concept) for of_request in rows]
        return scores_of(models, plain, concepts, metrics)

    def embeddings(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The mean target of a request's samples, once as it is and once times the first parameter."""
        means = self._mean_targets(samples)
        return np.stack([means, means * parameters[0]], axis=1)

    def gradients(self, parameters: Floats32, samples: SampleRanges) -> Floats32:
        """The gradient of half the squared distance between the weights and the samples' mean target."""
        found = np.zeros((len(samples), NUM_PARAMETERS), dtype=np.float32)
        last = LAYOUT["weight"].last
        found[:, :last] = parameters[:last] - self._mean_targets(samples)[:, None]
        found[samples.counts() == 0] = 0
        return found

    def _mean_targets(self, samples: SampleRanges) -> Floats32:
        """(n,) the mean target of the samples of each request; 0 without samples."""
        means = np.zeros(len(samples), dtype=np.float32)
        for request in np.flatnonzero(samples.counts()).tolist():
            means[request] = target_of(self._concept(samples.rows(request))).mean()
        return means

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        """Evaluate each client by the distance of its models to the target of its last sample's concept.

        The loss is the weighted mean distance, NaN for a client without samples; the accuracy is exp(-loss).
        """
        target = target_of(self._concept(samples.last - 1))
        distance = np.abs(models[plan.models, :3].mean(axis=2) - target[:, None])
        loss = np.where(samples.counts() > 0, (plan.weights * distance).sum(axis=1), np.nan)
        return Evaluation(np.exp(-loss), loss)


def target_of(concepts: Floats | Ints) -> Floats:
    """The target of each concept: the number towards which a task on it moves a model's weights.

    The weights of a toy model start at a whole number (`ports.initial`). No target equals one below 4, so
    none of the first four initial models is at a target already.
    """
    return 1.3 * concepts.astype(np.float64) + 1.1


def scores_of(
    models: Floats32, rows: Sequence[Ints], concepts: Sequence[Floats | Ints], metrics: frozenset[Metric]
) -> Scores:
    """The scores of all `models` (m, P) on each of n requests for `rows` of the table, of these `concepts`.

    A model's value is the mean of its weights, plus a hundredth of the sum of its mask, which distinguishes
    models of equal weights. It gives the true label a probability that falls with the distance between its
    value and the target of the row's concept, and is right where the probability exceeds a number that
    depends on the row alone. Row r has label r modulo L; a wrong model predicts the next label. All wrong
    labels are equally likely.
    """
    shape = (len(rows), len(models))
    correct, loss, error = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    confusion = np.zeros((*shape, NUM_LABELS, NUM_LABELS))
    log_probabilities = np.zeros_like(confusion)
    value = models[:, :3].astype(np.float64).mean(axis=1) + 0.01 * models[:, 3:].sum(axis=1)
    for request, (table_rows, of_rows) in enumerate(zip(rows, concepts, strict=True)):
        distance = np.abs(value[:, None] - target_of(of_rows))
        probability = 0.02 + 0.97 * np.exp(-distance)  # (m, rows)
        right = probability > (table_rows * 0.6180339887) % 1.0
        correct[request] = right.sum(axis=1)
        loss[request] = -np.log(probability).sum(axis=1)
        error[request] = ((1 - probability) ** 2).sum(axis=1)
        if metrics.isdisjoint(METRICS_BY_LABEL):
            continue
        true = np.broadcast_to(table_rows % NUM_LABELS, right.shape)
        taken_for = np.where(right, true, (true + 1) % NUM_LABELS)
        model = np.arange(len(models))[:, None]
        np.add.at(confusion[request], (model, true, taken_for), 1.0)
        is_true = np.eye(NUM_LABELS, dtype=bool)[true]
        wrong = ((1 - probability) / (NUM_LABELS - 1))[..., None]
        logarithms = np.log(np.where(is_true, probability[..., None], wrong))
        np.add.at(log_probabilities[request], (model, true), logarithms)
    return Scores(
        counts=np.array([len(table_rows) for table_rows in rows], dtype=np.int64),
        correct=correct if "correct" in metrics else None,
        loss=loss if "loss" in metrics else None,
        true_class_error=error if "true_class_error" in metrics else None,
        confusion=confusion if "confusion" in metrics else None,
        log_probabilities=log_probabilities if "log_probabilities" in metrics else None,
    )


def initial(number: int) -> Floats32:
    """(P,) the number-th initialisation: all weights are `number`, and the mask hides nothing."""
    return np.array([number] * 3 + [1] * 3, dtype=np.float32)


def quick_fleet(num_clients: int) -> Fleet:
    """A fleet of devices so fast that a visit takes a small part of a slot."""
    return Fleet(
        seconds_per_sample=np.full(num_clients, 0.01),
        download_bytes_per_s=np.full(num_clients, 1e6),
        upload_bytes_per_s=np.full(num_clients, 1e6),
        latency_s=np.full(num_clients, 0.01),
    )
