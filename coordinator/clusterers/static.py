"""Static clustering: clients are clustered once, at the start or at a later round, and never again."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.partition import PartitionSettings, partition
from coordinator.view import View
from emulator.numbers import CountOrZero


class StaticSettings(PartitionSettings):
    """When and how clients are clustered."""

    at_round: CountOrZero = Field(
        0,
        description="clients are clustered as this round is opened; until then all share one model, with "
        "which all clusters start. All clients that `round.hear` lets report check their data then, also old "
        "data; of the others the last report counts",
    )


class Static(Clusterer):
    """Clusters once, when clients register or as `at_round` is opened: a baseline that does not follow drift.

    With `at_round` and gradients at the global model, the model is that of this round: clients report no such
    gradients between their registration and this round.

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     round=0,
    ...     reports=np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
    ...     distance="l1",
    ...     rng=lambda purpose: np.random.default_rng(0),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ... )
    >>> static = Static(StaticSettings())
    >>> static.on_data(view).members.ravel().tolist()
    [0, 1, 0]
    >>> static.on_data(view) is None
    True
    """

    Settings = StaticSettings
    settings: StaticSettings
    state_fields = ("_clustered",)

    def __init__(self, settings: StaticSettings) -> None:
        super().__init__(settings)
        self._clustered = False

    @property
    def needs_reports(self) -> bool:
        return not self._clustered

    @property
    def watches_data(self) -> bool:
        return not self._clustered

    @property
    def reports_from(self) -> int:
        return self.settings.at_round

    def on_data(self, view: View) -> Assignment | None:
        if self._clustered:
            return None
        at_round = self.settings.at_round
        if at_round > 0 and view.assignment is None:
            return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
        if at_round > 0 and (view.round < at_round or len(view.changed) == 0):
            return None
        self._clustered = True
        distance = self.settings.distance or view.distance
        clustering = partition(view.reports, self.settings, view.rng("clustering"), distance)
        members, num_clusters, fitted = clustering.members, len(clustering.centers), clustering.fitted
        if at_round == 0:
            return Assignment.fresh(members, num_clusters, view.initial(0), fitted=fitted)
        return Assignment.reclustered_from(np.zeros_like(members), members, 1, num_clusters, fitted)
