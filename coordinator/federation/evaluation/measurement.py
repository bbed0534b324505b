"""The evaluation of a round: free of charge, over clients online and offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator.distances import DISTANCES, DistanceName
from coordinator.federation.bank import ModelBank
from coordinator.representations import Representation
from coordinator.representations.base import LocalData
from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import Evaluation, InferencePlan, Metric, SampleRanges, Scores, Work
from emulator.ports import Executor, Meter, SampleStream, unmeasured
from emulator.seeding import RandomStreams

SQUARED: Mapping[DistanceName, DistanceName] = {"euclidean": "squared_euclidean"}
"""Distances whose squares are averaged: these have a closed form, and Fielding's Table 3 has them."""

Score = Callable[[Ints, Floats32, SampleRanges, frozenset[Metric]], tuple[Scores, Work | None]]
"""Scores models (M, P) on samples, of which there is a row for each of clients (n,), as these read them."""

Evaluate = Callable[[Ints, SampleRanges], Evaluation]
"""Evaluates clients (n,), ascending, on their test samples, of which there is a row for each."""

AT_ONCE = 2**22
"""Distances between pairs of clients in memory at once."""


@dataclass(frozen=True)
class Measurement:
    """The measured fields of a round's record, with the names of `emulator.storage.runlog.RoundRecord`.

    The accuracy and the loss are means over the scored clients that hold test samples and are served by a
    model, distances are means over all scored clients that are served. The loss may be NaN or infinite, where
    a model is not finite. None: not measured.
    """

    accuracy: float | None = None
    accuracy_std: float | None = None
    loss: float | None = None
    mean_client_distance: float | None = None
    unclustered_distance: float | None = None
    scored_clients: int | None = None
    drift_cells: int | None = None
    accuracy_omitting_drift: float | None = None
    serving: Ints | None = None
    client_accuracy: Floats32 | None = None
    client_label: Ints | None = None
    pooled_accuracy: float | None = None
    accuracy_by_concept: dict[int, list[float]] | None = None


NOT_MEASURED = Measurement()


def scored_clients(num_clients: int, wanted: int | None, streams: RandomStreams) -> Ints:
    """Ids, ascending, of the clients that are scored: all, or a sample that is the same for all arms."""
    if wanted is None or wanted >= num_clients:
        return np.arange(num_clients)
    return np.sort(streams.generator("evaluation").choice(num_clients, size=wanted, replace=False))


@dataclass(frozen=True)
class ClientVectors:
    """What `representation` measures of the samples that clients hold for training; nobody is charged."""

    representation: Representation
    data: LocalData

    def of(self, clients: Ints) -> Floats:
        """(n, D) the vectors of `clients` (n,), ascending; RunError if one is not finite."""
        vectors = self.representation.measure(clients, self.data)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise RunError(
                f"round.client_distance: the {self.representation.name} of client {clients[~finite][0]} is "
                f"not finite ({np.count_nonzero(~finite)} of {len(clients)} are not)"
            )
        return vectors


def measured_distance(representation: Representation) -> DistanceName:
    """The distance in which clients are compared by `representation`: its own, or that squared."""
    return SQUARED.get(representation.distance, representation.distance)


def measure(
    executor: Executor,
    bank: ModelBank,
    plan: InferencePlan,
    stream: SampleStream,
    vectors: ClientVectors,
    clients: Ints,
    *,
    evaluate: Evaluate | None = None,
    log_clients: bool = False,
    pooled: bool = False,
    score: Score | None = None,
    meter: Meter = unmeasured,
) -> tuple[Measurement, Evaluation]:
    """Evaluate `clients` on their test samples, of which at least one client must hold some.

    Also returns the evaluation of each of them.

    The models of `plan` serve them; it must leave out the clients that hold no training samples. Distances
    are between the `vectors` of the others. A client is a drift cell if its test samples are of another
    concept than its newest training samples, which no method can know (FedDrift, section 5: "omitting drifts"
    averages over the other cells). `evaluate`: evaluates clients with more than the models of their plan.
    `log_clients`: include the accuracy of each of `clients`, and the label of which it holds most training
    samples. `pooled`: include the accuracy over all their test samples in one pool. `score`: include that
    of each model in each concept, over the test samples of all `clients` that hold data.
    """
    samples = stream.held(clients, "test")
    plan_of_clients = plan.take(clients)
    with meter("evaluate_s"):
        if evaluate is None:
            evaluation = executor.evaluate(bank.parameters, plan_of_clients, samples)
        else:
            evaluation = evaluate(clients, samples)
        serving = plan_of_clients.first()
        served = serving >= 0
        measured = vectors.of(clients if served.all() else clients[served])
    distance = measured_distance(vectors.representation)
    tested, known = stream.test_concepts, stream.concepts is not None and stream.test_concepts is not None
    of_models: dict[int, list[float]] | None = None
    if score is not None and tested is not None:
        rows = np.flatnonzero(stream.holding[clients])
        with meter("evaluate_s"):
            scores, _ = score(clients[rows], bank.parameters, samples.take(rows), frozenset({"correct"}))
            of_models = accuracy_by_concept(scores, tested[clients[rows]])
    measurement = Measurement(
        **of_evaluation(
            evaluation, samples, serving, stream, clients, log_clients=log_clients, pooled=pooled
        ),
        mean_client_distance=mean_client_distance(measured, serving[served], distance),
        unclustered_distance=mean_client_distance(measured, np.zeros(len(measured), np.int64), distance),
        serving=np.append(bank.labels, -1)[plan.first()] if known else None,
        client_label=main_labels(stream.label_histograms(clients)) if log_clients else None,
        accuracy_by_concept=of_models,
    )
    return measurement, evaluation


