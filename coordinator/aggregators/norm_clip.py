"""The weighted mean of what came back, with none of it longer than allowed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import mean_weights
from coordinator.view import View
from emulator.arrays import Floats, Floats32
from emulator.deprecated import keep_old_names
from emulator.messages import Updates
from emulator.numbers import PositiveFactor
from emulator.plugins import Settings


class NormClipSettings(Settings):
    """How long an update may be, and how much each counts."""

    max_norm: PositiveFactor | None = Field(
        None, description="longest update; without it, the median of a model's updates, round by round"
    )
    weighting: Literal["samples", "uniform"] = Field(
        "samples", description="by the samples a client holds, or alike"
    )


class NormClip(Aggregator):
    """The weighted mean of the updates, of which long ones are shortened first.

    model += sum_c p_c update_c min(1, max_norm / |update_c|), with the p_c of `fedavg`. So no update has more
    than a bounded influence, but that of many false ones which point the same way adds up.

    Sun, Kairouz, Suresh and McMahan, "Can You Really Backdoor Federated Learning?", 2019, norm thresholding:
    there the norm is given. Where it is not, it is the median norm of those of the model's updates that have
    samples behind them: it follows training as steps become shorter, and every second update at least stays
    as it is.
    """

    Settings = NormClipSettings
    settings: NormClipSettings

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        weights = mean_weights(updates.model, updates.num_samples, view, self.settings.weighting)
        return (view.models + updates.weighted_sum(weights * self._kept_share(updates, view))).astype(
            np.float32
        )

    def _kept_share(self, updates: Updates, view: View) -> Floats:
        """(n,) what each update is multiplied by."""
        norms = updates.norms()
        longest = np.full(len(updates), np.inf if self.settings.max_norm is None else self.settings.max_norm)
        for model in view.model_ids if self.settings.max_norm is None else ():
            own = updates.model == model
            sampled = own & (updates.num_samples > 0)
            if sampled.any():
                longest[own] = np.median(norms[sampled])
        share = np.ones(len(updates))
        np.divide(longest, norms, out=share, where=norms > longest)
        return share


keep_old_names(__name__)
