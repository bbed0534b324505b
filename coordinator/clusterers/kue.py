"""KUE: an ensemble whose models see different features, weighted by Cohen's kappa.

Cano and Krawczyk 2020, in the form that FedDrift compares with: memory `held` with a window of one data step
and bootstrap, and a `masked` model, which can ignore the masks in inference as FedDrift's code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import InferencePlan
from emulator.numbers import MOST_MODELS, Number
from emulator.plugins import Settings
from emulator.ports import Segment

MASK = "mask"
"""Name of the tensor that holds a model's feature mask: 1 seen, 0 hidden; training does not change it."""


class KueSettings(Settings):
    """Size of the ensemble."""

    num_models: Annotated[int, Number(ge=2, le=MOST_MODELS)] = Field(
        10, description="models, each with a feature mask of its own"
    )


class Kue(Clusterer):
    """All clients train all models; their predictions are averaged with their kappas as weights.

    The worst model and those no better than chance (kappa 0 or below) abstain; if all abstain, all count
    equally. With each new data step the worst model is replaced. It needs whole rounds: kappas are those of
    one server step. State: the data step; kappas (M,), measured after every aggregation on the newest
    arrivals of the clients that trained, 0 until then.

    Source: Cano and Krawczyk 2020, in the form that FedDrift (AISTATS 2023) compares with.

    Model 1 is the worst and abstains; kappas 0.4 and 0.8 become weights 1/3 and 2/3:

    >>> from types import SimpleNamespace
    >>> kue = Kue(KueSettings(num_models=3))
    >>> kue._kappas = np.array([0.4, -0.2, 0.8])
    >>> view = SimpleNamespace(num_clients=1, members=np.array([[0, 1, 2]]))
    >>> kue.serve(view).weights.round(3).tolist()
    [[0.333, 0.0, 0.667]]
    """

    Settings = KueSettings
    settings: KueSettings
    needs_whole_rounds = True
    needs_labels = True
    state_fields = ("_step", "_kappas")
    serves_several: ClassVar[bool] = True

    def __init__(self, settings: KueSettings) -> None:
        super().__init__(settings)
        self._step = -1
        self._kappas: Floats = np.zeros(settings.num_models)

    def check(self, layout: Mapping[str, Segment], knows_concepts: bool) -> None:
        if MASK not in layout:
            raise ConfigurationError(
                f"clusterer 'kue' gives each model a feature mask of its own, and this model has no tensor "
                f"{MASK!r}, only {', '.join(layout) or 'none'}: choose one with "
                'training.model = { kind = "masked", ... }'
            )

    def on_data(self, view: View) -> Assignment | None:
        count = self.settings.num_models
        everyone = np.zeros(view.num_clients, dtype=np.int64)
        if view.assignment is None:
            self._step = view.step
            all_models = np.tile(np.arange(count), (view.num_clients, 1))
            starts = np.stack([_masked_model(view, row) for row in range(count)])
            return Assignment.fresh(all_models, count, starts, lanes=everyone)
        if len(view.changed) == 0 or view.step == self._step:
            return None
        self._step = view.step
        worst = int(self._kappas.argmin())
        self._kappas[worst] = 0.0
        mixing = np.eye(count, count + 1)
        mixing[worst, [worst, count]] = [0.0, 1.0]
        successor = np.arange(count)
        successor[worst] = -1
        extra = _masked_model(view, worst)[None, :]
        return Assignment(
            mixing=mixing, extra=extra, successor=successor, members=view.members, lanes=everyone
        )

    def on_updates(self, view: View) -> Assignment | None:
        assert view.updates is not None
        trained, rows = np.unique(view.updates.client), np.arange(self.settings.num_models)
        scores = view.score(trained, rows, "arrived", frozenset({"confusion"})).scores
        assert scores.confusion is not None
        if scores.counts.sum() > 0:
            self._kappas = kappas(scores.confusion.sum(axis=0))
        return None

    def serve(self, view: View) -> InferencePlan:
        weights = np.maximum(self._kappas, 0.0)
        weights[self._kappas.argmin()] = 0.0
        if weights.sum() == 0:
            weights = np.ones_like(weights)
        weights = np.tile(weights / weights.sum(), (view.num_clients, 1))
        return InferencePlan(view.members, weights, combine="probabilities")


def kappas(confusion: Floats) -> Floats:
    """(m,) Cohen's kappa of m confusion matrices (m, L, L): agreement beyond chance, 1 if perfect.

    (n sum_i A_ii - sum_i A_i. A_.i) / (n^2 - sum_i A_i. A_.i) with n samples; 0 where that is 0 / 0, which
    happens if there is only one label and only that label was predicted.

    >>> kappas(np.array([[[20.0, 5.0], [10.0, 15.0]]]))
    array([0.4])
    """
    n = confusion.sum(axis=(1, 2))
    agreed = np.trace(confusion, axis1=1, axis2=2)
    chance = (confusion.sum(axis=2) * confusion.sum(axis=1)).sum(axis=1)
    beyond = n**2 - chance
    return np.where(beyond > 0, (n * agreed - chance) / np.where(beyond > 0, beyond, 1.0), 0.0)


def _masked_model(view: View, row: int) -> Floats32:
    """(P,) the shared initialisation with a random feature mask.

    The mask shows 1 to d of the d features, each number equally likely.
    """
    assert MASK in view.layout, "refused by check"
    segment = view.layout[MASK]
    features = segment.last - segment.first
    generator = view.rng("feature mask", row)
    seen = generator.choice(features, size=int(generator.integers(1, features + 1)), replace=False)
    mask = np.zeros(features, dtype=np.float32)
    mask[seen] = 1.0
    start = view.initial(0).copy()
    start[segment.first : segment.last] = mask
    return start
