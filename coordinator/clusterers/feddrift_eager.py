"""FedDrift-Eager: all clients that drift in the same step share one new model.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". A model remains while samples are
claimed for it: permanently if the memory has no window, so that a concept that returns finds its model.
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
    """Every client moves to the best model in use; those whose accuracy fell share one new model.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), FedDrift-Eager.

    Both clients have accuracy 0.9 in step 1. In step 2 client 1 falls to 0.5 and gets the new model:

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> view = SimpleNamespace(
    ...     step=0,
    ...     num_clients=2,
    ...     assignment=None,
    ...     changed=np.array([0, 1]),
    ...     left=[],
    ...     claimed=lambda: np.array([20]),
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ... )
    >>> eager = FedDriftEager(AccuracyDriftSettings(delta=0.1))
    >>> view.assignment = eager.on_data(view)
    >>> view.members = view.assignment.members
    >>> for view.step, correct in (1, [[9.0], [9.0]]), (2, [[9.0], [5.0]]):
    ...     scores = Scores(counts=np.array([10, 10]), correct=np.array(correct))
    ...     view.score = lambda clients, *request: ScoreResponse(clients, scores)
    ...     assignment = eager.on_data(view)
    ...     print(None if assignment is None else assignment.members.ravel().tolist())
    None
    [0, 1]
    """

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
