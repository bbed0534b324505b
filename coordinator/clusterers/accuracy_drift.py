"""What FedDrift and FedDrift-Eager share: clients pick the best model, and drift when even that does badly.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". "Loss" is the classification
error, as in the published code, so delta is in shares of samples. A client that is offline when its data
arrive is asked when it is back, and keeps its model until then.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.clusterers.draft import Draft
from coordinator.clusterers.linkage import difference
from coordinator.view import View
from emulator.arrays import NO_IDS, Bools, Floats, Ints
from emulator.deprecated import keep_old_names
from emulator.messages import Metric
from emulator.numbers import Count, PositiveShare
from emulator.plugins import Settings

CORRECT: frozenset[Metric] = frozenset({"correct"})


class AccuracyDriftSettings(Settings):
    """When a client has drifted, and what it gets then."""

    delta: PositiveShare = Field(
        0.1, description="a client drifted when its best accuracy fell by more than this share"
    )
    new_model_init: Literal["initial", "copy_best"] = Field(
        "initial",
        description="a new model starts from the shared initialisation, or as a copy of the model that was "
        "best for the (first) drifted client",
    )
    max_models: Count | None = Field(
        None,
        description="most models at once; then the model that had no members for longest is given up for a "
        "new one, and there is no new one while all have members; null: no limit",
    )


@dataclass(frozen=True)
class Best:
    """The best of k models for each of n clients that answered, `clients` ascending; (n,) where not said.

    `offered` (k,) are the rows they chose from, `counts` how many samples arrived, `correct` (n, k) how many
    of these each model gets right.
    """

    clients: Ints
    rows: Ints
    accuracy: Floats
    offered: Ints
    counts: Ints
    correct: Floats

    def by_model(self, members: Ints, rows: Ints) -> tuple[Ints, Floats]:
        """The newest arrivals of those who answered, by the model that `members` (N,) has each client in.

        (r,) samples that belong to each of `rows`, which were asked about, and (r, r) how many each model
        (axis 0) gets right of those of each (axis 1).
        """
        correct = self.correct[:, np.searchsorted(self.offered, rows)]
        belongs = members[self.clients, None] == rows  # (n, r)
        counts: Ints = (self.counts[:, None] * belongs).sum(axis=0)
        return counts, np.stack([correct[own].sum(axis=0) for own in belongs.T], axis=1)


class AccuracyDrift(Clusterer):
    """Base: everybody starts on one model; when data arrive, `_recluster` drafts what becomes of that.

    State: the accuracy that each client's best model had before (N,), NaN while there was no request. After
    a drift that is the low one it fell to, so that a client which stays bad does not drift again. The
    published code starts from the accuracy of the untrained model; nothing is known before the first request
    here, so no drift is found at the first arrivals after the start.

    A model is in use while it has members or claims. Others can never get samples again: they are not
    offered, and end.
    """

    settings: AccuracyDriftSettings
    state_fields: tuple[str, ...] = ("_accuracy_before", "_last_used", "_step", "_arrivals_claimed")

    def __init__(self, settings: AccuracyDriftSettings) -> None:
        super().__init__(settings)
        self._accuracy_before: Floats = np.zeros(0)
        self._last_used: Ints = NO_IDS  # (M,) data step
        self._step = -1  # the data step of the last round
        self._arrivals_claimed = False  # whether claims include this step's arrivals, from an earlier round

    def on_data(self, view: View) -> Assignment | None:
        self._arrivals_claimed = view.step == self._step
        self._step = view.step
        if view.assignment is None:
            self._accuracy_before = np.full(view.num_clients, np.nan)
            self._last_used = np.array([view.step], dtype=np.int64)
            return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
        if len(view.changed) == 0:
            return None
        draft = Draft(view.members[:, 0], self._last_used)
        self._recluster(view, draft)
        self._last_used = draft.last_used(view.step)
        return draft.assignment(view.initial)

    @abstractmethod
    def _recluster(self, view: View, draft: Draft) -> None:
        """Decide in `draft` what the arrivals of `view.changed` lead to."""

    def _best(self, view: View, rows: Ints) -> Best:
        """Of models `rows`, the best on what arrived at each changed client; ties go to the lowest row."""
        response = view.score(view.changed, rows, "arrived", CORRECT)
        scores = response.scores
        assert scores.correct is not None
        judged = np.flatnonzero(scores.counts > 0)
        accuracy = scores.accuracy()[judged]
        return Best(
            clients=response.clients[judged],
            rows=rows[accuracy.argmax(axis=1)],
            accuracy=accuracy.max(axis=1),
            offered=rows,
            counts=scores.counts[judged],
            correct=scores.correct[judged],
        )

    def _drifted(self, best: Best) -> Bools:
        """(n,) whose best accuracy fell by more than delta; nobody's of whom no accuracy is known."""
        fell = difference(self._accuracy_before[best.clients], best.accuracy)
        return fell > self.settings.delta

    def _remember(self, best: Best) -> None:
        """The next accuracies are measured against these, also those of clients that drifted."""
        self._accuracy_before[best.clients] = best.accuracy

    def _new_model(self, view: View, draft: Draft, best: int) -> int | None:
        """The draft's row of a new model for a client whose best one is `best`; None when there is no room.

        A client counts as a member of its best model until it has the new one.
        """
        limit = self.settings.max_models
        if limit is not None and len(draft.rows) >= limit:
            candidates = draft.longest_unused()
            if len(candidates) == 0:
                return None
            draft.drop(view.rng("recycling", len(draft.used)).choice(candidates, size=1))
        return draft.add(best if self.settings.new_model_init == "copy_best" else None)


def in_use(draft: Draft, claimed: Ints) -> Ints:
    """The rows of the bank with members or claims, ascending; `claimed` (M,) before anything is drafted."""
    return np.flatnonzero((claimed > 0) | draft.used)


def drop_idle(draft: Draft, claimed: Ints) -> None:
    """Models that have neither members nor claims end; `claimed` (M,)."""
    draft.drop(draft.unused[claimed[draft.unused] == 0])


keep_old_names(__name__)
