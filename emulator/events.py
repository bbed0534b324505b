"""Events other than the ends of visits, and their order at one instant.

Visits end before any event of the same instant (see `emulator.in_flight`), so an upload that completes at the
instant of a deadline has arrived: the interval a visit needs is half-open, like availability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Event:
    """Base of all events; at one instant the lower `priority` comes first."""

    priority: ClassVar[int]


@dataclass(frozen=True)
class RoundDeadline(Event):
    """The deadline of `round`: the pacing is evaluated again although no visit ends."""

    priority: ClassVar[int] = 0
    round: int


@dataclass(frozen=True)
class RunEnds(Event):
    """The virtual time of the run is over: what is in flight is abandoned, and the last round closes."""

    priority: ClassVar[int] = 1


@dataclass(frozen=True)
class RoundOpened(Event):
    """`round` opens: the trace advances, clients report, the clusterer decides."""

    priority: ClassVar[int] = 2
    round: int


@dataclass(frozen=True)
class DispatchDue(Event):
    """The reports of `round`, and the responses to the clusterer, have arrived: participants are selected."""

    priority: ClassVar[int] = 3
    round: int


@dataclass(frozen=True)
class CohortDue(Event):
    """The responses to the selector's requests have arrived: the visits of `round`'s cohort begin."""

    priority: ClassVar[int] = 4
    round: int


@dataclass(frozen=True)
class RefillDue(Event):
    """Slots are free and may be filled: the visits that end at this instant have ended, or a client comes."""

    priority: ClassVar[int] = 5


EVENTS: Mapping[str, type[Event]] = {
    kind.__name__: kind for kind in (RoundDeadline, RunEnds, RoundOpened, DispatchDue, CohortDue, RefillDue)
}
"""Event classes by name, to restore the events of a stored queue."""
