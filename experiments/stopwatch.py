"""Wall time: the only place of a run that looks at a wall clock, and it goes into `timing.json` alone."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

from coordinator.clusterers import Clusterer
from emulator.ports import Executor

T = TypeVar("T")


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


class Timed(Generic[T]):
    """Stands in for `inner`, some of whose methods are measured; all else is the inner one's own.

    `measured` maps a method's name to what its seconds are counted as.
    """

    def __init__(self, inner: T, stopwatch: Stopwatch, measured: Mapping[str, str]) -> None:
        self._inner = inner
        self._stopwatch = stopwatch
        self._measured = measured

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._measured:
            return found

        def call(*args: Any, **keywords: Any) -> Any:
            with self._stopwatch.measure(self._measured[name]):
                return found(*args, **keywords)

        return call


def timed_executor(executor: Executor, stopwatch: Stopwatch) -> Executor:
    return cast(Executor, Timed(executor, stopwatch, {"train": "train_s", "evaluate": "evaluate_s"}))


def timed_clusterer(clusterer: Clusterer, stopwatch: Stopwatch) -> Clusterer:
    return cast(Clusterer, Timed(clusterer, stopwatch, {"on_data": "cluster_s"}))
