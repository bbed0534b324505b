"""The visits of a round: which are out, and how and when the others ended, as the pacing decides.

Knows clients, lanes and instants; must not know tasks, models or events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from coordinator.closings import Batch, closed_alone, closed_together, sums_after
from coordinator.federation import SentOut
from coordinator.pacing import Pacing
from emulator.arrays import NO_IDS, Bools, Floats, Ints
from emulator.errors import RunError
from emulator.in_flight import VisitEnds
from emulator.messages import ABANDONED, COMPLETED, DROPPED, OUT, EndedVisits, Outcome
from emulator.storage.stateful import Stateful

OUTCOMES = len(Outcome)

ONE_STEP = "; this version has one dispatch and one server step per round"


@dataclass(frozen=True)
class VisitCounts:
    """Numbers of visits of a run up to now; `opened` is the sum of the others."""

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
    """The visits since the last server step, in columns, and the counts of earlier visits by outcome.

    Visit ids are unique in a run, so that the end of a visit that was abandoned earlier is recognised.
    """

    state_fields = (
        *("_first", "_client", "_lanes", "_end_s", "_outcome", "_handed_over"),
        *("_lane_sizes", "_quota", "_opened_lanes", "_start_s", "_awaits_deadline"),
    )

    def __init__(self, pacing: Pacing, *, is_reference: bool = False) -> None:
        """Visits at the pace of `pacing`, whose declarations (`Pacing.sees`) the reference does not use."""
        self._pacing = pacing
        # `Pacing.opens` itself opens no further visits while a visit is out or back; an override may.
        self._may_open_more = getattr(pacing.opens, "__func__", None) is not Pacing.opens
        self._full_sees = pacing.sees("full")
        sees = (self._full_sees, pacing.sees("absorbs"))
        self._sees_sums = not ("lanes" in sees or self._may_open_more or is_reference)
        self._first = 0  # the id of the first row
        self._client: Ints = NO_IDS
        self._lanes: Ints = NO_IDS
        self._end_s: Floats = np.zeros(0)
        self._outcome: Ints = NO_IDS
        self._handed_over: Ints = np.zeros(OUTCOMES, dtype=np.int64)  # numbers of earlier visits, by outcome
        self._lane_sizes: Ints = NO_IDS  # (lanes,)
        self._quota: Ints = NO_IDS  # (lanes,)
        self._opened_lanes: Ints = NO_IDS  # the lanes in which visits were opened
        self._start_s = 0.0
        self._awaits_deadline = False

    def __len__(self) -> int:
        return len(self._client)

    @property
    def opened(self) -> int:
        """The number of visits opened up to now, which is the id of the next one."""
        return self._first + len(self)

    @property
    def counts(self) -> VisitCounts:
        """The visits of the whole run up to now, by outcome."""
        number = (self._handed_over + np.bincount(self._outcome, minlength=OUTCOMES)).tolist()
        return VisitCounts(self.opened, number[COMPLETED], number[DROPPED], number[ABANDONED], number[OUT])

    def plan(self, sizes: Ints, quota: Ints) -> None:
        """Set the `quota` (lanes,) of the next visits, and the `sizes` (lanes,) of the lanes, in clients."""
        self._lane_sizes, self._quota = sizes, quota

    def open(self, sent: SentOut, now_s: float) -> float | None:
        """Begin the visits of `sent` at `now_s`; returns the instant of the pacing's deadline, or None."""
        self._client, self._lanes = sent.clients, sent.lanes
        self._opened_lanes = np.bincount(sent.lanes, minlength=len(self._quota)).nonzero()[0]
        self._end_s = np.zeros(len(sent.clients)) + np.nan
        self._outcome = np.zeros(len(sent.clients), dtype=np.int64) + OUT
        self._start_s = now_s
        deadline_s = self._pacing.deadline_s
        self._awaits_deadline = deadline_s is not None
        return None if deadline_s is None else now_s + deadline_s

    def end(self, ends: VisitEnds) -> tuple[int, float | None]:
        """Process `ends` in order, up to the first after which there is a server step.

        Returns the number of ends processed, and the instant of the server step, or None if there is none.
        Ends of visits that are over already are ignored. As soon as a lane is full, its visits that are still
        out are abandoned, if the pacing cancels. Raises RunError if the pacing violates its protocol.
        """
        row = ends.visit - self._first
        index = ((row >= 0) & (row < len(self))).nonzero()[0]
        index = index[self._outcome[row[index]] == OUT]
        rows, time_s, dropped, count = row[index], ends.time_s[index], ends.dropped[index], len(index)
        if count == 0:
            return len(ends), None
        out, back = self.out_and_back()
        batch = Batch(self._lanes[rows], ~dropped, self._elapsed_s(time_s), self._quota, out, back)
        closes, step = self._by_sums(batch) if self._sees_sums else self._by_lanes(batch)
        last = count - 1 if step is None else step

        # For each visit, the index of its own end, and of the end at which it is over: its own, or an earlier
        # one that fills its lane. `count`: at none of these ends.
        own_end = np.full(len(self), count)
        own_end[rows] = np.arange(count)
        over = np.minimum(own_end, closes[self._lanes])
        ended = ((self._outcome == OUT) & (over <= last)).nonzero()[0]
        ends_at = over[ended]
        self._end_s[ended] = time_s[ends_at]
        outcome = np.where(dropped[ends_at], DROPPED, COMPLETED)
        self._outcome[ended] = np.where(own_end[ended] > ends_at, ABANDONED, outcome)
        if step is not None:
            return int(index[step]) + 1, float(time_s[step])
        return len(ends), None

    def _by_sums(self, batch: Batch) -> tuple[Ints, int | None]:
        """What `_by_lanes` returns, for a pacing that declares what its rules look at."""
        closes: Ints = np.full(len(batch.out), len(batch))
        if self._pacing.cancels:
            close = closed_alone if self._full_sees == "lane" else closed_together
            closes = close(batch, partial(self._flags, "full"))
        counted = np.arange(len(batch)) <= closes[batch.lane]
        left, arrived = sums_after(batch, closes, counted)
        evaluated = counted.nonzero()[0]
        step = self._first_step(
            left[evaluated, None], arrived[evaluated, None], batch.elapsed_s[evaluated, None], summed=True
        )
        return closes, None if step is None else int(evaluated[step])

    def _by_lanes(self, batch: Batch) -> tuple[Ints, int | None]:
        """When each lane is full, and the first end of the batch after which there is a server step.

        Returns (lanes,) indices of ends, or their number: full at none of them; and the step's, or None.

        The reference for any rules: they are evaluated for all lanes at all ends, over (ends, lanes).
        """
        count, out, back = len(batch), batch.out, batch.back
        number, elapsed_s = np.arange(count)[:, None], batch.elapsed_s[:, None]
        ending = batch.lane[:, None] == np.arange(len(out))  # (ends, lanes)
        arriving = ending & batch.arrives[:, None]
        left = out - ending.cumsum(axis=0)  # as if no lane closed
        closes = self._closes(batch.lane, out, left, back, arriving, elapsed_s)
        left[number >= closes] = 0
        arrived = back + (arriving & (number <= closes)).cumsum(axis=0)
        # The pacing is not evaluated at the end of a visit that was abandoned before.
        evaluated = (number[:, 0] <= closes[batch.lane]).nonzero()[0]
        step = self._first_step(left[evaluated], arrived[evaluated], elapsed_s[evaluated])
        if self._may_open_more:
            for row in evaluated[:step]:
                self._refuse_another_dispatch(left[row], arrived[row])
        return closes, None if step is None else int(evaluated[step])

    def deadline_passed(self, now_s: float) -> bool:
        """Evaluate the pacing at its `deadline_s`; returns whether there is a server step now.

        If the pacing cancels, visits that are out in lanes that are full now are abandoned.
        """
        self._awaits_deadline = False
        elapsed_s = self._elapsed_s(np.array([now_s]))
        if self._pacing.cancels:
            out, back = self.out_and_back()
            full = self._flags("full", self._quota, out[None], back[None], elapsed_s[None])
            left = (self._outcome == OUT) & np.broadcast_to(full, (1, len(out)))[0, self._lanes]
            self._outcome[left], self._end_s[left] = ABANDONED, now_s
        out, back = self.out_and_back()
        if self._first_step(out[None], back[None], elapsed_s[None]) is not None:
            return True
        if self._may_open_more:
            self._refuse_another_dispatch(out, back)
        return False

    def close(self, now_s: float) -> EndedVisits:
        """Remove and return the visits of this server step, all of which have ended.

        Raises RunError if the pacing leaves visits out, or does not close the round.
        """
        counts = np.bincount(self._outcome, minlength=OUTCOMES)
        if counts[OUT] > 0:
            raise RunError(
                f"{self._pacing_name} makes a server step while {counts[OUT]} visits are out{ONE_STEP}"
            )
        if not self._pacing.closes(int(counts[COMPLETED]), float(self._elapsed_s(np.array(now_s)))):
            raise RunError(f"{self._pacing_name} leaves the round open after its server step{ONE_STEP}")
        ended = EndedVisits(
            self._first + np.arange(len(self)),
            self._client,
            self._lanes,
            np.zeros(len(self)) + self._start_s,
            self._end_s,
            self._outcome,
            np.zeros(len(self), dtype=np.int64),
        )
        self._handed_over = self._handed_over + counts
        self._first = self.opened
        self._client, self._lanes, self._end_s, self._outcome = NO_IDS, NO_IDS, np.zeros(0), NO_IDS
        return ended

    def out_and_back(self) -> tuple[Ints, Ints]:
        """(lanes,) numbers of visits that are out, and (lanes,) of visits that have returned."""
        num_lanes = len(self._quota)
        cells = np.bincount(self._outcome * num_lanes + self._lanes, minlength=OUTCOMES * num_lanes)
        counts = cells.reshape(OUTCOMES, num_lanes)
        return counts[OUT], counts[COMPLETED]

    def _elapsed_s(self, time_s: Floats) -> Floats:
        """(n,) virtual seconds from dispatch to `time_s` (n,).

        Below `deadline_s` until the deadline has been evaluated, and not below it from then on.
        """
        elapsed_s, deadline_s = time_s - self._start_s, self._pacing.deadline_s
        if deadline_s is None:
            return elapsed_s
        # A visit that ends at exactly the deadline has ended before it, even if the difference rounds up.
        if self._awaits_deadline:
            return np.minimum(elapsed_s, np.nextafter(deadline_s, 0))
        return np.maximum(elapsed_s, deadline_s)

    def _closes(
        self, lanes: Ints, out: Ints, left: Ints, back: Ints, arriving: Bools, elapsed_s: Floats
    ) -> Ints:
        """(lanes,) the index, among n ends, of the end at which each lane is full; n: at none of them.

        `lanes` (n,) is the lane of each end's visit. `out` and `back` (lanes,) are the counts before the
        first end. `left` (n, lanes) are the visits still out after each end, as if no lane closed; `arriving`
        (n, lanes) marks the lane of each returning visit.
        """
        count, num_lanes = arriving.shape
        assumed = np.full(num_lanes, count)
        if not self._pacing.cancels:
            return assumed
        number = np.arange(count)[:, None]
        has_visits = out > 0
        # The closing of a lane can affect the closing of others, but only of later ones. With each pass the
        # earliest wrong closing moves later, so that the loop terminates for any rule `full`.
        while True:
            counted = number <= assumed
            arrived = back + (arriving & counted).cumsum(axis=0)
            full = self._flags("full", self._quota, left * counted, arrived, elapsed_s) & has_visits
            if assumed.min() < count:  # not evaluated at ends of visits that were abandoned
                full &= number <= assumed[lanes][:, None]
            closes: Ints = np.where(full.any(axis=0), full.argmax(axis=0), count)
            # NOTE: a single lane is not affected by others; skipping the second pass halves the time.
            if len(self._opened_lanes) == 1 or (closes == assumed).all():
                return closes
            assumed = closes

    def _flags(
        self, rule: Literal["full", "absorbs"], quota: Ints, out: Ints, back: Ints, elapsed_s: Floats
    ) -> Bools:
        """The value of a rule of the pacing; RunError unless it is a bool per row, or per row and lane."""
        flags: Bools = getattr(self._pacing, rule)(quota, out, back, elapsed_s)
        rows, lanes = out.shape
        if getattr(flags, "dtype", None) != np.bool_ or flags.shape not in ((rows, lanes), (rows, 1)):
            raise RunError(
                f"{self._pacing_name}: {rule} must return bools of shape ({rows}, {lanes}) or ({rows}, 1), "
                f"for {rows} instants and {lanes} lanes, and returned {flags!r}"
            )
        return flags

    def _first_step(self, out: Ints, back: Ints, elapsed_s: Floats, *, summed: bool = False) -> int | None:
        """The first instant, a row of `out`, at which the pacing makes a server step; None if it makes none.

        If `summed`, `out` and `back` have one column, the sums over all lanes. Raises RunError if it would
        make one for some lanes only, or if it waits although no visit is out.
        """
        quota = self._quota.sum()[None] if summed else self._quota
        absorbs = self._flags("absorbs", quota, out, back, elapsed_s)
        if absorbs.shape[1] > 1:  # with one column, all lanes are alike
            absorbs = absorbs[:, self._opened_lanes]
        steps = absorbs.any(axis=1)
        first = int(steps.argmax()) if steps.any() else None
        if first is not None and not absorbs[first].all():
            lane = int(self._opened_lanes[absorbs[first].argmax()])
            raise RunError(
                f"{self._pacing_name} makes a server step for lane {lane}, but not for all lanes{ONE_STEP}"
            )
        if first is None and not out[-1].any() and not self._awaits_deadline:
            raise RunError(
                f"{self._pacing_name} makes no server step, and none of its visits is out any more"
            )
        return first

    def _refuse_another_dispatch(self, out: Ints, back: Ints) -> None:
        more = int(self._pacing.opens(self._quota, self._lane_sizes, out, back).sum())
        # With no visit out or back, the arguments are those of the beginning of a round.
        if more > 0 and (out.any() or back.any()):
            raise RunError(f"{self._pacing_name} opens {more} more visits in the same round{ONE_STEP}")

    @property
    def _pacing_name(self) -> str:
        return f"the pacing {self._pacing.name}"
