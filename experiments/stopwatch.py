"""Wall time: the only place of a run that looks at a wall clock, and it goes into `timing.json` alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.clusterers.base import Representation
from coordinator.view import View
from emulator.arrays import Floats32, Ints
from emulator.messages import Evaluation, SampleRanges, TrainTasks, Updates
from emulator.ports import Executor


class Stopwatch:
    """Wall seconds by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start


class TimedExecutor:
    """An executor whose training and evaluation are measured."""

    def __init__(self, executor: Executor, stopwatch: Stopwatch) -> None:
        self._executor = executor
        self._stopwatch = stopwatch
        self.num_parameters = executor.num_parameters
        self.initial = executor.initial

    def train(self, tasks: TrainTasks, starts: Floats32) -> Updates:
        with self._stopwatch.measure("train_s"):
            return self._executor.train(tasks, starts)

    def evaluate(self, models: Floats32, serves: Ints, samples: SampleRanges) -> Evaluation:
        with self._stopwatch.measure("evaluate_s"):
            return self._executor.evaluate(models, serves, samples)


class TimedClusterer(Clusterer):
    """A clusterer whose decisions are measured."""

    def __init__(self, clusterer: Clusterer, stopwatch: Stopwatch) -> None:
        self._clusterer = clusterer
        self._stopwatch = stopwatch

    @property
    def representation(self) -> Representation | None:
        return self._clusterer.representation

    def on_data(self, view: View) -> Assignment | None:
        with self._stopwatch.measure("cluster_s"):
            return self._clusterer.on_data(view)

    def serve(self, view: View) -> Ints:
        return self._clusterer.serve(view)
