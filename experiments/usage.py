"""What the processes of a run spend: CPU time and memory, of the coordinator and of its workers.

This process is measured by the standard library, whose CPU time is exact and whose peak of memory misses
nothing. psutil is for the workers: it counts CPU time in ticks of 10 ms, and knows only the present memory.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil

LOOK_EVERY_S = 0.25
"""Wall seconds between two looks at the workers; one takes 15 microseconds for each of them."""


@dataclass
class _Worker:
    """A worker process, and the CPU seconds it had spent when it was first and when it was last looked at."""

    process: psutil.Process
    first_s: float
    latest_s: float


class Usage:
    """What is spent from now on. `pids` are the workers that are there on this machine, whenever it is asked.

    What a worker that is lost has spent counts up to the last look.
    """

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._first_s = time.process_time()
        self._workers: dict[int, _Worker] = {}
        self._workers_bytes = 0.0  # the most that all had together at one look
        self._looked_s = 0.0
        self.look()
        for worker in self._workers.values():  # what they spent on earlier runs is not this one's
            worker.first_s = worker.latest_s

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all processes."""
        own_s = time.process_time() - self._first_s
        return own_s + sum(worker.latest_s - worker.first_s for worker in self._workers.values())

    @property
    def peak_memory_bytes(self) -> float:
        """The most that this process has held so far, in earlier runs too, and its workers at one look.

        Memory that processes share counts in each of them.
        """
        return _own_peak_bytes() + self._workers_bytes

    def look_now_and_then(self) -> None:
        """To be called often: looks at the workers when the last look is a while ago."""
        if time.perf_counter() - self._looked_s >= LOOK_EVERY_S:
            self.look()

    def look(self) -> None:
        """Look at the workers."""
        self._looked_s, memory_bytes = time.perf_counter(), 0.0
        for pid in self._pids():
            with suppress(psutil.NoSuchProcess):  # it is lost, and its place not yet taken
                worker = self._workers.get(pid) or _Worker(psutil.Process(pid), 0.0, 0.0)
                spent = worker.process.cpu_times()
                worker.latest_s = spent.user + spent.system
                memory_bytes += worker.process.memory_info().rss
                self._workers[pid] = worker
        self._workers_bytes = max(self._workers_bytes, memory_bytes)


def _own_peak_bytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
