"""SCAFFOLD, the aggregator's half: the mean update, and the clients' mean control variate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from coordinator.aggregators.adaptive import mixed
from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import sums
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import TaskMetric, Updates
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings

CONTROL = "scaffold.control"


class ScaffoldSettings(Settings):
    """The coordinator's rate."""

    rate: PositiveFactor = Field(1.0, description="of the coordinator: factor of the mean update")


class Scaffold(Aggregator):
    """The unweighted mean of the updates, and a control variate c of each model, which it broadcasts.

    Of the updates of a model by clients S, of all N that belong to it: `w <- w + rate mean_S(y_i - w)` and
    `c <- c + |S| / N mean_S(c_i' - c_i)`. By option II a client changes its control variate by
    `c_i' - c_i = -c + (w - y_i) / (K_i eta_i)`, whatever it was, so that c follows from the updates, with the
    steps K_i and the learning rate eta_i of each; that clients send it is charged by the rule `scaffold`,
    without which no arm has this aggregator. c starts at 0; a model that is a plain copy of another has its
    c, any other starts anew. It needs whole rounds: a late update would be of another c.

    Source: Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: Stochastic Controlled Averaging for
    Federated Learning", ICML 2020, algorithm 1; c for each model of a clustering is ours.

    One of two clients moves the model by -1, in two steps of rate 0.25: its mean gradient is 2.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> one, rate = np.ones(1, dtype=int), {"learning_rate": np.array([0.25])}
    >>> updates = ArrayUpdates(0 * one, 4 * one, one, 2 * one, -np.ones((1, 1), dtype="f"), rate)
    >>> members = np.zeros((2, 1), dtype=int)
    >>> view = SimpleNamespace(model_ids=4 * one, models=np.ones((1, 1)), members=members)
    >>> scaffold = Scaffold(ScaffoldSettings())
    >>> scaffold.aggregate(updates, view).tolist(), scaffold.broadcast(view)[CONTROL].tolist()
    ([[0.0]], [[1.0]])
    """

    Settings = ScaffoldSettings
    settings: ScaffoldSettings
    state_fields = ("_control",)
    needs_whole_rounds = True
    broadcasts: ClassVar[frozenset[str]] = frozenset({CONTROL})

    def __init__(self, settings: ScaffoldSettings) -> None:
        super().__init__(settings)
        self._control: Floats | None = None  # (M, P)

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"learning_rate"})

    def broadcast(self, view: View) -> Mapping[str, Floats32]:
        return {CONTROL: self._present(view).astype(np.float32)}

    def models_changed(self, assignment: Assignment) -> None:
        """Control variates follow the models."""
        if self._control is not None:
            self._control = mixed(self._control, assignment.mixing, 0.0, averages=False)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        trained = ((updates.num_steps > 0) & (updates.num_samples > 0)).nonzero()[0]
        updates = updates.take(trained)
        control = self._present(view)
        counts = np.bincount(updates.model, minlength=view.model_ids.max() + 1)[view.model_ids, None]
        members = np.bincount(view.members[view.members >= 0], minlength=len(counts))[:, None]
        moved = sums(updates, view, _of_each_model) / np.maximum(counts, 1)
        gradients = -sums(updates, view, _mean_gradients)
        self._control = control + (gradients - counts * control) / np.maximum(members, 1)
        return (view.models + self.settings.rate * moved).astype(np.float32)

    def _present(self, view: View) -> Floats:
        """(M, P) the control variates of all models; 0 before the first step."""
        if self._control is None:
            return np.zeros_like(view.models, dtype=np.float64)
        return self._control


def _of_each_model(updates: Updates, ids: Ints) -> Floats:
    """(M, n) 1 for each update of a model, else 0."""
    weights: Floats = (updates.model == ids[:, None]).astype(np.float64)
    return weights


def _mean_gradients(updates: Updates, ids: Ints) -> Floats:
    """(M, n) what makes of an update the mean of its gradients, but for the sign."""
    weights: Floats = _of_each_model(updates, ids) / (updates.num_steps * updates.metrics["learning_rate"])
    return weights
