"""The oracle: one model per true concept; every client is always on that of its newest samples.

It is meant as an upper bound for clustering; even it fails where the test samples are of another concept than
the newest training samples.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import NO_IDS, Ints
from emulator.errors import ConfigurationError
from emulator.plugins import NoSettings
from emulator.ports import Segment


class Oracle(Clusterer):
    """One model for each concept; every client is on that of its newest samples.

    A model is made from the shared initialisation when its concept first appears, and kept. With
    `trace.changes`, a client's concept is its composed label swap. Clients report nothing. State: the concept
    of each model (M,).

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), its Oracle.

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     assignment=None,
    ...     concepts=np.array([4, 2, 4]),
    ...     holding=np.ones(3, dtype=bool),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ... )
    >>> Oracle(NoSettings()).on_data(view).members.ravel().tolist()  # models of concepts 2 and 4
    [1, 0, 1]
    """

    Settings = NoSettings
    state_fields = ("_concepts",)
    oracle = True

    def __init__(self, settings: NoSettings) -> None:
        super().__init__(settings)
        self._concepts: Ints = NO_IDS

    def check(self, layout: Mapping[str, Segment], knows_concepts: bool) -> None:
        if not knows_concepts:
            raise ConfigurationError(
                "clusterer 'oracle' follows the true concepts, and this trace has none: choose one with "
                'trace.source = "concepts", or with trace.changes'
            )

    def on_data(self, view: View) -> Assignment | None:
        concepts = view.concepts
        assert concepts is not None, "refused by check"
        new = np.setdiff1d(concepts[view.holding], self._concepts)
        known = len(self._concepts)
        self._concepts = np.append(self._concepts, new)
        # (N,) the row of each client's concept; that of a client without data may have no row.
        members = np.where(view.holding, (concepts[:, None] == self._concepts).argmax(axis=1), -1)
        if view.assignment is None:
            return Assignment.fresh(members, len(new), view.initial(0))
        if np.array_equal(members, view.members[:, 0]):
            return None
        return Assignment.moved(members, known, np.repeat(view.initial(0)[None, :], len(new), axis=0))
