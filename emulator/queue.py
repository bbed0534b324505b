"""The event queue: a heap whose keys are a total order, (time, priority, sequence)."""

from __future__ import annotations

import heapq
import math

from emulator.events import EVENTS, Event
from emulator.storage.state_tree import Tree


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

    def state(self) -> list[Tree]:
        """Every event with its key, in order."""
        entries = sorted(self._heap, key=lambda entry: entry[:3])
        return [self._sequence, *([*key, type(event).__name__, vars(event)] for *key, event in entries)]

    def restore(self, state: list[Tree]) -> None:
        """Go on from such a state; ValueError where it is none."""
        try:
            self._sequence, *entries = state
            self._heap = [
                (time_s, priority, sequence, EVENTS[name](**fields))
                for time_s, priority, sequence, name, fields in entries
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"no event: {error}") from error
        heapq.heapify(self._heap)

    def pop(self) -> tuple[float, Event]:
        """The time and event that come first; IndexError when there is none."""
        time_s, _, _, event = heapq.heappop(self._heap)
        return time_s, event
