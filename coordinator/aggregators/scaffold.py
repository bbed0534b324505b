"""SCAFFOLD, the aggregator's half: the mean update, and the clients' mean control variate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import means, stepped
from coordinator.view import View
from emulator.arrays import Floats32
from emulator.messages import Updates
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings

CONTROL, OWN = "scaffold.control", "scaffold.own"


class ScaffoldSettings(Settings):
    """The coordinator's rate."""

    rate: PositiveFactor = Field(1.0, description="of the coordinator: factor of the mean update")


class Scaffold(Aggregator):
    """The unweighted mean of the updates; with each model it broadcasts the clients' mean control variate.

    Of the updates of a model by clients S: `w <- w + rate mean_S(y_i - w)`. The control variate c of a model
    is the mean of the c_i that its clients remember, 0 for those that have not trained it. In the paper c
    moves by `|S| / N mean_S(c_i' - c_i)`, which comes to the same while the N clients stay; here c loses what
    a client contributed when that client leaves, or trains the model no more. It needs the rule `scaffold`,
    which charges that clients send their c_i, and whole rounds: a late update would be of another c.

    Source: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
    algorithm 1; c for each model of a clustering is ours.

    One of two clients moves the model by -1; what both remember has the mean 1:

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> one = np.ones(1, dtype=int)
    >>> updates = ArrayUpdates(0 * one, 4 * one, one, 2 * one, -np.ones((1, 1), dtype="f"))
    >>> view = SimpleNamespace(model_ids=4 * one, models=np.ones((1, 1)), remembered={OWN: np.ones((1, 1))})
    >>> scaffold = Scaffold(ScaffoldSettings())
    >>> scaffold.aggregate(updates, view).tolist(), scaffold.broadcast(view)[CONTROL].tolist()
    ([[0.0]], [[1.0]])
    """

    Settings = ScaffoldSettings
    settings: ScaffoldSettings
    needs_whole_rounds = True
    broadcasts: ClassVar[frozenset[str]] = frozenset({CONTROL})
    averages: ClassVar[frozenset[str]] = frozenset({OWN})

    def broadcast(self, view: View) -> Mapping[str, Floats32]:
        return {CONTROL: view.remembered[OWN].astype(np.float32)}

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        mean = means(stepped(updates), view, "uniform")
        return (view.models + self.settings.rate * mean).astype(np.float32)
