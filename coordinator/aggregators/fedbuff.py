"""FedBuff: a mean of the updates in which stale ones count for less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from coordinator.aggregators.adaptive import mixed
from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import sums
from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Updates
from emulator.numbers import CountOrZero, Number, PositiveFactor, ShareBelowOne
from emulator.plugins import Settings


class FedBuffSettings(Settings):
    """The coordinator's rate, and what staleness takes from the weight of an update."""

    rate: PositiveFactor = Field(
        1.0, description="of the coordinator: factor of the mean update", examples=[0.5]
    )
    exponent: Annotated[float, Number(ge=0, le=100)] = Field(
        0.5,
        description="an update of staleness s has the discount (1 + s)^-exponent; 0: that of a fresh one",
    )
    cut_off: CountOrZero | None = Field(
        None,
        description="an update of more staleness counts for nothing; without it, none does",
        examples=[5],
    )
    divide_by: Literal["number", "sum"] = Field(
        "number",
        description="the sum of discounted updates is divided by the sum of their shares, so that stale ones "
        "shorten the step (the paper), or of their discounted shares (FedScale)",
        examples=["sum"],
    )
    weighting: Literal["samples", "uniform"] = Field(
        "uniform", description="shares: by the samples a client holds, or equal (the paper, FedScale)"
    )
    combine: Literal["mean", "sum"] = Field(
        "mean", description="the sum of discounted updates is divided by `divide_by`, or not at all (FLSim)"
    )
    momentum: ShareBelowOne = Field(0.0, description="share of a model's last step that is added to a step")

    @model_validator(mode="after")
    def _divides_means(self) -> Self:
        if self.combine == "sum" and self.divide_by != type(self).model_fields["divide_by"].default:
            raise ValueError(f"divide_by = {self.divide_by!r}: a sum is not divided; needs combine = 'mean'")
        return self


class FedBuff(Aggregator):
    """The mean of the updates, model by model, of which stale ones have a discount.

    model += rate v, with v <- momentum v + sum_c p_c d_c update_c / Z over the updates of the model; the
    shares p_c = 1, or n_c by `weighting`; the discounts d_c = (1 + s_c)^-exponent, or 0 if the staleness s_c
    is above `cut_off`; and Z = sum_c p_c, or sum_c p_c d_c by `divide_by`, or with `combine = "sum"` 1. A
    model of which no update counts stays as it is, and its v, too. v starts at 0; a model that an assignment
    makes starts with that of the one that it copies, or anew.

    In whole rounds all staleness is 0, and a mean without momentum makes the step of `fedavg` times the rate.

    State, with momentum, once a model has made a step: rate v of every model, (M, P).

    Source: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022,
    algorithm 1, with the discount 1 / sqrt(1 + s) of its experiments: there Z is the number of updates in the
    buffer. FedScale divides by the sum of the discounts, and discards updates of a staleness above 5:
    `divide_by = "sum"`, `cut_off = 5`. The authors' code, FLSim, is `combine = "sum"` with `momentum`, which
    is 0 there, too, unless it is set; its `rate` is `lr (1 + avg_staleness)^exponent`, since its discounts
    are over that of a mean staleness, 1 if none is given. An update above `max_staleness` is not put into its
    buffer; here it takes a place of it.

    Updates of staleness 0 and 3 have the discounts 1 and 1/2; over 2 or over 3/2:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(model_ids=np.array([4]), staleness=np.array([0, 3]))
    >>> model, num_samples = np.array([4, 4]), np.array([1, 3])
    >>> FedBuff(FedBuffSettings()).weights(model, num_samples, view)
    array([[0.5 , 0.25]])
    >>> (3 * FedBuff(FedBuffSettings(divide_by="sum")).weights(model, num_samples, view)).round(6)
    array([[2., 1.]])
    >>> FedBuff(FedBuffSettings(cut_off=2)).weights(model, num_samples, view)
    array([[0.5, 0. ]])
    """

    Settings = FedBuffSettings
    settings: FedBuffSettings
    state_fields = ("_last_step",)

    def __init__(self, settings: FedBuffSettings) -> None:
        super().__init__(settings)
        self._last_step: Floats | None = None

    def models_changed(self, assignment: Assignment) -> None:
        """The momentum follows the models."""
        if self._last_step is not None:
            self._last_step = mixed(self._last_step, assignment.mixing, 0.0, averages=False)

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats:
        stale = view.staleness if len(view.staleness) > 0 else np.zeros_like(model)
        return self._weights(model, num_samples, stale, view.model_ids)

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        def weights(some: Updates, ids: Ints) -> Floats:
            return self._weights(some.model, some.num_samples, some.staleness, ids)

        models = sums(updates, view, weights)
        if self.settings.momentum > 0:
            counts = (updates.num_samples > 0) & (self._discounts(updates.staleness) > 0)
            steps = np.isin(view.model_ids, updates.model[counts])[:, None]
            last = np.zeros_like(models) if self._last_step is None else self._last_step
            models = np.where(steps, self.settings.momentum * last + models, 0.0)
            self._last_step = np.where(steps, models, last)
        models += view.models
        return models.astype(np.float32)

    def _weights(self, model: Ints, num_samples: Ints, staleness: Ints, ids: Ints) -> Floats:
        """(M, n) the weight of each of n updates in the step of its model, of those with these ids (M,)."""
        settings = self.settings
        share = num_samples if settings.weighting == "samples" else np.ones(len(model))
        shares = np.where(model == ids[:, None], share, 0.0)
        discounted = shares * self._discounts(staleness)
        if settings.combine == "sum":
            return settings.rate * discounted
        whole = shares if settings.divide_by == "number" else discounted
        weights: Floats = settings.rate * discounted / np.maximum(whole.sum(axis=1, keepdims=True), 1e-300)
        return weights

    def _discounts(self, staleness: Ints) -> Floats:
        """(n,) the discount of each staleness (n,)."""
        most = np.inf if self.settings.cut_off is None else self.settings.cut_off
        return by_staleness(staleness, lambda s: (1 + s) ** -self.settings.exponent if s <= most else 0.0)


def by_staleness(staleness: Ints, factor: Callable[[int], float]) -> Floats:
    """(n,) the `factor` of each staleness (n,).

    >>> by_staleness(np.array([3, 0, 3]), lambda s: 1 / (1 + s)).tolist()
    [0.25, 1.0, 0.25]
    """
    distinct, which = np.unique(staleness, return_inverse=True)
    # One by one: numpy's power of an array may differ in the last bit from one processor to another.
    factors: Floats = np.array([factor(s) for s in distinct.tolist()], dtype=np.float64)[which]
    return factors
