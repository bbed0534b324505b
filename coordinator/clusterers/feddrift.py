"""FedDrift: each drifted client gets its own model, and similar models are merged one data step later.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". Isolation lasts one data step, as
published.

The merge compares and weighs each model on its present samples: those claimed for it (within the memory's
window, if it has one) and the newest arrivals of its members that responded; every model was scored on the
latter when the clients chose. The merge takes place once per data step, with the first responses; clients
that respond in a later round choose, and may be isolated, without a merge. If even the first responses come
in a later round, the newest arrivals are already claimed, for the previous models, and count as claimed.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.clusterers.accuracy_drift import (
    CORRECT,
    AccuracyDrift,
    AccuracyDriftSettings,
    Best,
    drop_idle,
    in_use,
)
from coordinator.clusterers.draft import Draft
from coordinator.clusterers.linkage import distances, linked, merge_weights, pooled
from coordinator.view import ClaimedBy, View
from emulator.arrays import NO_IDS, Floats, Ints
from emulator.numbers import Count


class FedDriftSettings(AccuracyDriftSettings):
    """The settings of `AccuracyDriftSettings`, and how models are compared before they are merged."""

    # 21 batches of 50 in the published code; the text shares the sample between clients, as we do.
    merge_samples: Count = Field(
        1050,
        description="models are compared on at most this many of the samples claimed for each before, "
        "and on all that newly arrived",
    )


class FedDrift(AccuracyDrift):
    """Isolates each drifted client in its own model for a step, then merges models by complete linkage.

    Models in a merged group are at most delta apart (`linkage.distances`).

    State: the clients isolated since the last data step with responses, with their accuracy before that
    drift; the clients still in a model that was given up, because they have not responded since.

    Source: Jothimurugesan et al., "Federated Learning under Distributed Concept Drift", AISTATS 2023,
    algorithm FedDrift.

    Models 0 and 1 lose little on each other's samples and merge, weighted by 100 and 300 samples; model 2
    stays:

    >>> import numpy as np
    >>> accuracy = np.array([[0.9, 0.85, 0.2], [0.85, 0.9, 0.3], [0.1, 0.2, 0.8]])  # model i on samples of j
    >>> distances(accuracy).round(2).tolist()
    [[0.0, 0.05, 0.7], [0.05, 0.0, 0.6], [0.7, 0.6, 0.0]]
    >>> linked(distances(accuracy), delta=0.1)
    [array([0, 1]), array([2])]
    >>> merge_weights(np.array([100, 300]))
    array([0.25, 0.75])
    """

    Settings = FedDriftSettings
    settings: FedDriftSettings
    late_modules = (*AccuracyDrift.late_modules, "scipy.cluster.hierarchy")
    state_fields = (*AccuracyDrift.state_fields, "_answered_at", "_isolated", "_given_up")

    def __init__(self, settings: FedDriftSettings) -> None:
        super().__init__(settings)
        self._merge_samples = settings.merge_samples
        self._answered_at = -1  # data step
        self._isolated: dict[int, float] = {}
        self._given_up: Ints = NO_IDS

    def _recluster(self, view: View, draft: Draft) -> None:
        first = view.step > self._answered_at
        self._answered_at = view.step
        if first:
            self._end_isolation(view)
        claimed = view.claimed()
        offered = np.setdiff1d(in_use(draft, claimed), draft.members[self._apart()])
        if len(offered) == 0:
            return  # no model can be chosen before the isolation of this step ends
        best = self._best(view, offered)
        self._move(draft, best)
        self._isolate(view, draft, best)
        if first:
            self._merge(view, draft, best, claimed)
        drop_idle(draft, claimed)

    def _forget(self, left: Ints) -> None:
        super()._forget(left)
        gone = set(left.tolist())
        self._isolated = {client: before for client, before in self._isolated.items() if client not in gone}
        self._given_up = np.setdiff1d(self._given_up, left)

    def _apart(self) -> Ints:
        """The clients whose models are neither offered nor merged, ascending."""
        return np.union1d(self._given_up, _ids(self._isolated))

    def _end_isolation(self, view: View) -> None:
        """Step 1: end the isolation of the clients that were isolated in an earlier data step."""
        given_up = self._gives_up(view, _ids(self._isolated))
        for client in given_up.tolist():
            self._accuracy_before[client] = self._isolated[client]
        self._given_up = np.union1d(self._given_up, given_up)
        self._isolated = {}

    def _gives_up(self, view: View, isolated: Ints) -> Ints:
        """The clients, of those whose isolation ends, whose models end with it: none in FedDrift.

        The accuracy of these clients is reset to that before the drift, so that they can drift again.
        """
        return NO_IDS

    def _move(self, draft: Draft, best: Best) -> None:
        """Steps 2 and 3: responding clients move to their best models.

        A given-up model is dropped when its client has moved.
        """
        back = np.isin(self._given_up, best.clients)
        ended = draft.members[self._given_up[back]]
        draft.members[best.clients] = best.rows
        # A client that joined while it was offline may be in such a model, too.
        draft.drop(np.intersect1d(ended, draft.unused))
        self._given_up = self._given_up[~back]

    def _isolate(self, view: View, draft: Draft, best: Best) -> None:
        """Step 4: each drifted client gets a model of its own, if the limit on models allows."""
        for index in np.flatnonzero(self._drifted(best)).tolist():
            row = self._new_model(view, draft, int(best.rows[index]))
            if row is not None:
                client = int(best.clients[index])
                draft.members[client] = row
                self._isolated[client] = float(self._accuracy_before[client])
        self._remember(best)

    def _merge(self, view: View, draft: Draft, best: Best, claimed: Ints) -> None:
        """Step 5: merge similar models among those offered; models without any data cannot be compared."""
        rows = np.intersect1d(best.offered, draft.rows)
        num_newest, newest = best.by_model(draft.members, rows)
        if self._arrivals_claimed:
            num_newest, newest = np.zeros_like(num_newest), np.zeros_like(newest)
        samples = claimed[rows] + num_newest
        with_samples = np.flatnonzero(samples > 0)
        if len(with_samples) < 2:
            return
        rows, samples = rows[with_samples], samples[with_samples]
        accuracy = pooled(
            self._on_claimed(view, rows, claimed[rows]),
            claimed[rows],
            newest[np.ix_(with_samples, with_samples)],
            num_newest[with_samples],
        )
        for group in linked(distances(accuracy), self.settings.delta):
            if len(group) > 1:
                draft.merge(rows[group], merge_weights(samples[group]))

    def _on_claimed(self, view: View, rows: Ints, claimed: Ints) -> Floats:
        """(k, k) the accuracy of each model of `rows` (axis 0) on the samples claimed for each (axis 1).

        NaN where no client responded. `claimed` (k,) is the number of samples claimed.
        """
        everyone = np.arange(view.num_clients)
        correct = np.zeros((len(rows), len(rows)))
        counts = np.zeros(len(rows))
        for column in np.flatnonzero(claimed > 0).tolist():
            samples = ClaimedBy(int(rows[column]))
            scores = view.score(everyone, rows, samples, CORRECT, limit=self._merge_samples).scores
            assert scores.correct is not None
            correct[:, column] = scores.correct.sum(axis=0)
            counts[column] = scores.counts.sum()
        return np.divide(correct, counts, out=np.full_like(correct, np.nan), where=counts > 0)


def _ids(isolated: dict[int, float]) -> Ints:
    """The isolated clients, ascending."""
    return np.array(sorted(isolated), dtype=np.int64)