def of_evaluation(
    evaluation: Evaluation,
    samples: SampleRanges,
    serving: Ints,
    stream: SampleStream,
    clients: Ints,
    *,
    log_clients: bool,
    pooled: bool,
) -> dict[str, Any]:
    """The fields of a `Measurement` that follow from an evaluation of `clients` (n,); see `measure`.

    They hold test `samples`, and the models `serving` (n,) serve them first, -1 for none.
    """
    accuracy, scored = evaluation.accuracy, (samples.counts() > 0) & (serving >= 0)
    now, tested = stream.concepts, stream.test_concepts
    omitting: dict[str, Any] = {}
    if now is not None and tested is not None:
        drift = scored & (now[clients] != tested[clients])
        steady = scored & ~drift
        of_steady = float(accuracy[steady].mean()) if steady.any() else None
        omitting = {"drift_cells": int(drift.sum()), "accuracy_omitting_drift": of_steady}
    return {
        "accuracy": float(accuracy[scored].mean()),
        "accuracy_std": float(accuracy[scored].std()),
        "loss": float(evaluation.loss[scored].mean()),
        "scored_clients": int(scored.sum()),
        "client_accuracy": accuracy.astype(np.float32) if log_clients else None,
        "pooled_accuracy": _pooled(evaluation, samples, scored) if pooled else None,
        **omitting,
    }


def accuracy_by_concept(scores: Scores, concepts: Ints) -> dict[int, list[float]]:
    """The accuracy of each scored model on all samples of a concept, by the number of the concept.

    Row i of `scores`, of a client, is of `concepts[i]` (n,). A concept without samples is left out.
    """
    # A request for each client, not for each concept: requests are never split over threads and ranks.
    assert scores.correct is not None
    numbers, row = np.unique(concepts, return_inverse=True)
    correct, counts = np.zeros((len(numbers), scores.correct.shape[1])), np.zeros(len(numbers))
    np.add.at(correct, row, scores.correct)
    np.add.at(counts, row, scores.counts)
    return {
        number: (hits / count).tolist()
        for number, hits, count in zip(numbers.tolist(), correct, counts, strict=True)
        if count > 0
    }


def _pooled(evaluation: Evaluation, samples: SampleRanges, scored: Bools) -> float:
    """The share of correct predictions among the test samples of all `scored` (n,)."""
    return float(np.average(evaluation.accuracy[scored], weights=samples.counts()[scored]))


def main_labels(histograms: Floats) -> Ints:
    """(n,) the label with the largest count in each row of `histograms` (n, L); -1 for a row of zeros.

    Of several such labels it is the lowest.

    >>> main_labels(np.array([[0.0, 2.0, 2.0], [0.0, 0.0, 0.0]])).tolist()
    [1, -1]
    """
    return np.where(histograms.any(axis=1), histograms.argmax(axis=1), -1).astype(np.int64)


def mean_client_distance(vectors: Floats, members: Ints, distance: DistanceName = "l1") -> float:
    """Mean over clients of the mean distance to the other members of their cluster.

    `vectors` (N, D), `members` (N,). A client alone in its cluster counts as 0 (Fielding leaves this case
    undefined). The sum over all pairs of a cluster has a closed form for "l1", by sorting each column, and
    for "squared_euclidean", by the distances to the mean; for these the only further memory is a copy of one
    cluster's vectors at a time. For other distances the pairs are added up in blocks.

    >>> vectors, members = np.array([[0.0], [1.0], [3.0]]), np.array([0, 0, 0])
    >>> mean_client_distance(vectors, members)  # (2 + 1.5 + 2.5) / 3
    2.0
    >>> squared = mean_client_distance(vectors, members, "squared_euclidean")
    >>> round(squared, 9)  # (5 + 2.5 + 6.5) / 3
    4.666666667
    """
    total = 0.0
    _, sizes = np.unique(members, return_counts=True)
    for clients in np.split(members.argsort(kind="stable"), sizes.cumsum()[:-1]):
        rows = vectors[clients]  # a copy, modified in place
        size = len(rows)
        if size > 1:
            total += _sum_over_pairs(rows, distance) / (size - 1)
    return total / len(members)


def _sum_over_pairs(rows: Floats, distance: DistanceName) -> float:
    """The sum of the distances from each of `rows` (n, D), which are overwritten, to each other one."""
    size = len(rows)
    if distance == "l1":
        rows.sort(axis=0)
        rows *= (2 * np.arange(size) - size + 1)[:, None]  # net sign of the i-th smallest in all pairs
        return 2 * float(rows.sum())
    if distance == "squared_euclidean":
        rows -= rows.mean(axis=0)
        rows *= rows
        return 2 * size * float(rows.sum())
    block = max(1, AT_ONCE // size)
    return sum(
        float(DISTANCES[distance](rows[first : first + block], rows).sum()) for first in range(0, size, block)
    )
