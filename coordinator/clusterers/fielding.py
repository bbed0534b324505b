"""Fielding: drifted clients move one by one; all clients are re-clustered only when a centre moved too far.

Fielding, algorithms 1-3, with label histograms and L1. The listing of algorithm 2 recomputes centres while
clients move; the paper's prose holds them still. We follow the prose, so the order of clients does not
matter.
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.partition import Partition, PartitionSettings, means, nearest, partition
from coordinator.view import View
from emulator.arrays import Floats
from emulator.deprecated import keep_old_names
from emulator.messages import Trigger
from emulator.numbers import Factor


def _number_or_never(value: Any) -> Any:
    if isinstance(value, str) and value != "never":
        raise ValueError('must be a number, or "never"')
    return value


class FieldingSettings(PartitionSettings):
    """When all clients are re-clustered."""

    threshold: Annotated[Factor | Literal["never"], BeforeValidator(_number_or_never)] = Field(
        1 / 3,
        description="re-cluster when a centre moved this share of the mean centre distance; 0: at every "
        'drift; "never": clients only move, one by one',
    )
    shift_from: Literal["previous", "last_global"] = Field(
        "previous",
        description="a shift is measured from where the centre was before this drift, as published, or from "
        "where the last global clustering left it, so that slow drift adds up",
    )
    follow: Literal["drifted", "participants"] = Field(
        "drifted",
        description="clients that report a drift: all that drifted, or only those whose update arrived in "
        "the round before, as in Auxo and FedAC; of the others the last report counts",
    )


class Fielding(Clusterer):
    """Drifted clients move to the nearest centre; all clients are re-clustered when a centre moved too far.

    State: the present centres (k, D), and those of the last global clustering.

    Client 0 drifts from the first label to the second and moves to that cluster, whose centre stays where it
    was:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     assignment=None,
    ...     reports=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
    ...     drifted=np.array([0]),
    ...     rng=lambda purpose: np.random.default_rng(0),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ...     log_trigger=lambda trigger: print("shift", trigger.shift, "fired", trigger.fired),
    ... )
    >>> fielding = Fielding(FieldingSettings())
    >>> view.assignment = fielding.on_data(view)
    >>> view.assignment.members.ravel().tolist()
    [0, 0, 1]
    >>> view.reports[0] = [0.0, 1.0]
    >>> fielding.on_data(view).members.ravel().tolist()
    shift 0.0 fired False
    [1, 0, 1]
    """

    Settings = FieldingSettings
    settings: FieldingSettings
    state_fields = ("_centers", "_last_global")

    def __init__(self, settings: FieldingSettings) -> None:
        super().__init__(settings)
        self._centers: Floats | None = None
        self._last_global: Floats | None = None

    @property
    def needs_reports(self) -> bool:
        return True

    @property
    def follows_participants(self) -> bool:
        return self.settings.follow == "participants"

    def on_data(self, view: View) -> Assignment | None:
        if self._centers is None or view.assignment is None:
            clustering = self._partition(view)
            return Assignment.fresh(
                clustering.members, len(clustering.centers), view.initial(0), fitted=clustering.fitted
            )
        drifted = view.drifted
        if len(drifted) == 0:
            return None
        before = view.assignment.lane_of_client
        if view.rebased:
            # The reports of other models say nothing about where these clusters are now.
            self._centers = self._last_global = means(view.reports, before, empty=self._centers)
        moved = before.copy()
        moved[drifted] = nearest(view.reports[drifted], self._centers)
        centers = means(view.reports, moved, empty=self._centers)
        trigger = self._trigger(centers, view.reports)
        view.log_trigger(trigger)
        if trigger.fired:
            clustering = self._partition(view)
            return Assignment.reclustered_from(
                moved, clustering.members, len(centers), len(clustering.centers), clustering.fitted
            )
        self._centers = centers
        return None if np.array_equal(moved, before) else Assignment.moved(moved, len(centers))

    def _trigger(self, centers: Floats, reports: Floats) -> Trigger:
        """Compare how far the centres moved with the threshold, to decide on a global re-clustering.

        The trigger fires if the largest shift, from where a centre was as `shift_from` says, reaches
        threshold x the mean centre distance. With a single centre there is no such distance: it fires when
        the reports are not all identical. With the threshold "never", it never fires.
        """
        origin = self._centers if self.settings.shift_from == "previous" else self._last_global
        assert origin is not None
        threshold = None if self.settings.threshold == "never" else self.settings.threshold
        shift = float(np.abs(centers - origin).sum(axis=1).max())
        if len(centers) == 1:
            mean_distance = None
            too_far = bool((reports != reports[0]).any())
        else:
            mean_distance = float(np.mean([np.abs(a - b).sum() for a, b in combinations(centers, 2)]))
            too_far = threshold is not None and shift >= threshold * mean_distance
        return Trigger(shift, mean_distance, threshold, len(centers), threshold is not None and too_far)

    def _partition(self, view: View) -> Partition:
        clustering = partition(view.reports, self.settings, view.rng("clustering"))
        self._centers = self._last_global = clustering.centers
        return clustering


keep_old_names(__name__)
