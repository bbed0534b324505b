"""DriftSurf: after a drift a new model races the old one for a few data steps, and the better one stays.

Tahmasbi et al. 2021, in the form that FedDrift compares with: one model predicts for the whole fleet, and
accuracies are pooled over the newest arrivals of all clients. Models train on the samples that memory
`claimed` keeps, in FedDrift with a window of 10 data steps.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer
from coordinator.view import View
from emulator.arrays import Floats
from emulator.messages import InferencePlan
from emulator.numbers import Share, TwoOrMore
from emulator.plugins import Settings

PREDICTIVE, OTHER = 0, 1
"""Rows of the bank. OTHER is the stable model in the stable state, the reactive one in the reactive state."""


class DriftSurfSettings(Settings):
    """How large a loss of accuracy counts as a drift, and how long the reactive state lasts."""

    delta: Share = Field(
        0.1,
        description="a drift: the predictive model is more than this below its best accuracy so far, or more "
        "than half of this below the stable model's (FedDrift: SINE 0.10, CIRCLE 0.05, SEA 0.02)",
    )
    reactive_steps: TwoOrMore = Field(3, description="data steps that the reactive state lasts")


class DriftSurf(Clusterer):
    """All clients train two models: the predictive one, and a stable or reactive one; one of them serves.

    From the second data step of the reactive state on, the model that is more accurate on the newest arrivals
    serves, at all other times the predictive model. At the last step of the reactive state, the model with
    the better mean accuracy becomes the next predictive one: if that is the reactive model it serves at once,
    and the assignment follows when the next data arrive. A data step that no client scores is passed over.

    State: the data step; the best accuracy so far; the data steps trained in the reactive state, 0 in the
    stable one; in the reactive state the accuracies (steps, 2) of both models; the row that is predictive
    from the next data on, and the row that serves.

    Source: Tahmasbi et al. 2021, in the form that FedDrift (AISTATS 2023) compares with.

    The predictive model falls from 0.9 to 0.7, which is a drift, so the other model starts anew from the
    shared initialisation (the last column):

    >>> from types import SimpleNamespace
    >>> from coordinator.view import ScoreResponse
    >>> from emulator.messages import Scores
    >>> surf = DriftSurf(DriftSurfSettings(delta=0.1))
    >>> view = SimpleNamespace(
    ...     assignment=None,
    ...     step=0,
    ...     num_clients=1,
    ...     changed=[0],
    ...     initial=lambda number: np.zeros(1, dtype=np.float32),
    ... )
    >>> view.assignment = surf.on_data(view)
    >>> view.members = view.assignment.members
    >>> for view.step, correct in (1, [90.0, 90.0]), (2, [70.0, 90.0]):
    ...     scores = Scores(counts=np.array([100]), correct=np.array([correct]))
    ...     view.score = lambda clients, *request: ScoreResponse(clients, scores)
    ...     assignment = surf.on_data(view)
    ...     print(None if assignment is None else assignment.mixing.tolist())
    None
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """

    Settings = DriftSurfSettings
    settings: DriftSurfSettings
    state_fields = ("_step", "_best", "_reactive_steps", "_race", "_next_predictive", "_serving")

    def __init__(self, settings: DriftSurfSettings) -> None:
        super().__init__(settings)
        self._step = -1
        self._best = 0.0
        self._reactive_steps = 0
        self._race: list[Floats] = []
        self._next_predictive = PREDICTIVE
        self._serving = PREDICTIVE

    def on_data(self, view: View) -> Assignment | None:
        if view.assignment is None:
            self._step = view.step
            both = np.tile([PREDICTIVE, OTHER], (view.num_clients, 1))
            lanes = np.zeros(view.num_clients, dtype=np.int64)
            return Assignment.fresh(both, 2, view.initial(0), lanes=lanes)
        if len(view.changed) == 0 or view.step == self._step:
            return None
        accuracies = self._pooled_accuracies(view)
        if accuracies is None:
            return None
        self._step = view.step
        over = self._reactive_steps == self.settings.reactive_steps
        if self._reactive_steps == 0 or over:
            return self._stable_step(view, accuracies, over)
        self._reactive_step(accuracies)
        return None

    def _stable_step(self, view: View, accuracies: Floats, over: bool) -> Assignment | None:
        """Decide at a data step of the stable state.

        `over`: the reactive state has just ended, so the stable model is new and has no data yet.
        """
        predictive, self._next_predictive = self._next_predictive, PREDICTIVE
        accuracy = float(accuracies[predictive])
        stable = 0.0 if over else float(accuracies[OTHER])
        self._best = max(self._best, accuracy)
        delta = self.settings.delta
        drifts = _loss(self._best, accuracy) > delta or _loss(stable, accuracy) > delta / 2
        self._reactive_steps = 1 if drifts else 0
        self._race = []
        self._serving = PREDICTIVE
        return _with_new_other(predictive, view) if drifts or over else None

    def _reactive_step(self, accuracies: Floats) -> None:
        """Decide at the second or a later step of the reactive state."""
        self._best = max(self._best, float(accuracies[PREDICTIVE]))
        self._race.append(accuracies)
        self._reactive_steps += 1
        self._serving = _better(accuracies)
        if self._reactive_steps == self.settings.reactive_steps:
            self._next_predictive = _better(np.mean(self._race, axis=0))
            if self._next_predictive == OTHER:
                self._best = max(float(step[OTHER]) for step in self._race)
                self._serving = OTHER

    def _pooled_accuracies(self, view: View) -> Floats | None:
        """(2,) accuracies of both models on the newest arrivals of all clients; None without any sample."""
        everyone, rows = np.arange(view.num_clients), np.array([PREDICTIVE, OTHER])
        scores = view.score(everyone, rows, "arrived", frozenset({"correct"})).scores
        assert scores.correct is not None
        total = scores.counts.sum()
        return scores.correct.sum(axis=0) / total if total > 0 else None

    def serve(self, view: View) -> InferencePlan:
        return InferencePlan.alike(np.full((view.num_clients, 1), self._serving, dtype=np.int64))


def _loss(before: float, accuracy: float) -> float:
    """`before - accuracy`, rounded so that 0.8 - 0.7 does not exceed 0.1."""
    return round(before - accuracy, 12)


def _better(accuracies: Floats) -> int:
    """The row of the more accurate model; the predictive one if they are equal."""
    return OTHER if accuracies[OTHER] > accuracies[PREDICTIVE] else PREDICTIVE


def _with_new_other(predictive: int, view: View) -> Assignment:
    """Make the old row `predictive` the predictive model, with its claims, and start the other model anew."""
    mixing = np.zeros((2, 3))
    mixing[PREDICTIVE, predictive] = 1.0
    mixing[OTHER, 2] = 1.0
    successor = np.full(2, -1, dtype=np.int64)
    successor[predictive] = PREDICTIVE
    return Assignment(
        mixing=mixing,
        extra=view.initial(0)[None, :],
        successor=successor,
        members=view.members,
        lanes=np.zeros(view.num_clients, dtype=np.int64),
    )
