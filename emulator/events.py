"""What can happen besides the end of visits, and in which order when it happens at the same instant.

Visits end before anything else of the same instant (see `emulator.in_flight`), so an upload that completes at
the instant of a deadline has arrived: the interval a visit needs is half-open, like availability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    priority: ClassVar[int]


@dataclass(frozen=True)
class RoundDeadline(Event):
    """The pacing is asked again about `round`, though no visit ends."""

    priority: ClassVar[int] = 0
    round: int


@dataclass(frozen=True)
class RoundOpened(Event):
    """The trace advances, clients report, the clusterer decides."""

    priority: ClassVar[int] = 1
    round: int


@dataclass(frozen=True)
class DispatchDue(Event):
    """The reports of `round` are in: participants are picked."""

    priority: ClassVar[int] = 2
    round: int


@dataclass(frozen=True)
class CohortDue(Event):
    """The requests of `round`'s selector are answered: the visits of those picked begin."""

    priority: ClassVar[int] = 3
    round: int


EVENTS: Mapping[str, type[Event]] = {
    kind.__name__: kind for kind in (RoundDeadline, RoundOpened, DispatchDue, CohortDue)
}
"""Those that can be stored, by name."""
