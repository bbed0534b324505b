"""Virtual time: its clock, and the events to come, in a heap with a total order (time, priority, sequence).

Nothing here, or anywhere else in the kernel, reads the wall clock.
"""

from __future__ import annotations

import heapq
import math

from emulator.events import EVENTS, Event
from emulator.storage.state_tree import Tree


class VirtualClock:
    """Seconds since the emulation began; only `Emulation` moves it, and only forward."""

    def __init__(self) -> None:
        self._now_s = 0.0

    @property
    def now_s(self) -> float:
        return self._now_s

    def advance_to(self, time_s: float) -> None:
        """Set the clock to `time_s`; ValueError unless it is finite and not before now."""
        if not math.isfinite(time_s) or time_s < self._now_s:
            raise ValueError(f"time_s ({time_s}) must be finite and not before now ({self._now_s})")
        self._now_s = time_s


class EventQueue:
    """Events by time; at one instant by priority, then by `sequence`, the order of insertion."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Event]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_s(self) -> float:
        """Time of the earliest event; inf if there is none."""
        return self._heap[0][0] if self._heap else math.inf

    def push(self, time_s: float, event: Event) -> None:
        """Schedule `event` at the absolute virtual time `time_s`; ValueError unless it is finite."""
        if not math.isfinite(time_s):
            raise ValueError(f"time_s ({time_s}) of {event} must be finite")
        heapq.heappush(self._heap, (time_s, event.priority, self._sequence, event))
        self._sequence += 1

    def state(self) -> list[Tree]:
        """The next sequence number, then every event with its key, in order."""
        entries = sorted(self._heap, key=lambda entry: entry[:3])
        return [self._sequence, *([*key, type(event).__name__, vars(event)] for *key, event in entries)]

    def restore(self, state: list[Tree]) -> None:
        """Resume from `state`; ValueError if it is not the state of a queue."""
        try:
            self._sequence, *entries = state
            self._heap = [
                (time_s, priority, sequence, EVENTS[name](**fields))
                for time_s, priority, sequence, name, fields in entries
            ]
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an event: {error}") from error
        heapq.heapify(self._heap)

    def pop(self) -> tuple[float, Event]:
        """Remove and return the earliest event and its time; IndexError if there is none."""
        time_s, _, _, event = heapq.heappop(self._heap)
        return time_s, event
