"""FlexCFL (Duan et al. 2021, 2022): groups by directions of updates; drifted clients are grouped anew."""

from __future__ import annotations

import numpy as np

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.cold_start import ColdStartSettings, cold_start
from coordinator.clusterers.label_shift import (
    LabelShiftSettings,
    labels_of,
    refuse_other_reports,
    still_known,
)
from coordinator.view import RunFacts, View
from emulator.arrays import Floats


class FlexCflSettings(ColdStartSettings, LabelShiftSettings):
    """How clients are grouped, and which of them have drifted."""


class FlexCfl(Clusterer):
    """Groups clients by the directions of their updates; again when the labels of their samples shift.

    Until its cold start, when it is first online, a client is in the largest group. Fewer different updates
    than groups make fewer groups, once and for all. Aggregation between groups (eta_G) is left out. State:
    the groups' directions, and (N, L) the labels of clients at their cold start, or NaN.

    Source: Duan et al. 2021 (FedGroup) and 2022 (FlexCFL).

    >>> from types import SimpleNamespace
    >>> from emulator.messages import ArrayUpdates
    >>> ids, delta = np.arange(4), np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> view = SimpleNamespace(
    ...     assignment=None, model_ids=[], num_clients=4, reports=np.eye(4), holding=ids >= 0,
    ...     rng=lambda purpose: np.random.default_rng(0), initial=lambda number: np.zeros(1),
    ...     train=lambda clients, *request: ArrayUpdates(*4 * [clients], delta[clients]),
    ... )
    >>> FlexCfl(FlexCflSettings(num_groups=2)).on_data(view).members.ravel().tolist()
    [0, 1, 0, 1]
    """

    Settings = FlexCflSettings
    settings: FlexCflSettings
    state_fields = ("_directions", "_labels")
    needs_reports = True

    def __init__(self, settings: FlexCflSettings) -> None:
        super().__init__(settings)
        self._directions: Floats | None = None
        self._labels: Floats | None = None

    def check_run(self, run: RunFacts) -> None:
        self.settings.check_run(run)
        refuse_other_reports(run, self.settings)

    def on_data(self, view: View) -> Assignment | None:
        self._labels = still_known(self._labels, view, self.settings)
        waiting = np.flatnonzero(view.holding & np.isnan(self._labels[:, 0]))
        started = cold_start(waiting, self._directions, view, self.settings)
        self._directions = started.directions
        self._labels[started.clients] = labels_of(started.clients, view, self.settings)
        return started.assignment(view)
