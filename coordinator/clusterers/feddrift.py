"""FedDrift: each client that drifts gets its own model, and models that are alike are merged a step later.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". Isolation lasts one data step,
as published. The merge judges and weighs models on the data that are theirs now: what is claimed for them (in
the window of the memory, if it has one) and the newest arrivals of their members that answered, who told how
every model does on these when they chose. It comes once per data step, with the first answers; a client that
answers in a later round only chooses. Where even the first answers come in a later round, the newest arrivals
are claimed already, for the models of before, and count as such.
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
from emulator.deprecated import keep_old_names
from emulator.numbers import Count


class FedDriftSettings(AccuracyDriftSettings):
    """When a client has drifted, what it gets then, and how models are compared."""

    # 21 batches of 50 in the published code; the text shares the sample between clients, as we do.
    merge_samples: Count = Field(
        1050,
        description="models are compared on at most so many of the samples claimed for each before, "
        "and on all that newly arrived",
    )


class FedDrift(AccuracyDrift):
    """Drifted clients are isolated for a step, each in a model of its own; then models are merged by
    complete linkage, at most delta apart.

    State: who is isolated since the last data step with answers, with its accuracy before that drift; who is
    still in a model that was given up, because it has not answered since.
    """

    Settings = FedDriftSettings
    settings: FedDriftSettings
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
            return  # nobody can choose before the isolation of this step ends
        best = self._best(view, offered)
        self._move(draft, best)
        self._isolate(view, draft, best)
        if first:
            self._merge(view, draft, best, claimed)
        drop_idle(draft, claimed)

    def _apart(self) -> Ints:
        """The clients whose models are offered to nobody, and are not merged."""
        return np.union1d(self._given_up, _ids(self._isolated))

    def _end_isolation(self, view: View) -> None:
        """Step 1: isolation ends with its data step."""
        given_up = self._gives_up(view, _ids(self._isolated))
        for client in given_up.tolist():
            self._accuracy_before[client] = self._isolated[client]
        self._given_up = np.union1d(self._given_up, given_up)
        self._isolated = {}

    def _gives_up(self, view: View, isolated: Ints) -> Ints:
        """Of the clients whose isolation ends, those whose model ends with it: none.

        Theirs is again the accuracy of before the drift, so that they may drift again.
        """
        return NO_IDS

    def _move(self, draft: Draft, best: Best) -> None:
        """Steps 2 and 3: everybody who answered goes to its best model; models given up end behind them."""
        back = np.isin(self._given_up, best.clients)
        ended = draft.members[self._given_up[back]]
        draft.members[best.clients] = best.rows
        draft.drop(ended)
        self._given_up = self._given_up[~back]

    def _isolate(self, view: View, draft: Draft, best: Best) -> None:
        """Step 4: each drifted client gets a model of its own."""
        for index in np.flatnonzero(self._drifted(best)).tolist():
            row = self._new_model(view, draft, int(best.rows[index]))
            if row is not None:
                client = int(best.clients[index])
                draft.members[client] = row
                self._isolated[client] = float(self._accuracy_before[client])
        self._remember(best)

    def _merge(self, view: View, draft: Draft, best: Best, claimed: Ints) -> None:
        """Step 5: offered models that are alike become one; those without any data cannot be compared."""
        rows = np.intersect1d(best.offered, draft.rows)
        num_newest, newest = best.by_model(draft.members, rows)
        if self._arrivals_claimed:
            num_newest, newest = np.zeros_like(num_newest), np.zeros_like(newest)
        samples = claimed[rows] + num_newest
        some = np.flatnonzero(samples > 0)
        if len(some) < 2:
            return
        rows, samples = rows[some], samples[some]
        accuracy = pooled(
            self._on_claimed(view, rows, claimed[rows]),
            claimed[rows],
            newest[np.ix_(some, some)],
            num_newest[some],
        )
        for group in linked(distances(accuracy), self.settings.delta):
            if len(group) > 1:
                draft.merge(rows[group], merge_weights(samples[group]))

    def _on_claimed(self, view: View, rows: Ints, claimed: Ints) -> Floats:
        """(k, k) accuracy of each model of `rows` on what is claimed for each; NaN where nobody tells."""
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


keep_old_names(__name__)
