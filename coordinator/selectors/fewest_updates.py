"""FedConD's selection: the clients that have contributed least so far."""

from __future__ import annotations

import numpy as np

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from coordinator.selectors.draws import by_lane
from coordinator.view import View
from emulator import plugins
from emulator.arrays import Ints
from emulator.messages import COMPLETED, EndedVisits, Updates


class FewestUpdates(Selector):
    """Of each lane the candidates whose updates were absorbed least often so far; ties at random.

    A visit that was dropped or abandoned does not count. With a buffer of one update, and slots for some of
    the clients, all clients contribute nearly equally often, however fast they are. It looks at all online
    clients of a lane.

    State: the number of absorbed visits (N,) of each client, from the first selection on.

    Source: Chen et al., "Asynchronous Federated Learning for Sensor Data with Concept Drift", IEEE Big Data
    2021 (FedConD), algorithm 1.

    Of clients 0 to 2 the first two have contributed once:

    >>> from types import SimpleNamespace as Of
    >>> view = Of(num_clients=3, rngs=lambda purpose, lanes: map(np.random.default_rng, lanes))
    >>> selector, everyone = FewestUpdates(plugins.NoSettings()), Candidates([np.arange(3)], np.isfinite)
    >>> selector.select(everyone, np.array([3]), view)
    array([0, 1, 2])
    >>> selector.feedback(Of(clients_with=lambda outcome: np.array([0, 1])), None)
    >>> selector.select(everyone, np.array([1]), view)
    array([2])
    """

    Settings = plugins.NoSettings
    state_fields = ("_absorbed",)

    def __init__(self, settings: plugins.Settings) -> None:
        super().__init__(settings)
        self._absorbed: Ints = np.zeros(0, dtype=np.int64)

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        if len(self._absorbed) == 0:
            self._absorbed = np.zeros(view.num_clients, dtype=np.int64)

        def choose(lane: int, count: int, generator: np.random.Generator) -> Ints:
            ids = candidates.ids(lane)
            if not 0 < count < len(ids):
                return ids[:count]
            absorbed = self._absorbed[ids]
            most = np.partition(absorbed, count - 1)[count - 1]
            fewer, equal = ids[absorbed < most], ids[absorbed == most]
            drawn = generator.choice(equal, size=count - len(fewer), replace=False)
            return np.concatenate([fewer, drawn])

        return by_lane(wanted, view, choose)

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        if len(self._absorbed) > 0:
            np.add.at(self._absorbed, visits.clients_with(COMPLETED), 1)
