"""Every client is online all the time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from traces.availability.base import AvailabilitySource, Locate


class AlwaysOnline:
    """The `Availability` of clients that never go offline.

    >>> AlwaysOnline().online(np.array([3, 4]), 0.0)
    array([ True,  True])
    """

    @property
    def facts(self) -> Mapping[str, int]:
        return {}

    def online(self, ids: Ints, time_s: float) -> Bools:
        return np.ones(len(ids), dtype=np.bool_)

    def next_offline_s(self, ids: Ints, time_s: float) -> Floats:
        return np.full(len(ids), np.inf)

    def next_online_s(self, ids: Ints, time_s: float) -> Floats:
        return np.full(len(ids), np.inf)


class Always(AvailabilitySource):
    """Every client is online all the time.

    Source: ours.

    >>> from pathlib import Path
    >>> from emulator.plugins import NoSettings
    >>> clients = Always(NoSettings()).build(2, np.random.default_rng(0), locate=Path)
    >>> clients.next_offline_s(np.array([0, 1]), 3600.0)
    array([inf, inf])
    """

    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> AlwaysOnline:
        return AlwaysOnline()
