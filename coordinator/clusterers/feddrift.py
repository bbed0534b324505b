"""FedDrift: each client that drifts gets its own model, and models that are alike are merged a step later.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". Isolation lasts one data step, as
published. The merge judges models on what was claimed up to the step before: the newest arrivals are claimed
after clustering.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.clusterers.accuracy_drift import CORRECT, AccuracyDrift, AccuracyDriftParameters
from coordinator.clusterers.draft import Draft
from coordinator.clusterers.linkage import distances, linked, merge_weights
from coordinator.view import ClaimedBy, View
from emulator.arrays import NO_IDS, Floats, Ints


class FedDriftParameters(AccuracyDriftParameters):
    """When a client has drifted, what it gets then, and how models are compared."""

    # 21 batches of 50 in the published code; the text shares the sample between clients, as we do.
    merge_samples: int = Field(
        1050, ge=1, description="models are compared on at most so many samples of each model's data"
    )


class FedDrift(AccuracyDrift):
    """Drifted clients are isolated for a step, each in a model of its own; then models are merged by
    complete linkage, at most delta apart.

    Models that nobody is in and no data are claimed for end. State: who is isolated since which data step;
    who is still in a model that was given up, because it has not answered since.
    """

    Parameters = FedDriftParameters

    def __init__(self, parameters: FedDriftParameters) -> None:
        super().__init__(parameters)
        self._merge_samples = parameters.merge_samples
        self._isolated: Ints = NO_IDS
        self._isolated_at = -1
        self._given_up: Ints = NO_IDS

    def _recluster(self, view: View, draft: Draft) -> None:
        # Step 1: isolation ends with its data step.
        if view.step > self._isolated_at:
            self._given_up = np.union1d(self._given_up, self._gives_up(view, self._isolated))
            self._isolated = NO_IDS
        closed = draft.members[np.union1d(self._given_up, self._isolated)]

        # Steps 2 and 3: everybody who answers goes to the best model in use.
        claimed = view.claimed()
        in_use = np.setdiff1d(np.flatnonzero((claimed > 0) | draft.used), closed)
        best = self._best(view, in_use)
        back = np.isin(self._given_up, best.clients)
        ended = draft.members[self._given_up[back]]
        draft.members[best.clients] = best.rows
        draft.drop(ended)
        self._given_up = self._given_up[~back]

        # Step 4: drifted clients are isolated; they keep the accuracy of before the drift.
        settled = np.ones(len(best.clients), dtype=bool)
        for index in np.flatnonzero(self._drifted(best)).tolist():
            row = self._new_model(view, draft, int(best.rows[index]))
            if row is not None:
                draft.members[best.clients[index]] = row
                settled[index] = False
        self._isolated = np.union1d(self._isolated, best.clients[~settled])
        self._isolated_at = view.step
        self._accuracy_before[best.clients[settled]] = best.accuracy[settled]

        # Step 5: models in use that are alike become one.
        comparable = np.intersect1d(in_use[claimed[in_use] > 0], draft.rows)
        self._merge(view, draft, comparable, claimed)
        draft.drop(draft.unused[claimed[draft.unused] == 0])

    def _gives_up(self, view: View, isolated: Ints) -> Ints:
        """Of the clients whose isolation ends, those whose model ends with it: none."""
        return NO_IDS

    def _merge(self, view: View, draft: Draft, rows: Ints, claimed: Ints) -> None:
        if len(rows) < 2:
            return
        for group in linked(distances(self._accuracies(view, rows)), self.parameters.delta):
            if len(group) > 1:
                draft.merge(rows[group], merge_weights(claimed[rows[group]]))

    def _accuracies(self, view: View, rows: Ints) -> Floats:
        """(k, k) accuracy of each model of `rows` on what is claimed for each; NaN where nobody answers."""
        everyone = np.arange(view.num_clients)
        correct = np.zeros((len(rows), len(rows)))
        counts = np.zeros(len(rows))
        for column, row in enumerate(rows.tolist()):
            scores = view.score(everyone, rows, ClaimedBy(row), CORRECT, limit=self._merge_samples).scores
            assert scores.correct is not None
            correct[:, column] = scores.correct.sum(axis=0)
            counts[column] = scores.counts.sum()
        return np.divide(correct, counts, out=np.full_like(correct, np.nan), where=counts > 0)
