"""Uniform selection."""

from __future__ import annotations

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from coordinator.selectors.draws import by_lane
from coordinator.view import View
from emulator.arrays import Ints
from emulator.plugins import NoSettings


class Random(Selector):
    """Uniform: every candidate of a lane is equally likely, without replacement.

    Source: McMahan et al. 2017, algorithm 1.

    Two of clients 0 to 4 are wanted, and nine of clients 5 to 8; only clients with an even id are online:

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(rngs=lambda purpose, lanes: map(np.random.default_rng, lanes))
    >>> candidates = Candidates([np.arange(5), np.arange(5, 9)], lambda ids: ids % 2 == 0)
    >>> Random(NoSettings()).select(candidates, np.array([2, 9]), view)
    array([2, 4, 6, 8])
    """

    Settings = NoSettings

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        return by_lane(wanted, view, candidates.draw)
