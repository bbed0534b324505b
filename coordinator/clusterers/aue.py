"""AUE: an ensemble with a new model for every data step, weighted by the models' errors on the newest data.

Brzezinski and Stefanowski 2011, in the form that FedDrift compares with. With memory `claimed` a model trains
on all samples that arrived since it was made: model k, counted from the newest, on the newest k + 1 steps.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import Floats, Ints
from emulator.messages import InferencePlan
from emulator.numbers import ModelCount
from emulator.plugins import Settings


class AueSettings(Settings):
    """The size of the ensemble, and how its models are weighted."""

    num_models: ModelCount = Field(5, description="most models at once; the oldest goes")
    weigh: Literal["data", "updates"] = Field(
        "data",
        description="measure the errors when data arrive, or also after every aggregation (FedDrift's code: "
        "every tenth, and the last ten of a step)",
        examples=["updates"],
    )
    feddrift_aue_offbyone: bool = Field(
        False,
        description="as in FedDrift's code: a model counts by the error of the one a step older, and the "
        "oldest by a vanishing weight",
    )


class Aue(Clusterer):
    """All clients train all models; these vote, weighted by their errors over the fleet. Row 0 is the newest.

    With C labels MSE_r = (1 - 1/C)^2 is the error of a random guess, and MSE_k the mean of (1 - p)^2, where p
    is the probability that model k gives the true label. Weights: 1 / MSE_r for the newest model, 1 / (MSE_r
    + MSE_k + 1e-20) for another. A model without a measured error gets that of a random guess. With `weigh =
    "updates"` it needs whole rounds: it has all clients score all models at each server step. State: the data
    step; the weights (1 or N, M).

    Source: Brzezinski and Stefanowski 2011, in the form that FedDrift (AISTATS 2023) compares with.

    With two labels MSE_r = 0.25, so an older model with MSE_k = 0.25 has half the weight of the newest:

    >>> from types import SimpleNamespace
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> scores = Scores(counts=np.array([10, 10]), true_class_error=np.array([[1.0], [4.0]]))
    >>> view = SimpleNamespace(
    ...     num_clients=2,
    ...     num_labels=2,
    ...     model_ids=np.array([1, 0]),
    ...     members=np.array([[0, 1], [0, 1]]),
    ...     score=lambda clients, *request: ScoreResponse(clients, scores),
    ... )
    >>> aue = Aue(AueSettings(weigh="updates"))
    >>> aue.on_updates(view)
    >>> aue.serve(view).weights.round(3).tolist()
    [[0.667, 0.333], [0.667, 0.333]]
    """

    Settings = AueSettings
    settings: AueSettings
    state_fields = ("_step", "_weights")
    serves_several: ClassVar[bool] = True
    needs_labels = True
    by_client: ClassVar[bool] = False

    def __init__(self, settings: AueSettings) -> None:
        super().__init__(settings)
        self.needs_whole_rounds = settings.weigh == "updates"
        self._step = -1
        self._weights: Floats = np.ones((1, 1))

    def on_data(self, view: View) -> Assignment | None:
        everyone = np.zeros(view.num_clients, dtype=np.int64)
        if view.assignment is None:
            self._step = view.step
            return Assignment.fresh(everyone, 1, view.initial(0), lanes=everyone)
        if len(view.changed) == 0 or view.step == self._step:
            return None
        self._step = view.step
        old = len(view.model_ids)
        kept = min(old, self.settings.num_models - 1)
        self._measure(np.arange(kept), view)
        mixing = np.zeros((kept + 1, old + 1))
        mixing[0, old] = 1.0
        mixing[np.arange(kept) + 1, np.arange(kept)] = 1.0
        return Assignment(
            mixing=mixing,
            extra=view.initial(0)[None, :],
            successor=np.where(np.arange(old) < kept, np.arange(old) + 1, -1),
            members=np.tile(np.arange(kept + 1), (view.num_clients, 1)),
            lanes=everyone,
        )

    def on_updates(self, view: View) -> Assignment | None:
        if self.settings.weigh == "updates":
            self._measure(np.arange(1, len(view.model_ids)), view)
        return None

    def _measure(self, older: Ints, view: View) -> None:
        """Measure the errors and compute the weights; `older` are the rows of all models but the newest."""
        guess = (1 - 1 / view.num_labels) ** 2
        errors = np.full((view.num_clients if self.by_client else 1, len(older)), guess)
        if len(older) > 0:
            everyone = np.arange(view.num_clients)
            response = view.score(everyone, older, "arrived", frozenset({"true_class_error"}))
            sums, counts = response.scores.true_class_error, response.scores.counts
            assert sums is not None
            if counts.sum() > 0:
                errors[:] = sums.sum(axis=0) / counts.sum()
            if self.by_client:
                measured = counts > 0
                errors[response.clients[measured]] = sums[measured] / counts[measured, None]
        newest = np.full((len(errors), 1), 1 / guess)
        weights = np.hstack([newest, 1 / (guess + errors + 1e-20)])
        if self.settings.feddrift_aue_offbyone:
            weights[:, 1:] = np.hstack([weights[:, 2:], np.zeros_like(newest)])[:, : len(older)]
        self._weights = weights / weights.sum(axis=1, keepdims=True)

    def serve(self, view: View) -> InferencePlan:
        weights = np.broadcast_to(self._weights, view.members.shape).copy()
        return InferencePlan(view.members, weights, combine="votes")


class AuePerClient(Aue):
    """AUE-PC: the models vote, weighted by their errors on each client's own newest arrivals.

    A client that has no arrivals, or is offline, uses the weights of the fleet.

    Source: FedDrift (AISTATS 2023), which compares with it; AUE is of Brzezinski and Stefanowski 2011.

    With two labels MSE_r = 0.25; the older model has errors 0 for client 0 and 0.75 for client 1:

    >>> from types import SimpleNamespace
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> scores = Scores(counts=np.array([10, 10]), true_class_error=np.array([[0.0], [7.5]]))
    >>> view = SimpleNamespace(
    ...     num_clients=2,
    ...     num_labels=2,
    ...     model_ids=np.array([1, 0]),
    ...     members=np.array([[0, 1], [0, 1]]),
    ...     score=lambda clients, *request: ScoreResponse(clients, scores),
    ... )
    >>> aue = AuePerClient(AueSettings(weigh="updates"))
    >>> aue.on_updates(view)
    >>> aue.serve(view).weights.tolist()
    [[0.5, 0.5], [0.8, 0.2]]
    """

    by_client = True
