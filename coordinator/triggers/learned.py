"""A trigger whose threshold is learned in the run: our design of what Fielding's authors only propose."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from coordinator.triggers.base import Moved, ReclusteringTrigger
from coordinator.triggers.centre_shift import ShiftFrom, compared
from emulator.messages import TaskMetric, Trigger, Updates
from emulator.numbers import Count, Factor
from emulator.plugins import Settings


class LearnedSettings(Settings):
    """The thresholds to choose from, and for how long each is tried and the best one kept."""

    thresholds: Annotated[tuple[Factor, ...], Field(min_length=1)] = Field(
        (0, 1 / 6, 1 / 3, 1 / 2, 2 / 3),
        description="shares to try, as in `centre_shift`; ties: the first",
        examples=[(0, 0.25, 0.5)],
    )
    explore_events: Count = Field(3, description="drift events, of two rounds or more, for each threshold")
    keep_events: Count = Field(15, description="drift events for which the best one is kept; then all again")
    shift_from: ShiftFrom = "previous"

    @field_validator("thresholds")
    @classmethod
    def _refuse_repeated_thresholds(cls, thresholds: tuple[float, ...]) -> tuple[float, ...]:
        if len(set(thresholds)) < len(thresholds):
            raise ValueError("must differ from each other")
        return thresholds


class Learned(ReclusteringTrigger):
    """`centre_shift` with the threshold that was best when all were tried: our design, not the paper's.

    Each threshold is in force for `explore_events` drift events, in an order drawn anew for each exploration;
    then the best one for `keep_events`. An event begins at an opening with drift, and ends at the first one
    after two rounds or more. Its reward is the fall of the participants' mean `loss_before` from the first to
    the last: how much training repaired. Rounds whose mean is not finite do not count. It needs whole rounds:
    the mean over the few visits of a buffer is no such measure.

    State: how many drift events there were, the order and the sums of rewards of this exploration, the row of
    the threshold in force, and the mean losses of the first and the last round of the present event.

    Source: ours, of what Fielding's authors only propose.

    >>> from types import SimpleNamespace
    >>> updates = SimpleNamespace(num_steps=np.ones(1), metrics={"loss_before": np.ones(1)})
    >>> point = np.zeros((2, 1))
    >>> moved = Moved(point, np.arange(2), point, point, point, "l1", rng=lambda _: np.random.default_rng(0))
    >>> learned = Learned(LearnedSettings(thresholds=(0, 0.5, 1), explore_events=1))  # drift in every round
    >>> [(learned.evaluate(moved).threshold, learned.observe(updates))[0] for _ in range(8)]
    [1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0]
    """

    Settings = LearnedSettings
    settings: LearnedSettings
    needs_whole_rounds = True
    state_fields = ("_events", "_order", "_rewards", "_row", "_losses")

    def __init__(self, settings: LearnedSettings) -> None:
        super().__init__(settings)
        self._events = self._row = 0
        self._order = np.arange(len(settings.thresholds))
        self._rewards = np.zeros(len(settings.thresholds))
        self._losses: tuple[float, ...] = ()

    @property
    def needs(self) -> frozenset[TaskMetric]:
        return frozenset({"loss_before"})

    def observe(self, updates: Updates) -> None:
        losses = updates.metrics["loss_before"][updates.num_steps > 0]
        if len(losses) > 0 and np.isfinite(last := float(losses.mean())):
            self._losses = (*self._losses[:1], last)

    def evaluate(self, moved: Moved) -> Trigger:
        if self._events == 0 or len(self._losses) == 2:
            self._begin_event(moved)
        return compared(moved, float(self.settings.thresholds[self._row]), self.settings.shift_from)

    def _begin_event(self, moved: Moved) -> None:
        each, trials = self.settings.explore_events, len(self._order) * self.settings.explore_events
        event = self._events % (trials + self.settings.keep_events)
        if 0 < event <= trials:
            self._rewards = self._rewards - (np.arange(len(self._order)) == self._row) * np.diff(self._losses)
        if event == 0:
            self._order = moved.rng("learned").permutation(len(self._order))
            self._rewards = np.zeros(len(self._order))
        # As many events for each threshold: the sums of rewards are in the order of the means.
        self._row = int(self._order[event // each] if event < trials else self._rewards.argmax())
        self._events, self._losses = self._events + 1, ()
