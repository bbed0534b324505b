"""CPU time and peak memory of a run's processes: this one and the other ranks."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

from executor.ranks import Spent


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
