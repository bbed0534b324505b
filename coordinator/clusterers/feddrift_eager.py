"""FedDrift-Eager: all clients that drift in the same step share one new model.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". A model is kept while samples are
claimed for it: for good where the memory has no window, so that a concept that returns finds its own.
"""

from __future__ import annotations

import numpy as np

from coordinator.clusterers.accuracy_drift import (
    AccuracyDrift,
    AccuracyDriftSettings,
    drop_idle,
    in_use,
)
from coordinator.clusterers.draft import Draft
from coordinator.view import View


class FedDriftEager(AccuracyDrift):
    """Every client goes to the best of all models in use; those whose accuracy fell share one new model."""

    Settings = AccuracyDriftSettings

    def _recluster(self, view: View, draft: Draft) -> None:
        claimed = view.claimed()
        best = self._best(view, in_use(draft, claimed))
        draft.members[best.clients] = best.rows
        drifted = np.flatnonzero(self._drifted(best))
        self._remember(best)
        if len(drifted) > 0:
            row = self._new_model(view, draft, int(best.rows[drifted[0]]))
            if row is not None:
                draft.members[best.clients[drifted]] = row
        drop_idle(draft, claimed)
