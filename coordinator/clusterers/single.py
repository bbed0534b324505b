"""One global model for everybody."""

from __future__ import annotations

import numpy as np

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.plugins import NoSettings


class Single(Clusterer):
    """One global model for all clients, also those that join later; clients report nothing.

    Source: McMahan et al. 2017, algorithm 1.

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(assignment=None, num_clients=3, initial=lambda number: np.zeros(2, np.float32))
    >>> Single(NoSettings()).on_data(view).members.ravel().tolist()
    [0, 0, 0]
    """

    Settings = NoSettings
    late_modules = ()

    @property
    def fixed_clusters(self) -> int:
        return 1

    @property
    def watches_data(self) -> bool:
        return False

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is not None:
            return None
        return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
