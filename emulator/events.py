"""What can happen, and in which order when it happens at the same instant.

Ties are broken by `priority`, then by `tie` (the client id, for events of one client), so that the order in
which equal-time events were inserted never decides anything. An upload that completes at the instant of a
drop-out, or of a deadline, has arrived: the interval a visit needs is half-open, like availability.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    priority: ClassVar[int]

    @property
    def tie(self) -> int:
        return 0


@dataclass(frozen=True)
class VisitEnded(Event):
    """Something ends the visit of one client."""

    client: int
    visit: int

    @property
    def tie(self) -> int:
        return self.client


@dataclass(frozen=True)
class VisitDue(VisitEnded):
    """A client's exchange is complete: everything it uploads has arrived."""

    priority: ClassVar[int] = 0


@dataclass(frozen=True)
class ClientDropped(VisitEnded):
    """A client went offline before its visit was complete."""

    priority: ClassVar[int] = 1


@dataclass(frozen=True)
class RoundDeadline(Event):
    """Whatever has not arrived for `round` is abandoned."""

    priority: ClassVar[int] = 2
    round: int


@dataclass(frozen=True)
class RoundOpened(Event):
    """The trace advances, clients report, the clusterer decides."""

    priority: ClassVar[int] = 3
    round: int


@dataclass(frozen=True)
class DispatchDue(Event):
    """The reports of `round` are in: participants are picked and sent out."""

    priority: ClassVar[int] = 4
    round: int
