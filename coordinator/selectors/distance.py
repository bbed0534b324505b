"""Selection of the clients whose data are most like those of their cluster."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.candidates import Candidates
from coordinator.clusterers.partition import centers_of
from coordinator.distances import DISTANCES, DistanceName
from coordinator.selectors.base import Selector
from coordinator.selectors.draws import by_lane
from coordinator.view import View
from emulator.arrays import Floats, Ints
from emulator.errors import RunError
from emulator.plugins import Settings


class DistanceSettings(Settings):
    """The distance from a client's report to the centre of its cluster."""

    distance: DistanceName | None = Field(
        None, description="if omitted, that of the representation", examples=["l1"]
    )


class Distance(Selector):
    """Fielding's: those candidates of a lane whose reports are nearest its centre, the clients' mean report.

    With one global model all clients are one lane. Equal distances, to nine digits of the lane's largest, are
    in random order.

    Source: Fielding, its distance-based selection.

    The centre of clients 0 to 3 is (0.5, 0.5); client 2 is offline:

    >>> from types import SimpleNamespace
    >>> view = SimpleNamespace(
    ...     reports=np.array([[1.0, 0.0], [0.6, 0.4], [0.4, 0.6], [0.0, 1.0], [0.0, 1.0]]),
    ...     distance="l1",
    ...     assignment=SimpleNamespace(lane_of_client=np.array([0, 0, 0, 0, 1])),
    ...     rngs=lambda purpose, lanes: map(np.random.default_rng, lanes),
    ... )
    >>> candidates = Candidates([np.arange(4), np.array([4])], lambda ids: ids != 2)
    >>> Distance(DistanceSettings()).select(candidates, np.array([1, 1]), view)
    array([1, 4])
    """

    Settings = DistanceSettings
    settings: DistanceSettings
    needs_reports = True

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        distance = self.settings.distance or view.distance
        centers = lane_centers(len(candidates), distance, view)

        def choose(lane: int, count: int, generator: np.random.Generator) -> Ints:
            ids = generator.permutation(candidates.ids(lane))
            apart = DISTANCES[distance](view.reports[ids], centers[[lane]])[:, 0]
            digits = np.round(apart / (apart.max(initial=0.0) or 1.0), 9)
            return ids[np.argsort(digits, kind="stable")[:count]]

        return by_lane(wanted, view, choose)


def lane_centers(num_lanes: int, distance: DistanceName, view: View) -> Floats:
    """(lanes, D) the mean report of each lane's clients, as `centers_of`; zeros for a lane without clients.

    Raises RunError, naming a client, if one that is in a lane has no report.
    """
    assert view.assignment is not None, "clients are in lanes once they have been assigned to models"
    lane_of_client = view.assignment.lane_of_client
    none = np.zeros((num_lanes, view.reports.shape[1]))
    centers = centers_of(view.reports, lane_of_client, none, distance)
    if np.isnan(centers).any():
        lacking = np.flatnonzero((lane_of_client >= 0) & np.isnan(view.reports).any(axis=1))
        raise RunError(
            f"round {view.round}: client {lacking[0]} has no report to compare with its lane's centre, like "
            f"{len(lacking)} of the clients that hold data; a selector that compares reports must declare "
            f"needs_reports from the start"
        )
    return centers
