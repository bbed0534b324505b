"""The correction of a model's predictions by the client's own shares of labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.adaptations.base import Adaptation, ClientView, Served
from emulator.arrays import Floats
from emulator.plugins import Settings


class PriorSettings(Settings):
    """Whose shares of labels the correction knows."""

    shares: Literal["own", "reported"] = Field(
        "own",
        description="own: of the client alone; reported: divided by the mean shares of the model's clients, "
        "which all clients then report",
        examples=["reported"],
    )


class Prior(Adaptation):
    """Each model's logits are corrected by the label counts of the client that it serves.

    A model that was trained on shares q of labels and predicts for a client with shares p has to add ln p -
    ln q to its logits, if samples of a label look alike everywhere. A client that holds h_l of n samples of
    label l adds ln((h_l + 1/L) / (n + 1)): L labels share a mass of one sample (Perks 1947), since a label
    that it happens to lack may still come. With `own` that is all, as if the model had been trained on equal
    shares. With `reported` it subtracts ln((n q_l + 1/L) / (n + 1)), smoothed alike, so that a client whose
    shares are those of the model changes nothing. Where several models serve a client, each is corrected by
    its own q, renormalised, then combined.

    Source: Saerens, Latinne and Decaestecker 2002, equation 2.4; smoothing: Perks 1947.

    >>> from types import SimpleNamespace
    >>> from emulator.messages import InferencePlan
    >>> view = SimpleNamespace(
    ...     models=np.zeros((1, 1)),
    ...     plan=InferencePlan.alike(np.zeros((1, 1), dtype=int)),
    ...     num_labels=2,
    ...     num_samples=np.array([4]),
    ...     label_counts=lambda: np.array([[4.0, 0.0]]),
    ...     reported_shares=lambda: np.array([[0.5, 0.5]]),
    ... )
    >>> np.exp(Prior(PriorSettings()).adapt(view).plan.offsets)  # (4 + 1/2) / 5 and (0 + 1/2) / 5
    array([[[0.9, 0.1]]])
    >>> np.exp(Prior(PriorSettings(shares="reported")).adapt(view).plan.offsets)  # both divided by 1/2
    array([[[1.8, 0.2]]])
    """

    Settings = PriorSettings
    settings: PriorSettings
    needs_labels = True

    @property
    def needs_label_shares(self) -> bool:
        return self.settings.shares == "reported"

    def adapt(self, view: ClientView) -> Served:
        plan, counts = view.plan, view.num_samples[:, None].astype(np.float64)
        offsets = np.repeat(_log_smoothed(view.label_counts(), counts)[:, None], plan.models.shape[1], axis=1)
        if self.settings.shares == "reported":
            # Of padding, whose model is -1, it is the last model's, which nobody reads.
            of_models = view.reported_shares()[plan.models]
            offsets -= _log_smoothed(counts[:, None] * of_models, counts[:, None])
        return Served(view.models, replace(plan, offsets=offsets))


def _log_smoothed(counts: Floats, totals: Floats) -> Floats:
    """ln((counts + 1/L) / (totals + 1)) of counts (..., L) that sum to `totals` (..., 1)."""
    logarithms: Floats = np.log((counts + 1 / counts.shape[-1]) / (totals + 1))
    return logarithms
