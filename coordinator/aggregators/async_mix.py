"""FedAsync: each trained model is mixed into the present one, the less the more stale it is."""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import sums
from coordinator.aggregators.fedbuff import by_staleness
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.numbers import CountOrZero, Number, PositiveShare
from emulator.plugins import Settings

EXPONENT, SLOPE, FREE = 0.5, 10.0, 4
"""The paper's exponent of `polynomial`, and its slope and staleness without a discount of `hinge`."""


class AsyncMixSettings(Settings):
    """The share of a trained model in the mix, and what staleness takes from it."""

    alpha: PositiveShare = Field(
        0.6, description="share of a trained model that is not stale", examples=[0.9]
    )
    staleness: Literal["constant", "hinge", "polynomial"] = Field(
        "polynomial",
        description="how the factor f of alpha falls with the staleness s",
        examples=["hinge"],
    )
    a: Annotated[float, Number(ge=0, le=1e6)] | None = Field(
        None, description="how fast the factor falls; without it, 0.5 if polynomial, and 10 if hinge"
    )
    b: CountOrZero | None = Field(
        None, description="largest staleness without a discount, of hinge; without it, 4"
    )

    @model_validator(mode="after")
    def _has_what_its_factor_reads(self) -> Self:
        if self.a is not None and self.staleness == "constant":
            raise ValueError(f"a = {self.a:g}: needs staleness = 'hinge' or 'polynomial'")
        if self.b is not None and self.staleness != "hinge":
            raise ValueError(f"b = {self.b}: needs staleness = 'hinge'")
        return self


class AsyncMix(Aggregator):
    """Mixes each trained model into the present one: x <- (1 - a_s) x + a_s x_trained, a_s = alpha f(s).

    x_trained is the model that the client received, plus its update: a stale one pulls x back, where
    `fedbuff` would add its update to the present x. f is 1 if `constant`; (1 + s)^-a if `polynomial`; and if
    `hinge` 1 for s <= b, and else 1 / (a (s - b) + 1). Of k updates of a model in one step, from clients with
    samples, the mean of what each would make of it is taken:

        x <- x + 1/k sum_i a_i (received_i + update_i - x)

    Where nothing is stale, that is the step of `fedavg` with equal weights, times `alpha`.

    Source: Xie, Koyejo and Gupta, "Asynchronous Federated Optimization", 2019 (FedAsync), algorithm 1, and
    section 5.2 for f. There each update is a step of its own: pacing `buffered` with `buffer = 1`.

    The model is at 2. A client received it at 0, three steps ago, and moved it by 1: with the share 0.5 / 2
    the model gets to 2 + 0.25 (0 + 1 - 2):

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> one = np.ones(1, dtype=int)
    >>> updates = ArrayUpdates(one, 4 * one, one, one, np.ones((1, 1), dtype="f"), late=3 * one)
    >>> view = SimpleNamespace(model_ids=4 * one, models=np.full((1, 1), 2.0, "f"), started=0 * one)
    >>> view.received = np.zeros((1, 1), dtype="f")
    >>> AsyncMix(AsyncMixSettings(alpha=0.5)).aggregate(updates, view)
    array([[1.75]], dtype=float32)
    """

    Settings = AsyncMixSettings
    settings: AsyncMixSettings

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats:
        stale = view.staleness if len(view.staleness) > 0 else np.zeros_like(model)
        return self._weights(model, num_samples, stale, view.model_ids)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        def weights(some: Updates, ids: Ints) -> Floats:
            return self._weights(some.model, some.num_samples, some.staleness, ids)

        models = sums(updates, view, weights)
        models += view.models
        models += self._back(updates, view)
        return models.astype(np.float32)

    def _back(self, updates: Updates, view: View) -> Floats:
        """(M, P) how far each model is moved towards those that its updates started from."""
        back = np.zeros_like(view.models, dtype=np.float64)
        shares = self._shares(updates.model, updates.num_samples, updates.staleness)
        order = np.argsort(view.model_ids, kind="stable")
        row = order[np.searchsorted(view.model_ids[order], updates.model)]  # of each update
        pairs, which = np.unique(row * max(len(view.received), 1) + view.started, return_inverse=True)
        # NOTE: one by one, so that there is no array of all updates: what is fresh adds an exact zero.
        for pair, share in zip(pairs.tolist(), np.bincount(which, weights=shares).tolist(), strict=True):
            model, start = divmod(pair, len(view.received))
            back[model] += share * (view.received[start].astype(np.float64) - view.models[model])
        return back

    def _weights(self, model: Ints, num_samples: Ints, staleness: Ints, ids: Ints) -> Floats:
        """(M, n) the weight of each of n updates in the step of its model, of those with these ids (M,)."""
        return np.where(model == ids[:, None], self._shares(model, num_samples, staleness), 0.0)

    def _shares(self, model: Ints, num_samples: Ints, staleness: Ints) -> Floats:
        """(n,) a_i / k of each update; 0 for one of a client without samples."""
        sampled = num_samples > 0
        _, which = np.unique(model, return_inverse=True)
        number = np.bincount(which, weights=sampled)[which]
        mixed = self.settings.alpha * by_staleness(staleness, self._factor)
        return np.where(sampled, mixed, 0.0) / np.maximum(number, 1)

    def _factor(self, staleness: int) -> float:
        settings = self.settings
        if settings.staleness == "constant":
            return 1.0
        if settings.staleness == "polynomial":
            exponent: float = EXPONENT if settings.a is None else settings.a
            return float((1 + staleness) ** -exponent)
        slope, free = SLOPE if settings.a is None else settings.a, FREE if settings.b is None else settings.b
        return 1.0 if staleness <= free else 1 / (slope * (staleness - free) + 1)
