"""The centre of each lane: the mean report of its clients."""

from __future__ import annotations

import numpy as np

from coordinator.clusterers.partition import centers_of
from coordinator.distances import DistanceName
from coordinator.view import View
from emulator.arrays import Floats
from emulator.errors import RunError


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
