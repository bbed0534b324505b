"""Where the wall time of a run goes: seconds of training, evaluation, scores and clustering.

They go into `timing.json` and nowhere else; no decision of a run depends on them. How long a run took in all,
and when its next checkpoint is due, is measured by `experiments.running.attempt`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from coordinator.assignment import Assignment
from coordinator.clusterers.base import Clusterer, Representation
from coordinator.view import View
from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import (
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    StateSpec,
    TrainTasks,
    Updates,
)
from emulator.ports import Executor, Segment
from emulator.storage.state_tree import Tree


class Stopwatch:
    """Wall seconds by what they were spent on. Each counts once: within a measured block, one that is
    measured as something else stops the outer one's seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._what: str | None = None
        self._since_s = 0.0

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        """Count the seconds within as `what`."""
        outer = self._go_on_as(what)
        try:
            yield
        finally:
            self._go_on_as(outer)

    def _go_on_as(self, what: str | None) -> str | None:
        """Count from now on as `what` (None: not at all); what was counted until now."""
        before, now_s = self._what, time.perf_counter()
        if before is not None:
            self.seconds[before] = self.seconds.get(before, 0.0) + now_s - self._since_s
        self._what, self._since_s = what, now_s
        return before


class TimedExecutor:
    """An `Executor` that measures another: scores are what parts ask clients for, evaluations what we
    measure."""

    def __init__(self, inner: Executor, stopwatch: Stopwatch) -> None:
        self._inner = inner
        self._stopwatch = stopwatch

    @property
    def layout(self) -> Mapping[str, Segment]:
        return self._inner.layout

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return self._inner.state

    @property
    def num_parameters(self) -> int:
        return self._inner.num_parameters

    def initial(self, number: int) -> Floats32:
        return self._inner.initial(number)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> Updates:
        with self._stopwatch.measure("train_s"):
            return self._inner.train(tasks, models, start, weights)

    def score(self, models: Floats32, samples: SampleRanges, metrics: frozenset[Metric]) -> Scores:
        with self._stopwatch.measure("score_s"):
            return self._inner.score(models, samples, metrics)

    def evaluate(self, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
        with self._stopwatch.measure("evaluate_s"):
            return self._inner.evaluate(models, plan, samples)


class TimedClusterer(Clusterer):
    """A clusterer that measures another at all its moments, and else is the other: its name, its state."""

    def __init__(self, inner: Clusterer, stopwatch: Stopwatch) -> None:
        self._inner = inner
        self._stopwatch = stopwatch
        self.oracle = inner.oracle
        self.state_fields = inner.state_fields

    def on_data(self, view: View) -> Assignment | None:
        with self._stopwatch.measure("cluster_s"):
            return self._inner.on_data(view)

    def on_participants(self, view: View) -> Assignment | None:
        with self._stopwatch.measure("cluster_s"):
            return self._inner.on_participants(view)

    def on_updates(self, view: View) -> Assignment | None:
        with self._stopwatch.measure("cluster_s"):
            return self._inner.on_updates(view)

    def serve(self, view: View) -> InferencePlan:
        with self._stopwatch.measure("cluster_s"):
            return self._inner.serve(view)

    def check(self, layout: Mapping[str, Segment], knows_concepts: bool) -> None:
        self._inner.check(layout, knows_concepts)

    @property
    def representation(self) -> Representation | None:
        return self._inner.representation

    @property
    def watches_data(self) -> bool:
        return self._inner.watches_data

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def facts(self) -> dict[str, Any]:
        return self._inner.facts

    def state(self) -> dict[str, Tree]:
        return self._inner.state()

    def restore(self, state: Mapping[str, Tree]) -> None:
        self._inner.restore(state)
