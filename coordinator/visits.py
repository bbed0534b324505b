"""Which visits are out, which ended how and when: applies the pacing to arrivals.

Knows clients, lanes and instants; no task, no model and no event.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.federation import EndedVisits, SentOut
from coordinator.pacing import Pacing
from emulator.arrays import NO_IDS, Bools, Floats, Ints
from emulator.errors import RunError
from emulator.in_flight import VisitEnds
from emulator.messages import Outcome
from emulator.storage.stateful import Stateful


@dataclass(frozen=True)
class VisitCounts:
    """Visits of a run up to now; `opened` is the sum of the others."""

    opened: int
    completed: int
    dropped: int
    abandoned: int
    out: int

    def __str__(self) -> str:
        return (
            f"{self.opened} visits opened, of which {self.completed} completed, {self.dropped} dropped, "
            f"{self.abandoned} abandoned and {self.out} out"
        )


class Visits(Stateful):
    """The visits since the last server step, in columns, and how many there were before them by outcome.

    Visit ids run through the whole run, so that the end of a visit that was abandoned is recognised as such.
    """

    state_fields = (
        *("_first", "_client", "_lane", "_end_s", "_outcome", "_handed_over"),
        *("_sizes", "_quota", "_start_s", "_awaits_deadline"),
    )

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self._first = 0  # the id of the first row
        self._client: Ints = NO_IDS
        self._lane: Ints = NO_IDS
        self._end_s: Floats = np.zeros(0)
        self._outcome: Ints = NO_IDS
        self._handed_over: Ints = np.zeros(len(Outcome), dtype=np.int64)  # visits, by outcome
        self._sizes: Ints = NO_IDS  # (lanes,)
        self._quota: Ints = NO_IDS  # (lanes,)
        self._start_s = 0.0
        self._awaits_deadline = False

    def __len__(self) -> int:
        return len(self._client)

    @property
    def opened(self) -> int:
        """Visits opened up to now: the id of the next one."""
        return self._first + len(self)

    @property
    def counts(self) -> VisitCounts:
        """Of the whole run."""
        of = self._handed_over + np.bincount(self._outcome, minlength=len(Outcome))
        return VisitCounts(
            opened=self.opened,
            completed=int(of[Outcome.ABSORBED]),
            dropped=int(of[Outcome.DROPPED]),
            abandoned=int(of[Outcome.ABANDONED]),
            out=int(of[Outcome.OUT]),
        )

    def plan(self, sizes: Ints, quota: Ints) -> None:
        """The next visits will be opened in lanes of `sizes` clients, (lanes,), to fill `quota`."""
        self._sizes, self._quota = sizes, quota

    def open(self, sent: SentOut, now_s: float) -> float | None:
        """These visits are out from `now_s` on. Returns the instant at which the pacing has to be asked
        again, or None.
        """
        self._client, self._lane = sent.clients, sent.lanes
        self._end_s = np.full(len(self), np.nan)
        self._outcome = np.full(len(self), Outcome.OUT, dtype=np.int64)
        self._start_s = now_s
        deadline_s = self._pacing.deadline_s
        self._awaits_deadline = deadline_s is not None
        return None if deadline_s is None else now_s + deadline_s

    def end(self, ends: VisitEnds) -> tuple[int, float | None]:
        """Visits end, in order: how many of `ends` were looked at, and the instant of a server step, if there
        is one; what comes after that is not looked at.

        Ends of visits that are over count for nothing. As soon as a lane is full, what is out in it is
        abandoned, if the pacing cancels.
        """
        row = ends.visit - self._first
        known = np.flatnonzero((row >= 0) & (row < len(self)))
        place = known[self._outcome[row[known]] == Outcome.OUT]
        rows, time_s, count = row[place], ends.time_s[place], len(place)
        if count == 0:
            return len(ends), None
        ending = self._lane[rows][:, None] == np.arange(len(self._quota))  # (ends, lanes)
        arriving = ending & ~ends.dropped[place][:, None]
        elapsed_s = self._elapsed_s(time_s)[:, None]
        closes = self._closes(ending, arriving, elapsed_s)
        number = np.arange(count)[:, None]
        step = self._first_step(
            np.where(number < closes, self.out() - np.cumsum(ending, axis=0), 0),
            self.back() + np.cumsum(arriving & (number <= closes), axis=0),
            elapsed_s,
        )
        own = np.full(len(self), count)
        own[rows] = np.arange(count)
        over = np.minimum(
            own, closes[self._lane]
        )  # by which of these ends each visit is over; `count`: by none
        last = count - 1 if step is None else step
        ended = np.flatnonzero((self._outcome == Outcome.OUT) & (over <= last))
        self._end_s[ended] = time_s[over[ended]]
        self._outcome[ended] = np.where(
            own[ended] > over[ended],
            Outcome.ABANDONED,
            np.where(ends.dropped[place][over[ended]], Outcome.DROPPED, Outcome.ABSORBED),
        )
        if step is not None:
            return int(place[step]) + 1, float(time_s[step])
        self._refuse_another_dispatch()
        return len(ends), None

    def deadline_passed(self, now_s: float) -> bool:
        """The pacing is asked again, at its `deadline_s`. Whether there is a server step now."""
        self._awaits_deadline = False
        elapsed_s = self._elapsed_s(np.array([now_s]))
        if self._pacing.cancels:
            full = self._pacing.full(self._quota, self.out(), self.back(), elapsed_s)
            left = (self._outcome == Outcome.OUT) & full[self._lane]
            self._outcome[left], self._end_s[left] = Outcome.ABANDONED, now_s
        if self._first_step(self.out()[None], self.back()[None], elapsed_s[None]) is not None:
            return True
        self._refuse_another_dispatch()
        return False

    def close(self, now_s: float) -> EndedVisits:
        """Hand over the visits of this server step, which have all ended; they are not known any more.

        RunError if the pacing leaves visits out, or the round open.
        """
        if Outcome.OUT in self._outcome:
            raise RunError(
                f"{self._named} makes a server step while {self.out().sum()} visits are out{ONE_STEP}"
            )
        ended = EndedVisits(self._first + np.arange(len(self)), self._client, self._end_s, self._outcome)
        absorbed = len(ended.clients_with(Outcome.ABSORBED))
        if not self._pacing.closes(absorbed, float(self._elapsed_s(np.array([now_s]))[0])):
            raise RunError(f"{self._named} leaves the round open after its server step{ONE_STEP}")
        self._handed_over = self._handed_over + np.bincount(self._outcome, minlength=len(Outcome))
        self._first = self.opened
        self._client, self._lane, self._end_s, self._outcome = NO_IDS, NO_IDS, np.zeros(0), NO_IDS
        return ended

    def out(self) -> Ints:
        """(lanes,) visits that are out."""
        return self._in_lanes(Outcome.OUT)

    def back(self) -> Ints:
        """(lanes,) visits that have returned."""
        return self._in_lanes(Outcome.ABSORBED)

    def _in_lanes(self, outcome: Outcome) -> Ints:
        counts: Ints = np.bincount(self._lane[self._outcome == outcome], minlength=len(self._quota))
        return counts

    def _elapsed_s(self, time_s: Floats) -> Floats:
        """Virtual seconds since these visits were sent out, at `time_s` (n,)."""
        elapsed_s, deadline_s = time_s - self._start_s, self._pacing.deadline_s
        if deadline_s is None:
            return elapsed_s
        # What ends at the very instant of the deadline has ended before it, whatever the difference is
        # rounded to.
        if self._awaits_deadline:
            return np.minimum(elapsed_s, np.nextafter(deadline_s, 0))
        return np.maximum(elapsed_s, deadline_s)

    def _closes(self, ending: Bools, arriving: Bools, elapsed_s: Floats) -> Ints:
        """(lanes,) which of n ends closes each lane, n: none of them.

        `ending` (n, lanes) is the lane of each visit that ends, `arriving` leaves out those that drop out.
        """
        count, num_lanes = ending.shape
        none = np.full(num_lanes, count)
        if not self._pacing.cancels:
            return none
        out, back, has_visits = self.out(), self.back(), self.out() > 0
        number, found = np.arange(count)[:, None], none
        # When a lane closes can change when others do, but only later ones. With each pass the earliest
        # closing that was wrong comes later, so that this ends whatever rule `full` is.
        while True:
            left = np.where(number <= found, out - np.cumsum(ending, axis=0), 0)
            came = back + np.cumsum(arriving & (number <= found), axis=0)
            full = self._pacing.full(self._quota, left, came, elapsed_s) & has_visits
            closes = np.where(full.any(axis=0), full.argmax(axis=0), count)
            if (closes == found).all():
                return found
            found = closes

    def _first_step(self, out: Ints, back: Ints, elapsed_s: Floats) -> int | None:
        """Which of the rows is the first at which the pacing makes a server step.

        RunError if it would make one for some lanes alone, or if it waits for visits when none is out.
        """
        lanes = np.unique(self._lane)  # those that have visits
        absorbs = np.broadcast_to(self._pacing.absorbs(self._quota, out, back, elapsed_s), out.shape)[
            :, lanes
        ]
        some = absorbs.any(axis=1)
        first = int(some.argmax()) if some.any() else None
        if first is not None and not absorbs[first].all():
            lane = int(lanes[absorbs[first].argmax()])
            raise RunError(f"{self._named} makes a server step for lane {lane}, and not for all{ONE_STEP}")
        if first is None and not out[-1].any() and not self._awaits_deadline:
            raise RunError(f"{self._named} makes no server step, and none of its visits is out any more")
        return first

    def _refuse_another_dispatch(self) -> None:
        out, back = self.out(), self.back()
        # With nothing out or back it would be asked as if the round began.
        if out.any() or back.any():
            more = int(self._pacing.opens(self._quota, self._sizes, out, back).sum())
            if more > 0:
                raise RunError(f"{self._named} opens {more} visits more in the same round{ONE_STEP}")

    @property
    def _named(self) -> str:
        return f"the pacing {self._pacing.name}"


ONE_STEP = ", and this version has one dispatch and one server step a round"
