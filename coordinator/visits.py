"""The visits of a run: which are out, or back and not absorbed, and how the others ended, by the pacing.

Knows clients, lanes and instants; must not know tasks, models or events.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful
from emulator.table import Table

OUTCOMES = len(Outcome)

FEWEST_TOGETHER = 32
"""Ends of visits that are evaluated together at first, besides as many as the last dispatch sent out.

After one of them there may be a server step or a slot to fill, and then what was computed for later ones is
lost. Each further part is four times the last one.
"""

WHOLE = (
    "; a pacing whose rounds are not one dispatch and one server step, which takes all visits, must declare "
    "whole_rounds = False"
)


@dataclass(frozen=True)
class VisitCounts:
    """Numbers of visits of a run up to now; `opened` is the sum of the others."""

    opened: int
    completed: int  # and absorbed
    waiting: int  # back, for the server step that absorbs them
    dropped: int
    abandoned: int
    out: int

    def __str__(self) -> str:
        waiting = f", {self.waiting} waiting to be absorbed" if self.waiting else ""
        return (
            f"{self.opened} visits opened, of which {self.completed} completed{waiting}, {self.dropped} "
            f"dropped, {self.abandoned} abandoned and {self.out} out"
        )


@dataclass(frozen=True)
class Due:
    """What the pacing wants at an instant: server steps, or else further visits."""

    at_s: float
    absorbing: Bools  # (lanes,) lanes that make a server step now


class Visits(Stateful):
    """The visits that no server step has taken yet, in columns, and the counts of the others by outcome.

    A server step takes the visits that it absorbs, and all that ended otherwise. Visit ids are unique in a
    run, so that the end of a visit that was abandoned earlier is recognised.
    """

    state_fields = (
        *("_table", "_opened", "_sent", "_taken", "_sizes", "_quota", "_is_planned_anew"),
        *("_start_s", "_awaits_deadline"),
    )

    def __init__(self, pacing: Pacing, num_clients: int, *, is_reference: bool = False) -> None:
        """Visits at the pace of `pacing`, whose declarations (`Pacing.sees`) the reference does not use."""
        self._pacing = pacing
        # `Pacing.opens` itself opens no further visits while a visit is out or back; an override may.
        self._may_open_more = getattr(pacing.opens, "__func__", None) is not Pacing.opens
        self._full_sees = pacing.sees("full")
        sees = (self._full_sees, pacing.sees("absorbs"))
        self._sees_sums = not ("lanes" in sees or self._may_open_more or is_reference)
        self._is_reference = is_reference
        self._table = Table("visit")
        self._opened = 0
        self._sent = 0  # visits of the last dispatch
        self._taken: Ints = np.zeros(OUTCOMES, dtype=np.int64)  # visits that server steps took, by outcome
        self._over: Ints = NO_IDS  # ids of the visits that have ended and are still here
        self._out: Ints = NO_IDS  # (lanes,)
        self._back: Ints = NO_IDS  # (lanes,)
        self._held: Ints = NO_IDS  # (lanes,) visits that are still here, however they ended
        self._sizes: Ints = NO_IDS  # (lanes,)
        self._quota: Ints = NO_IDS  # (lanes,)
        self._is_planned_anew = False
        self._start_s = 0.0  # of the round's first dispatch
        self._awaits_deadline = False
        self._busy: Bools = np.zeros(num_clients, dtype=bool)

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`, in a table without visits; counts by lane, and who is busy, follow from it."""
        super().restore(state)
        self._count()
        if self._table.count > 0:
            columns, outcome = self._table.columns, self._table.columns["outcome"]
            self._over = columns["visit"][outcome != OUT]
            self._busy[columns["client"][(outcome == OUT) | (outcome == COMPLETED)]] = True

    @property
    def count(self) -> int:
        """The number of visits that no server step has taken."""
        return self._table.count

    @property
    def opened(self) -> int:
        """The number of visits opened up to now, which is the id of the next one."""
        return self._opened

    @property
    def in_flight(self) -> int:
        """The number of visits that are out, or back and not absorbed."""
        return int(self._out.sum() + self._back.sum())

    @property
    def is_out(self) -> bool:
        """Whether a visit is out."""
        return bool(self._out.any())

    @property
    def busy(self) -> Bools:
        """(N,) whether a client has a visit that is out, or back and not absorbed."""
        return self._busy

    @property
    def clients_out(self) -> Ints:
        """(n,) the clients whose visits are out, in the order of their dispatch."""
        if self._table.count == 0:
            return NO_IDS
        columns, rows = self._table.columns, self._table.rows
        clients: Ints = columns["client"][rows[columns["outcome"][rows] == OUT]]
        return clients

    @property
    def counts(self) -> VisitCounts:
        """The visits of the whole run up to now, by outcome."""
        here = np.zeros(OUTCOMES, dtype=np.int64)
        if self._table.count > 0:
            here = np.bincount(self._table.columns["outcome"][self._table.rows], minlength=OUTCOMES)
        ended = (self._taken + here).tolist()
        return VisitCounts(
            self._opened,
            int(self._taken[COMPLETED]),
            int(here[COMPLETED]),
            ended[DROPPED],
            ended[ABANDONED],
            int(here[OUT]),
        )

    def plan(self, sizes: Ints, quota: Ints) -> None:
        """Set the `quota` (lanes,), and the `sizes` (lanes,) of the lanes, in clients."""
        if sizes is self._sizes:
            return
        if self._back.any() and not np.array_equal(quota, self._quota):
            self._is_planned_anew = True
        self._sizes, self._quota = sizes, quota
        if len(self._out) != len(sizes):
            self._count()

    @property
    def sizes(self) -> Ints:
        """(lanes,) the sizes of the lanes that the present quota is for."""
        return self._sizes

    def wanted(self) -> Ints:
        """(lanes,) the number of visits that the pacing opens now."""
        wanted: Ints = self._opens(self._out[None], self._back[None])[0]
        return wanted

    def begin_round(self, now_s: float) -> float | None:
        """Count a round's time from now on; returns the instant of the pacing's deadline, or None."""
        self._start_s = now_s
        deadline_s = self._pacing.deadline_s
        self._awaits_deadline = deadline_s is not None
        return None if deadline_s is None else now_s + deadline_s

    def open(self, sent: SentOut, now_s: float) -> None:
        """Begin the visits of `sent` at `now_s`."""
        count = len(sent.clients)
        numbers = np.arange(self._opened, self._opened + count)
        self._table.append(
            {
                "visit": numbers,
                "client": sent.clients,
                "lane": sent.lanes,
                "start_s": np.zeros(count) + now_s,
                "end_s": np.zeros(count) + np.nan,
                "outcome": np.zeros(count, dtype=np.int64) + OUT,
                "staleness": np.zeros(count, dtype=np.int64),
            }
        )
        self._opened, self._sent = self._opened + count, count
        by_lane = np.bincount(sent.lanes, minlength=len(self._out))
        self._out, self._held = self._out + by_lane, self._held + by_lane
        self._busy[sent.clients] = True

    def end(self, ends: VisitEnds, *, may_open: bool = True) -> tuple[int, Due | None]:
        """Process `ends` in order, up to the first after which the pacing wants a server step, or visits.

        Returns the number of ends processed, and what is due at the last of them, or None. Ends of visits
        that are over already are ignored. As soon as a lane is full, its visits that are still out are
        abandoned, if the pacing cancels. Unless it `may_open` visits now, the pacing is not asked for any.
        Raises RunError if the pacing violates its protocol, or waits although no visit is out.
        """
        done, size, total = 0, FEWEST_TOGETHER + self._sent, ends.time_s.size
        while done < total:
            part = ends.part(done, done + size) if done > 0 or size < total else ends
            count, due = self._end(part, may_open)
            done += count
            if due is not None:
                return done, due
            size *= 4
        return total, None

    def _end(self, ends: VisitEnds, may_open: bool) -> tuple[int, Due | None]:
        if self._table.count == 0:
            return ends.time_s.size, None
        columns = self._table.columns
        visit, outcome, lanes = columns["visit"], columns["outcome"], columns["lane"]
        row = np.minimum(visit.searchsorted(ends.visit), visit.size - 1)
        index = ((visit[row] == ends.visit) & (outcome[row] == OUT)).nonzero()[0]
        count = index.size
        if count == 0:
            return ends.time_s.size, None
        rows, time_s, ended = row[index], ends.time_s[index], ends.outcome[index]
        if self._pacing.max_staleness is not None:
            stale = columns["staleness"][rows] > self._pacing.max_staleness
            ended = np.where(stale & (ended == COMPLETED), ABANDONED, ended)
        arrives = ended == COMPLETED
        batch = Batch(lanes[rows], arrives, self._elapsed_s(time_s), self._quota, self._out, self._back)
        # With one lane, its numbers are the sums.
        by_sums = self._sees_sums or (self._out.size == 1 and not self._is_reference)
        closes, due, absorbing = (self._by_sums if by_sums else self._by_lanes)(batch, may_open)
        last = count - 1 if due is None else due
        # Visits whose lane was full before they ended have been abandoned.
        counted = (np.arange(last + 1) <= closes[batch.lane[: last + 1]]).nonzero()[0]
        over, end_s = rows[counted], time_s[counted]
        outcome[over] = ended[counted]
        if self._pacing.cancels:
            closing = closes <= last
            left = ((outcome == OUT) & closing[lanes]).nonzero()[0]
            outcome[left] = ABANDONED
            over = np.concatenate([over, left])
            end_s = np.concatenate([end_s, time_s[closes[lanes[left]]]])
        self._note(over, end_s)
        if due is None:
            return ends.time_s.size, None
        return int(index[due]) + 1, Due(float(time_s[due]), absorbing)

    def _note(self, rows: Ints, end_s: Floats | float) -> None:
        """Count the visits of `rows` (n,), whose outcome is set, as over; they ended at `end_s`."""
        columns, num_lanes = self._table.columns, len(self._out)
        columns["end_s"][rows] = end_s
        lane, completed = columns["lane"][rows], columns["outcome"][rows] == COMPLETED
        self._out = self._out - np.bincount(lane, minlength=num_lanes)
        self._back = self._back + np.bincount(lane[completed], minlength=num_lanes)
        self._busy[columns["client"][rows[~completed]]] = False
        self._over = np.concatenate([self._over, columns["visit"][rows]])

    def _by_sums(self, batch: Batch, may_open: bool) -> tuple[Ints, int | None, Bools]:
        """What `_by_lanes` returns, if the pacing declares what its rules look at, or there is one lane."""
        closes: Ints = np.full(batch.out.size, batch.lane.size)
        if self._pacing.cancels:
            close = closed_alone if self._full_sees == "lane" else closed_together
            closes = close(batch, partial(self._flags, "full"))
        counted = np.arange(batch.lane.size) <= closes[batch.lane]
        left, arrived = sums_after(batch, closes, counted)
        evaluated = counted.nonzero()[0]
        due, absorbing = self._first_due(
            left[evaluated, None],
            arrived[evaluated, None],
            batch.elapsed_s[evaluated, None],
            may_open,
            summed=True,
        )
        return closes, None if due is None else int(evaluated[due]), absorbing

    def _by_lanes(self, batch: Batch, may_open: bool) -> tuple[Ints, int | None, Bools]:
        """When each lane is full, and the first end of the batch after which something is due.

        Returns (lanes,) indices of ends, or their number: full at none of them; the index of the end, or
        None; and (lanes,) which lanes make a server step then.

        The reference for any rules: they are evaluated for all lanes at all ends, over (ends, lanes).
        """
        count, out, back = batch.lane.size, batch.out, batch.back
        number, elapsed_s = np.arange(count)[:, None], batch.elapsed_s[:, None]
        ending = batch.lane[:, None] == np.arange(len(out))  # (ends, lanes)
        arriving = ending & batch.arrives[:, None]
        left = out - ending.cumsum(axis=0)  # as if no lane closed
        closes = self._closes(batch.lane, out, left, back, arriving, elapsed_s)
        left[number >= closes] = 0
        arrived = back + (arriving & (number <= closes)).cumsum(axis=0)
        # The pacing is not evaluated at the end of a visit that was abandoned before.
        evaluated = (number[:, 0] <= closes[batch.lane]).nonzero()[0]
        due, absorbing = self._first_due(left[evaluated], arrived[evaluated], elapsed_s[evaluated], may_open)
        return closes, None if due is None else int(evaluated[due]), absorbing

    def deadline_passed(self, now_s: float, *, may_open: bool = True) -> Due | None:
        """Evaluate the pacing at its `deadline_s`; returns what is due now, or None.

        If the pacing cancels, visits that are out in lanes that are full now are abandoned.
        """
        self._awaits_deadline = False
        elapsed_s = self._elapsed_s(np.array([now_s]))[None]
        if self._pacing.cancels and self._table.count > 0:
            out, back = self._out[None], self._back[None]
            full = np.broadcast_to(self._flags("full", self._quota, out, back, elapsed_s), out.shape)[0]
            columns = self._table.columns
            left = ((columns["outcome"] == OUT) & full[columns["lane"]]).nonzero()[0]
            columns["outcome"][left] = ABANDONED
            self._note(left, now_s)
        due, absorbing = self._first_due(self._out[None], self._back[None], elapsed_s, may_open)
        return None if due is None else Due(now_s, absorbing)

    def refuse_waiting(self) -> None:
        """Raise RunError if the pacing waits although no visit is out, and opens none."""
        if not (self.is_out or self._awaits_deadline or self.wanted().any()):
            raise self._waits()

    def _waits(self) -> RunError:
        return RunError(f"{self._pacing_name} makes no server step, and none of its visits is out any more")

    @property
    def is_planned_anew(self) -> bool:
        """Whether quotas have changed while visits are back, and `absorbing` was not asked since."""
        return self._is_planned_anew

    def absorbing(self, now_s: float) -> Bools:
        """(lanes,) the lanes that make a server step now, although no visit ends."""
        self._is_planned_anew = False
        elapsed_s = self._elapsed_s(np.array([now_s]))[None]
        absorbs = self._flags("absorbs", self._quota, self._out[None], self._back[None], elapsed_s)
        return absorbs.ravel() & (self._held > 0)

    @property
    def fruitless(self) -> int:
        """The number of visits that were lost, while no server step has absorbed one; from then on 0."""
        return 0 if self._taken[COMPLETED] > 0 else self._opened - self.in_flight

    @property
    def all_back(self) -> Bools:
        """(lanes,) whether a lane has visits back, and none out."""
        all_back: Bools = (self._back > 0) & (self._out == 0)
        return all_back

    def take(self, absorbing: Bools) -> EndedVisits:
        """Remove and return the visits of a server step of the lanes `absorbing` (lanes,).

        These are the visits of these lanes that are back, and all that ended otherwise. Each step of its lane
        adds 1 to the staleness of a visit that stays.
        """
        over = self._over
        if len(over) == 0:
            return self._ended(NO_IDS)
        columns, rows = self._table.columns, self._table.find(over)
        waits = (columns["outcome"][rows] == COMPLETED) & ~absorbing[columns["lane"][rows]]
        self._over = over[waits]
        ended = self._ended(rows[~waits])
        self._busy[ended.client[ended.outcome == COMPLETED]] = False
        if self._table.count > 0:
            if self._pacing.whole_rounds:
                raise RunError(
                    f"{self._pacing_name} makes a server step while {self._table.count} visits stay{WHOLE}"
                )
            columns["staleness"][:] += True if absorbing.size == 1 else absorbing[columns["lane"]]
        self._back = np.where(absorbing, 0, self._back)
        self._held = self._out + self._back
        return ended

    def abandon_all(self, now_s: float) -> EndedVisits:
        """Remove and return all visits: those that are out, or back and not absorbed, are abandoned."""
        if self._table.count == 0:
            return self._ended(NO_IDS)
        columns, rows = self._table.columns, self._table.rows
        outcome, end_s = columns["outcome"], columns["end_s"]
        end_s[rows[outcome[rows] == OUT]] = now_s
        outcome[rows[(outcome[rows] == OUT) | (outcome[rows] == COMPLETED)]] = ABANDONED
        ended = self._ended(rows)
        self._busy[ended.client] = False
        self._over, self._out = NO_IDS, self._out * 0
        self._back = self._held = self._out
        return ended

    def _ended(self, rows: Ints) -> EndedVisits:
        """Remove and return the visits of `rows`, by client, then visit."""
        table, columns = self._table, self._table.columns
        if not columns:
            nothing = np.zeros(0)
            return EndedVisits(NO_IDS, NO_IDS, NO_IDS, nothing, nothing, NO_IDS, NO_IDS)
        client = columns["client"][rows]
        if (client[1:] <= client[:-1]).any():
            rows = rows[np.lexsort((columns["visit"][rows], client))]
        ended = EndedVisits(**table.take(rows))
        columns["lane"][rows] = 0  # rows that are removed stay a while, in which there may be fewer lanes
        table.remove(rows)
        self._taken = self._taken + np.bincount(ended.outcome, minlength=OUTCOMES)
        return ended

    def follow(self, visit: Ints, lane: Ints, num_lanes: int, now_s: float) -> None:
        """Move visits, by their ids (n,), to other lanes (n,), of `num_lanes`; -1: no model continues theirs.

        Such a visit is abandoned: if it is out, it ends now.
        """
        if self._table.count == 0:
            return
        columns, rows = self._table.columns, self._table.find(visit)
        columns["lane"][rows] = lane
        outcome = columns["outcome"][rows]
        lost = rows[(lane < 0) & ((outcome == OUT) | (outcome == COMPLETED))]
        out = lost[columns["outcome"][lost] == OUT]
        columns["end_s"][out], columns["outcome"][lost] = now_s, ABANDONED
        self._busy[columns["client"][lost]] = False
        self._over = np.union1d(self._over, columns["visit"][lost])
        self._sizes = self._quota = np.zeros(num_lanes, dtype=np.int64)
        self._count()

    def _count(self) -> None:
        """Count the visits of each lane anew."""
        num_lanes = len(self._sizes)
        self._out = self._back = self._held = np.zeros(num_lanes, dtype=np.int64)
        if self._table.count > 0:
            columns, rows = self._table.columns, self._table.rows
            lane, outcome = columns["lane"][rows], columns["outcome"][rows]
            self._out = np.bincount(lane[outcome == OUT], minlength=num_lanes)
            self._back = np.bincount(lane[outcome == COMPLETED], minlength=num_lanes)
            self._held = np.bincount(lane[lane >= 0], minlength=num_lanes)

    def elapsed_s(self, now_s: float) -> float:
        """Virtual seconds since the round's first dispatch, as the pacing sees them."""
        return float(self._elapsed_s(np.array(now_s)))

    def _elapsed_s(self, time_s: Floats) -> Floats:
        """(n,) virtual seconds from the round's first dispatch to `time_s` (n,).

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
            if np.count_nonzero(self._held) == 1 or (closes == assumed).all():
                return closes
            assumed = closes

    def _flags(
        self, rule: Literal["full", "absorbs"], quota: Ints, out: Ints, back: Ints, elapsed_s: Floats
    ) -> Bools:
        """The value of a rule of the pacing: a bool per row, or per row and lane."""
        flags: Bools = getattr(self._pacing, rule)(quota, out, back, elapsed_s)
        return flags

    def _opens(self, out: Ints, back: Ints) -> Ints:
        """(n, lanes) visits that the pacing opens at n instants."""
        return self._pacing.opens(self._quota, self._sizes, out, back)

    def _first_due(
        self, out: Ints, back: Ints, elapsed_s: Floats, may_open: bool, *, summed: bool = False
    ) -> tuple[int | None, Bools]:
        """The first instant, a row of `out`, at which something is due, and (lanes,) the server steps then.

        If `summed`, `out` and `back` have one column, the sums over all lanes. Raises RunError if nothing is
        due although no visit is out, and visits may be opened.
        """
        quota = self._quota.sum()[None] if summed else self._quota
        # Only of lanes that have sent out visits: the rules say nothing of the others.
        here = (self._held > 0).reshape(1, -1)
        absorbs = self._flags("absorbs", quota, out, back, elapsed_s)
        due = absorbs[:, 0] if absorbs.shape[1] == 1 else (absorbs & here).sum(axis=1) > 0
        # NOTE: for performance reasons: if the first instant has a server step, no other matters.
        if may_open and not due[0]:
            due = due | self._opens_any(out, back)
        first = int(due.argmax())
        if not due[first]:
            if may_open and not (out[-1].any() or self._awaits_deadline):
                raise self._waits()
            return None, here.ravel()
        return first, (absorbs[first : first + 1] & here).ravel()

    def _opens_any(self, out: Ints, back: Ints) -> Bools:
        """(n,) whether the pacing opens visits at each of n instants."""
        if self._may_open_more:
            opens: Bools = self._opens(out, back).sum(axis=1) > 0
        elif self._pacing.whole_rounds:
            opens = np.zeros(len(out), dtype=bool)
        else:
            opens = out.sum(axis=1) + back.sum(axis=1) == 0
        return opens

    @property
    def _pacing_name(self) -> str:
        return f"the pacing {self._pacing.name}"
