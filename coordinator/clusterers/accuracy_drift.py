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
from emulator.messages import Metric
from emulator.plugins import Parameters

CORRECT: frozenset[Metric] = frozenset({"correct"})


class AccuracyDriftParameters(Parameters):
    """When a client has drifted, and what it gets then."""

    delta: float = Field(
        0.1, gt=0, le=1, description="a client drifted when its best accuracy fell by more than this share"
    )
    new_model_init: Literal["initial", "copy_best"] = Field(
        "initial",
        description="a new model starts from the shared initialisation, or as a copy of the model that was "
        "best for the (first) drifted client",
    )
    max_models: int | None = Field(
        None,
        ge=1,
        description="most models at once; then the model that had no members for longest is given up for a "
        "new one, and there is no new one while all have members; null: no limit",
    )


@dataclass(frozen=True)
class Best:
    """The best model of each client that answered; all of shape (n,), `clients` ascending."""

    clients: Ints
    rows: Ints
    accuracy: Floats


class AccuracyDrift(Clusterer):
    """Base: everybody starts on one model; when data arrive, `_recluster` drafts what becomes of that.

    State: the accuracy that each client's best model had before (N,), NaN while there was no question. The
    published code starts from the accuracy of the untrained model instead; nothing is known before the
    first question here, so no drift is found at the first arrivals after the start.
    """

    def __init__(self, parameters: AccuracyDriftParameters) -> None:
        self.parameters = parameters
        self._accuracy_before: Floats = np.zeros(0)
        self._last_used: Ints = NO_IDS  # (M,) data step

    def on_data(self, view: View) -> Assignment | None:
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
        answers = view.score(view.changed, rows, "arrived", CORRECT)
        judged = np.flatnonzero(answers.scores.counts > 0)
        accuracy = answers.scores.accuracy()[judged]
        return Best(answers.clients[judged], rows[accuracy.argmax(axis=1)], accuracy.max(axis=1))

    def _drifted(self, best: Best) -> Bools:
        """(n,) whose best accuracy fell by more than delta; nobody's of whom no accuracy is known."""
        fell = difference(self._accuracy_before[best.clients], best.accuracy)
        return fell > self.parameters.delta

    def _new_model(self, view: View, draft: Draft, best: int) -> int | None:
        """The draft's row of a new model for a client whose best one is `best`; None when there is no room.

        A client counts as a member of its best model until it has the new one.
        """
        limit = self.parameters.max_models
        if limit is not None and len(draft.rows) >= limit:
            candidates = draft.longest_unused()
            if len(candidates) == 0:
                return None
            draft.drop(view.rng("recycling", len(draft.used)).choice(candidates, size=1))
        return draft.add(best if self.parameters.new_model_init == "copy_best" else None)
