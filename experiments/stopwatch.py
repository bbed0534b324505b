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
    """Scores are what parts ask clients for, evaluations what we measure."""
    measured = {"train": "train_s", "evaluate": "evaluate_s", "score": "score_s"}
    return cast(Executor, Timed(executor, stopwatch, measured))


def timed_clusterer(clusterer: Clusterer, stopwatch: Stopwatch) -> Clusterer:
    """All that a clusterer is asked in a round."""
    moments = ("on_data", "on_participants", "on_updates", "serve")
    return cast(Clusterer, Timed(clusterer, stopwatch, dict.fromkeys(moments, "cluster_s")))
