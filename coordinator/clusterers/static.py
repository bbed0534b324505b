"""Static clustering: clients are clustered once, at the start or at a later round, and never again."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.partition import PartitionSettings, nearest, partition_among
from coordinator.distances import comparable
from coordinator.view import RunFacts, View
from emulator.arrays import Floats
from emulator.numbers import CountOrZero


class StaticSettings(PartitionSettings):
    """When and how clients are clustered."""

    at_round: CountOrZero = Field(
        0,
        description="clients are clustered as this round is opened; until then all share one model, with "
        "which all clusters start. All clients that `round.hear` lets report do so then; of the "
        "others the last report counts",
        examples=[10],
    )


class Static(Clusterer):
    """Clusters once, when clients register or as `at_round` is opened: a baseline that does not follow drift.

    With `at_round` and gradients at the global model, the model is that of this round: clients report no such
    gradients between their registration and this round.

    A client that joins later reports as it registers, and joins the nearest of the centres that its one
    clustering left; the largest cluster, if reports are measured at models that have changed since. State:
    whether it has clustered, and these centres.

    Source: ours; a counter-arm of Fielding, whose first clustering (algorithm 3) it keeps.

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     round=0,
    ...     reports=np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]]),
    ...     distance="l1",
    ...     holding=np.ones(3, dtype=bool),
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
    late_modules = (*Clusterer.late_modules, "scipy.optimize")
    state_fields = ("_clustered", "_centers")

    def __init__(self, settings: StaticSettings) -> None:
        super().__init__(settings)
        self._clustered = False
        self._centers: Floats | None = None

    @property
    def needs_reports(self) -> bool:
        return not self._clustered

    @property
    def watches_data(self) -> bool:
        return not self._clustered

    @property
    def reports_from(self) -> int:
        return self.settings.at_round

    def check_run(self, run: RunFacts) -> None:
        run.refuse_late_round("clusterer.at_round", self.settings.at_round)

    def on_data(self, view: View) -> Assignment | None:
        if self._clustered:
            return None
        at_round = self.settings.at_round
        if at_round > 0 and view.assignment is None:
            return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
        if at_round > 0 and (view.round < at_round or len(view.changed) == 0):
            return None
        self._clustered = True
        generator, distance = view.rng("clustering"), self.settings.distance or view.distance
        clustering = partition_among(view.reports, view.holding, self.settings, generator, distance)
        self._centers = clustering.centers
        members, num_clusters, fitted = clustering.members, len(clustering.centers), clustering.fitted
        if at_round == 0:
            return Assignment.fresh(members, num_clusters, view.initial(0), fitted=fitted)
        together = np.where(view.holding, 0, -1)
        return Assignment.reclustered_from(together, members, 1, num_clusters, fitted)

    def on_joined(self, view: View) -> Assignment | None:
        if self._centers is None or view.rebased:
            return super().on_joined(view)
        distance = self.settings.distance or view.distance
        members = view.members[:, 0].copy()
        members[view.joined] = nearest(
            comparable(view.reports[view.joined], distance), self._centers, distance
        )
        return Assignment.moved(members, len(view.model_ids))
