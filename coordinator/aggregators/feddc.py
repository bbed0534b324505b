"""FedDC, the aggregator's half: the mean of the trained models, and of the drifts that clients remember."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import means, stepped
from coordinator.view import View
from emulator.arrays import Floats32
from emulator.messages import Updates
from emulator.plugins import NoSettings

GRADIENTS, DRIFT, OWN = "feddc.gradients", "feddc.drift", "feddc.gradient"


class FedDC(Aggregator):
    """The unweighted mean of the trained models, plus the mean drift; G is broadcast with each model.

    `w <- mean_S(y_i) + h`, where h is the mean of the drifts h_i that the clients of a model remember, after
    the updates at hand, and G that of their G_i; both count 0 for a client that has not trained the model. In
    the paper h and G are running sums over all N clients, which comes to the same while these stay. It needs
    the rule `feddc`, which charges that clients send their G_i, and whole rounds.

    Source: Gao et al., "FedDC: Federated Learning with Non-IID Data via Local Drift Decoupling and
    Correction", CVPR 2022, algorithm 1. Its code weighs a client's share of G by its samples over their mean;
    we do not: clients count alike.

    One of two clients moved the model 4 by -1, and remembers that as its drift:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> one = np.ones(1, dtype=int)
    >>> updates = ArrayUpdates(0 * one, 4 * one, one, 2 * one, -np.ones((1, 1), dtype="f"))
    >>> means = {DRIFT: np.full((1, 1), -0.5), OWN: np.ones((1, 1))}
    >>> view = SimpleNamespace(model_ids=4 * one, models=np.full((1, 1), 4.0), remembered=means)
    >>> feddc = FedDC(NoSettings())
    >>> feddc.aggregate(updates, view).tolist(), feddc.broadcast(view)[GRADIENTS].tolist()
    ([[2.5]], [[1.0]])
    """

    Settings = NoSettings
    needs_whole_rounds = True
    broadcasts: ClassVar[frozenset[str]] = frozenset({GRADIENTS})
    averages: ClassVar[frozenset[str]] = frozenset({DRIFT, OWN})

    def broadcast(self, view: View) -> Mapping[str, Floats32]:
        return {GRADIENTS: view.remembered[OWN].astype(np.float32)}

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        trained = stepped(updates)
        moved = view.models + means(trained, view, "uniform") + view.remembered[DRIFT]
        steps = np.isin(view.model_ids, trained.model)[:, None]
        return np.where(steps, moved.astype(np.float32), view.models)
