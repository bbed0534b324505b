"""Base of FedDrift and FedDrift-Eager: clients choose the best model, and drift if its accuracy fell.

Jothimurugesan et al., "Federated Learning under Distributed Concept Drift". "Loss" is the classification
error, as in the published code, so delta is a share of samples. A client that is offline when its data arrive
chooses when it is back online, and keeps its model until then. A client that joins chooses like any client
with new data, and cannot drift; until then it is in the largest cluster.
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
from emulator.messages import Metric
from emulator.numbers import Count, PositiveShare
from emulator.plugins import Settings

CORRECT: frozenset[Metric] = frozenset({"correct"})


class AccuracyDriftSettings(Settings):
    """When a client counts as drifted, how its new model starts, and how many models there may be."""

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
        description="most models at once; at the limit a new one replaces that without members for longest, "
        "and none is added while all have members",
    )


@dataclass(frozen=True)
class Best:
    """The best of k models for each of n clients that responded.

    `clients` are ascending; shapes are (n,) unless stated. `offered` (k,) are the rows the clients chose
    from, `counts` the numbers of samples that arrived, `correct` (n, k) how many of these each model gets
    right.
    """

    clients: Ints
    rows: Ints
    accuracy: Floats
    offered: Ints
    counts: Ints
    correct: Floats

    def by_model(self, members: Ints, rows: Ints) -> tuple[Ints, Floats]:
        """Sum samples and correct predictions over the responding clients that belong to the same model.

        The samples are the newest arrivals. `members` (N,) is the model of each client, `rows` (r,) are some
        of the offered models. Returns (r,) the samples that belong to each of `rows`, and (r, r) how many of
        the samples of each (axis 1) each model (axis 0) gets right.
        """
        correct = self.correct[:, np.searchsorted(self.offered, rows)]
        belongs = members[self.clients, None] == rows  # (n, r)
        counts: Ints = (self.counts[:, None] * belongs).sum(axis=0)
        return counts, np.stack([correct[of_model].sum(axis=0) for of_model in belongs.T], axis=1)


class AccuracyDrift(Clusterer):
    """Base class: all clients start on one model, and `_recluster` drafts the changes when data arrive.

    It needs whole rounds: a client drifts, and models merge, by what each model has learned since the last
    data step, so that every model must have been trained in it, by all clients that claim samples for it.
    Visits that are out while data arrive would bring the model of one step what was claimed in another.

    State:

    * the accuracy (N,) of each client's best model at its last response, NaN before the first one. A drift
      lowers it to the accuracy after the fall, so that a client whose accuracy stays low drifts once. The
      published code begins with the accuracy of the untrained model; here it is unknown before the first
      response, and so the first arrivals after the start cause no drift;
    * the data step (M,) in which each model last had members;
    * the data step of the last round, and whether the arrivals of that step have been claimed.

    A model is in use while it has members or claims. Other models can never get samples again: they are not
    offered, and end.
    """

    settings: AccuracyDriftSettings
    needs_whole_rounds = True
    state_fields: tuple[str, ...] = ("_accuracy_before", "_last_used", "_step", "_arrivals_claimed")

    def __init__(self, settings: AccuracyDriftSettings) -> None:
        super().__init__(settings)
        self._accuracy_before: Floats = np.zeros(0)
        self._last_used: Ints = NO_IDS  # (M,) data step
        self._step = -1  # the data step of the last round
        self._arrivals_claimed = False  # whether an earlier round of this step has claimed its arrivals

    def on_data(self, view: View) -> Assignment | None:
        self._arrivals_claimed = view.step == self._step
        self._step = view.step
        if view.assignment is None:
            self._accuracy_before = np.full(view.num_clients, np.nan)
            self._last_used = np.array([view.step], dtype=np.int64)
            return Assignment.fresh(np.zeros(view.num_clients, dtype=np.int64), 1, view.initial(0))
        if len(view.left) > 0:
            self._forget(view.left)
        if len(view.changed) == 0:
            return None
        draft = Draft(view.members[:, 0], self._last_used)
        self._recluster(view, draft)
        self._last_used = draft.last_used(view.step)
        return draft.assignment(view.initial)

    def _forget(self, left: Ints) -> None:
        """Forget the clients (n,) that hold no data any more."""
        self._accuracy_before[left] = np.nan

    @abstractmethod
    def _recluster(self, view: View, draft: Draft) -> None:
        """Record in `draft` the changes caused by the arrivals of `view.changed`."""

    def _best(self, view: View, rows: Ints) -> Best:
        """The best of the models `rows` on each client's newest arrivals; ties go to the lowest row."""
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
        """(n,) whether the best accuracy fell by more than delta; False without an earlier accuracy."""
        fell = difference(self._accuracy_before[best.clients], best.accuracy)
        return fell > self.settings.delta

    def _remember(self, best: Best) -> None:
        """Store the accuracies that the next ones are compared with, also those of drifted clients."""
        self._accuracy_before[best.clients] = best.accuracy

    def _new_model(self, view: View, draft: Draft, best: int) -> int | None:
        """Add a model to the draft, for a client whose best model is `best`; returns its row.

        At the limit, one of the models without members for longest is dropped for the new one; if all have
        members, no model is added and None is returned. A client counts as a member of its best model until
        it has the new one.
        """
        limit = self.settings.max_models
        if limit is not None and len(draft.rows) >= limit:
            droppable = draft.longest_unused()
            if len(droppable) == 0:
                return None
            draft.drop(view.rng("recycling", len(draft.used)).choice(droppable, size=1))
        return draft.add(best if self.settings.new_model_init == "copy_best" else None)


def in_use(draft: Draft, claimed: Ints) -> Ints:
    """The rows of the bank whose models have members or claimed samples, ascending.

    Call it before a model is added to `draft`. `claimed` (M,) is the number of samples that the memory holds
    for each model of the bank, as `View.claimed` returns it.
    """
    return np.flatnonzero((claimed > 0) | draft.used)


def drop_idle(draft: Draft, claimed: Ints) -> None:
    """Drop models that have neither members nor claims; `claimed` (M,)."""
    draft.drop(draft.unused[claimed[draft.unused] == 0])
