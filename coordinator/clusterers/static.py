"""Static clustering: clients are clustered once, from the reports of their registration, and never again."""

from __future__ import annotations

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.partition import PartitionSettings, partition
from coordinator.view import View


class Static(Clusterer):
    """Clusters once, when clients register: a baseline that does not follow drift.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     reports=np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
    ...     distance="l1",
    ...     rng=lambda purpose: np.random.default_rng(0),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ... )
    >>> static = Static(PartitionSettings())
    >>> static.on_data(view).members.ravel().tolist()
    [0, 1, 0]
    >>> static.on_data(view) is None
    True
    """

    Settings = PartitionSettings
    settings: PartitionSettings
    state_fields = ("_clustered",)

    def __init__(self, settings: PartitionSettings) -> None:
        super().__init__(settings)
        self._clustered = False

    @property
    def needs_reports(self) -> bool:
        return not self._clustered

    @property
    def watches_data(self) -> bool:
        return not self._clustered

    def on_data(self, view: View) -> Assignment | None:
        if self._clustered:
            return None
        self._clustered = True
        distance = self.settings.distance or view.distance
        clustering = partition(view.reports, self.settings, view.rng("clustering"), distance)
        return Assignment.fresh(
            clustering.members, len(clustering.centers), view.initial(0), fitted=clustering.fitted
        )
