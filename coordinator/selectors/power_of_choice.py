"""Power-of-choice: of some candidates, those with the largest loss (Cho, Wang and Joshi 2020).

A loss is measured on request, or in training. A request cannot be limited client by client, so no loss is of
one batch of each client (cpow-d).
"""

from __future__ import annotations

from math import ceil
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from coordinator.selectors.draws import by_lane, weighted_draw
from coordinator.view import View
from emulator.arrays import Floats, Ints
from emulator.counts import exact
from emulator.messages import EndedVisits, Updates
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


class LastLosses(Selector):
    """Base of selectors that know the training loss of each client's last visit that came back.

    State: these losses (N,), from the first call of `last_losses` on.
    """

    state_fields = ("_last",)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._last: Floats = np.zeros(0)

    def last_losses(self, view: View) -> Floats:
        """(N,) the last losses; inf for a client that has not come back since it began to hold data.

        To be called at every selection: the loss of a client that is away at one is forgotten.
        """
        self._last = np.where(view.holding, self._last if len(self._last) > 0 else np.inf, np.inf)
        return self._last

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        if updates is not None and len(self._last) > 0:
            clients, losses = training_losses(updates)
            self._last[clients] = losses


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


def held_losses(clients: Ints, view: View) -> Floats:
    """(n,) the mean loss of the first model of each of `clients` (n,), over all samples that it holds.

    The clients are requested to score it, and charged. -inf for one that does not respond.
    """
    losses, order = np.full(len(clients), -np.inf), np.argsort(clients)
    models = view.members[clients, 0]
    for model in np.unique(models).tolist():
        requested = np.sort(clients[models == model])
        response = view.score(requested, np.array([model]), "held", frozenset({"loss"}))
        assert response.scores.loss is not None
        rows = order[np.searchsorted(clients, response.clients, sorter=order)]
        losses[rows] = response.scores.loss[:, 0] / response.scores.counts
    return losses


def training_losses(updates: Updates) -> tuple[Ints, Floats]:
    """(n,) ids, ascending, and (n,) losses: the mean training loss of each client, over its models.

    A task without samples, which has no loss, does not count.

    >>> from emulator.messages import ArrayUpdates
    >>> client, model, num_samples, zero = np.array([[1, 4, 4, 6], [0, 0, 1, 0], [5, 2, 2, 0], [0, 0, 0, 0]])
    >>> loss = {"loss": np.array([0.5, 1.0, 3.0, np.nan])}
    >>> updates = ArrayUpdates(client, model, num_samples, zero, zero[:, None].astype(np.float32), loss)
    >>> [column.tolist() for column in training_losses(updates)]
    [[1, 4], [0.5, 2.0]]
    """
    trained = updates.num_samples > 0
    clients, row = np.unique(updates.client[trained], return_inverse=True)
    return clients, np.bincount(row, weights=updates.metrics["loss"][trained]) / np.bincount(row)
