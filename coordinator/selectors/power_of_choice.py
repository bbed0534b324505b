"""Power-of-choice: of some candidates, those with the largest loss (Cho, Wang and Joshi 2020)."""

from __future__ import annotations

from math import ceil
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.candidates import Candidates
from coordinator.selectors.draws import by_lane, weighted_draw
from coordinator.selectors.losses import LastLosses, held_losses
from coordinator.view import View
from emulator.arrays import Ints
from emulator.counts import exact
from emulator.numbers import FactorFromOne
from emulator.plugins import Settings


class PowerOfChoiceSettings(Settings):
    """How many candidates are compared, and by which loss."""

    candidates: FactorFromOne = Field(
        2.0, description="candidates per participant wanted, d / m, rounded up", examples=[3]
    )
    loss: Literal["held", "last"] = Field(
        "held", description="held (pow-d): of all held samples, on request; last (rpow-d): of its last visit"
    )


class PowerOfChoice(LastLosses):
    """Of candidates drawn in proportion to their numbers of samples, those with the largest losses.

    Of several models of a client the first counts. Equal losses, such as inf of clients that have not trained
    yet, stay in the order of the draw. If all that are drawn can take part, none is requested to measure.

    Source: Cho, Wang and Joshi 2020, pow-d and rpow-d.

    >>> from types import SimpleNamespace as Of
    >>> scores = Of(loss=np.array([[4.0], [3.0]]), counts=np.array([4, 2]))
    >>> view = Of(members=np.zeros((2, 1), dtype=int), held=lambda ids: Of(counts=lambda: scores.counts))
    >>> view.score = lambda clients, *request: Of(clients=clients, scores=scores)
    >>> view.rngs, both = lambda purpose, lanes: map(np.random.default_rng, lanes), [np.arange(2)]
    >>> PowerOfChoice(PowerOfChoiceSettings()).select(Candidates(both, np.isfinite), np.array([1]), view)
    array([1])
    """

    Settings = PowerOfChoiceSettings
    settings: PowerOfChoiceSettings

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        last = self.last_losses(view) if self.settings.loss == "last" else None

        def choose(lane: int, count: int, generator: np.random.Generator) -> Ints:
            ids, size = candidates.ids(lane), ceil(count * exact(self.settings.candidates))
            drawn = weighted_draw(ids, view.held(ids).counts(), size, generator)
            if len(drawn) <= count:
                return drawn
            losses = held_losses(drawn, view) if last is None else last[drawn]
            return drawn[np.argsort(-losses, kind="stable")[:count]]

        return by_lane(wanted, view, choose)
