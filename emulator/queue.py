"""The event queue: a heap whose keys are a total order, (time, priority, sequence)."""

from __future__ import annotations

import heapq
import math

from emulator.events import Event


class EventQueue:
    """Pops the earliest event; `sequence` (insertion) only separates events that are equal in all else."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Event]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_s(self) -> float:
        """When the first event comes; inf when there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def push(self, time_s: float, event: Event) -> None:
        """Schedule `event` at the absolute virtual time `time_s`, which must be finite."""
        if not math.isfinite(time_s):
            raise ValueError(f"time_s ({time_s}) of {event} must be finite")
        heapq.heappush(self._heap, (time_s, event.priority, self._sequence, event))
        self._sequence += 1

    def pop(self) -> tuple[float, Event]:
        """The time and event that come first; IndexError when there is none."""
        time_s, _, _, event = heapq.heappop(self._heap)
        return time_s, event
