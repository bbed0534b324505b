"""What the experimenter sees of a run: free of charge, over every client, online or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.bank import ModelBank
from coordinator.heterogeneity import mean_client_distance
from emulator.messages import InferencePlan
from emulator.ports import Executor, SampleStream


@dataclass(frozen=True)
class Measurement:
    """Means over clients that hold test samples, and distances over all; not finite where models are not.

    The names are those of `emulator.runlog.RoundRecord`.
    """

    accuracy: float | None = None
    accuracy_std: float | None = None
    loss: float | None = None
    mean_client_distance: float | None = None
    unclustered_distance: float | None = None
    scored_clients: int | None = None
    drift_cells: int | None = None
    accuracy_omitting_drift: float | None = None
    serving: list[int] | None = None


NOT_MEASURED = Measurement()


def measure(executor: Executor, bank: ModelBank, plan: InferencePlan, stream: SampleStream) -> Measurement:
    """Score every client's test samples with what `plan` says of the models; some client must hold some.

    A client is in a drift where its test samples are of another concept than its newest training samples; no
    method can know (FedDrift, section 5: "omitting drifts" averages over the other cells).
    """
    everyone = np.arange(stream.num_clients)
    samples = stream.held(everyone, "test")
    evaluation = executor.evaluate(bank.parameters, plan, samples)
    serving = plan.first()
    histograms = stream.label_histograms(everyone)
    scored = (samples.counts() > 0) & (serving >= 0)
    now, tested = stream.concepts, stream.test_concepts
    known = now is not None and tested is not None
    drift = scored & (now != tested)
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
        serving=np.append(bank.labels, -1)[serving].tolist() if known else None,
    )
