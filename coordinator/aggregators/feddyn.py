"""FedDyn, the aggregator's half: the mean of the trained models, less what clients remember."""

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

OWN = "feddyn.own"


class FedDynSettings(Settings):
    """The strength of the clients' pull."""

    alpha: PositiveFactor = Field(0.01, description="that of the rule `feddyn`")


class FedDyn(Aggregator):
    """The unweighted mean of the trained models, less `h / alpha`.

    h is the mean of the g_i that the clients of a model remember, 0 for those that have not trained it, after
    the updates at hand: `w <- mean_S(y_i) - h / alpha`. In the paper h moves by `-alpha / N sum_S (y_i - w)`,
    which comes to the same while the N clients stay; here h loses what a client contributed when that client
    leaves. It needs the rule `feddyn`, with the same `alpha`, and whole rounds: a late update would be of
    another model.

    Source: Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, algorithm 1; h for
    each model of a clustering is ours. The step is that of the authors' code, too, with the rule's `weights =
    "samples"`: clients divide g_i as they use it, and not as they remember it.

    One of two clients moved the model 4 by -1 with alpha = 0.5, so that it remembers 0.5: h is 0.25.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> one = np.ones(1, dtype=int)
    >>> updates = ArrayUpdates(0 * one, 4 * one, one, 2 * one, -np.ones((1, 1), dtype="f"))
    >>> remembered = {OWN: np.full((1, 1), 0.25)}
    >>> view = SimpleNamespace(model_ids=4 * one, models=np.full((1, 1), 4.0), remembered=remembered)
    >>> FedDyn(FedDynSettings(alpha=0.5)).aggregate(updates, view).tolist()
    [[2.5]]
    """

    Settings = FedDynSettings
    settings: FedDynSettings
    needs_whole_rounds = True
    averages: ClassVar[frozenset[str]] = frozenset({OWN})

    @property
    def shares(self) -> Mapping[str, float]:
        return {"feddyn.alpha": self.settings.alpha}

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        trained = stepped(updates)
        moved = view.models + means(trained, view, "uniform") - view.remembered[OWN] / self.settings.alpha
        steps = np.isin(view.model_ids, trained.model)[:, None]
        return np.where(steps, moved.astype(np.float32), view.models)
