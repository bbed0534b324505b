"""The evaluation of a round: free of charge, over clients online and offline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.federation.bank import ModelBank
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import InferencePlan
from emulator.ports import Executor, Meter, SampleStream, unmeasured
from emulator.seeding import RandomStreams


@dataclass(frozen=True)
class Measurement:
    """The measured fields of a round's record, with the names of `emulator.storage.runlog.RoundRecord`.

    The accuracy and the loss are means over the scored clients that hold test samples and are served by a
    model, distances are means over all scored clients. The loss may be NaN or infinite, where a model is not
    finite. None: not measured.
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


NOT_MEASURED = Measurement()


def scored_clients(num_clients: int, wanted: int | None, streams: RandomStreams) -> Ints:
    """Ids, ascending, of the clients that are scored: all, or a sample that is the same for all arms."""
    if wanted is None or wanted >= num_clients:
        return np.arange(num_clients)
    return np.sort(streams.generator("evaluation").choice(num_clients, size=wanted, replace=False))


def measure(
    executor: Executor,
    bank: ModelBank,
    plan: InferencePlan,
    stream: SampleStream,
    clients: Ints,
    *,
    log_clients: bool = False,
    meter: Meter = unmeasured,
) -> Measurement:
    """Evaluate `clients` on their test samples, of which at least one client must hold some.

    The models of `plan` serve them. A client is a drift cell if its test samples are of another concept than
    its newest training samples, which no method can know (FedDrift, section 5: "omitting drifts" averages
    over the other cells). `log_clients`: include the accuracy of each of `clients`.
    """
    samples = stream.held(clients, "test")
    plan_of_clients = plan.take(clients)
    with meter("evaluate_s"):
        evaluation = executor.evaluate(bank.parameters, plan_of_clients, samples)
    serving = plan_of_clients.first()
    histograms = stream.label_histograms(clients)
    scored = (samples.counts() > 0) & (serving >= 0)
    now, tested = stream.concepts, stream.test_concepts
    known = now is not None and tested is not None
    drifts = now[clients] != tested[clients] if now is not None and tested is not None else False
    drift = scored & drifts
    steady = scored & ~drift
    return Measurement(
        accuracy=float(evaluation.accuracy[scored].mean()),
        accuracy_std=float(evaluation.accuracy[scored].std()),
        loss=float(evaluation.loss[scored].mean()),
        mean_client_distance=mean_client_distance(histograms, serving),
        unclustered_distance=mean_client_distance(histograms, np.zeros_like(serving)),
        scored_clients=int(scored.sum()),
        drift_cells=int(drift.sum()) if known else None,
        accuracy_omitting_drift=(
            float(evaluation.accuracy[steady].mean()) if known and steady.any() else None
        ),
        serving=np.append(bank.labels, -1)[plan.first()] if known else None,
        client_accuracy=evaluation.accuracy.astype(np.float32) if log_clients else None,
    )


def mean_client_distance(histograms: Floats, members: Ints) -> float:
    """Mean over clients of the mean L1 distance to the other members of their cluster, in [0, 2].

    `histograms` (N, D), `members` (N,). A client alone in its cluster counts as 0 (Fielding leaves this case
    undefined). Sorting each column gives the sum over all pairs exactly, without the N x N distances; the
    only further memory is a copy of one cluster's histograms at a time.
    """
    total = 0.0
    for cluster in np.unique(members):
        rows = histograms[members == cluster]  # a copy, modified in place
        size = len(rows)
        if size > 1:
            rows.sort(axis=0)
            rows *= (2 * np.arange(size) - size + 1)[:, None]  # net sign of the i-th smallest in all pairs
            pairs = float(rows.sum())
            total += 2 * pairs / (size - 1)
    return total / len(members)
