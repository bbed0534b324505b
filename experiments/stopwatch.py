"""What a run spends: wall seconds by activity, CPU seconds and peak memory of its processes.

They are written into `timing.json` only; no decision of a run depends on them. The total wall time of a run,
and the time of its next checkpoint, are measured by `experiments.running.attempt`.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from executor.ranks import Spent


class Stopwatch:
    """Wall seconds by activity, in `seconds`; each second counts for one activity only.

    While a nested block is measured as another activity, the clock of the outer activity is stopped.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._activity: str | None = None
        self._since_s = 0.0

    @contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        """Count the seconds of the block for `activity`."""
        outer = self._switch_to(activity)
        try:
            yield
        finally:
            self._switch_to(outer)

    def _switch_to(self, activity: str | None) -> str | None:
        """Count for `activity` from now on (None: for nothing); returns the activity until now."""
        before, now_s = self._activity, time.perf_counter()
        if before is not None:
            self.seconds[before] = self.seconds.get(before, 0.0) + now_s - self._since_s
        self._activity, self._since_s = activity, now_s
        return before


class Usage:
    """CPU time since this object was made, and peak memory since the start of the processes, of all ranks.

    `other_ranks` returns the totals of the other ranks as of their last exchange.
    """

    def __init__(self, other_ranks: Callable[[], Spent] = Spent) -> None:
        self._other_ranks = other_ranks
        self._first_s = time.process_time()
        self._other_ranks_first_s = other_ranks().cpu_s  # spent on earlier runs, not on this one

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all ranks since this object was made."""
        return time.process_time() - self._first_s + self._other_ranks().cpu_s - self._other_ranks_first_s

    @property
    def peak_memory_bytes(self) -> float:
        """Sum of the peak memory of all ranks since their processes started, earlier runs included."""
        return own_peak_bytes() + self._other_ranks().memory_bytes


def own_spent() -> tuple[float, float]:
    """CPU seconds of this process since its start, and its peak memory in bytes."""
    return time.process_time(), own_peak_bytes()


def own_peak_bytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
