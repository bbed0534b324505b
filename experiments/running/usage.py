"""What the processes of a run spend: CPU time and memory, of this one and of the other ranks."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

from executor.ranks import Spent


class Usage:
    """What is spent from now on. `others` says what the other ranks have spent, whenever it is asked."""

    def __init__(self, other_ranks: Callable[[], Spent] = Spent) -> None:
        self._other_ranks = other_ranks
        self._first_s = time.process_time()
        self._other_ranks_first_s = other_ranks().cpu_s  # what they spent on earlier runs is not this one's

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all ranks."""
        return time.process_time() - self._first_s + self._other_ranks().cpu_s - self._other_ranks_first_s

    @property
    def peak_memory_bytes(self) -> float:
        """The sum of the most that each rank has held so far, in earlier runs too."""
        return own_peak_bytes() + self._other_ranks().memory_bytes


def own_spent() -> tuple[float, float]:
    """CPU seconds of this process, and the most memory that it has held."""
    return time.process_time(), own_peak_bytes()


def own_peak_bytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
