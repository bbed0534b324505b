"""When things happen: a state machine that turns events and ends of visits into further events.

The federation defines what happens: it opens a round, selects and dispatches participants, and aggregates.
This module decides when, by the phase of the round and the pacing. It holds no clock and does no I/O: time
passes only through the events that it schedules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from coordinator.federation import Federation
from coordinator.pacing import Pacing
from coordinator.visits import WHOLE, Due, VisitCounts, Visits
from emulator.arrays import NO_IDS, Bools, Ints
from emulator.errors import RunError
from emulator.events import CohortDue, DispatchDue, Event, RefillDue, RoundDeadline, RoundOpened, RunEnds
from emulator.in_flight import NO_ENDS, VisitEnds
from emulator.messages import COMPLETED, VisitRows
from emulator.ports import Reaction
from emulator.storage.stateful import Stateful

Phase = Literal["opening", "waiting", "reporting", "selecting", "out", "finished"]

FRUITLESS_VISITS = 100
"""Visits for each slot that may be lost, while none is absorbed from the start, before a run is given up."""

WAITS_FOR: Mapping[Phase, str] = {
    "opening": "RoundOpened",
    "waiting": "RoundOpened, again, as too few clients were online",
    "reporting": "DispatchDue",
    "selecting": "CohortDue",
    "out": "the ends of its visits",
    "finished": "nothing, as it was the last",
}


class Coordinator(Stateful):
    """Runs all rounds of `federation` at the pace of `pacing`.

    The phases of a round, the event handled in each, and the next phase:

        opening,
        waiting    RoundOpened -> the federation opens the round           -> reporting
        reporting  DispatchDue -> too few clients are online               -> waiting
                                  else participants are selected           -> selecting
                                  or nobody is wanted now                  -> out
        selecting  CohortDue   -> their visits begin                       -> out
        out        RefillDue   -> slots are free: participants are selected -> selecting
                   ends of visits, RoundDeadline -> the pacing is evaluated; if a server
                   step closes the round, the next one opens               -> opening, or finished

    Visits of earlier rounds may be in flight: they end in any phase, and the server steps that the pacing
    makes then are made at once. But a round closes, and slots are filled, only in the phase `out`. The event
    RunEnds, of runs that last for so many virtual seconds, closes the last round in whatever phase it is.
    """

    state_fields = (
        *("_round", "_opened_s", "_phase", "_dispatches", "_steps", "_begun", "_round_steps", "_absorbed"),
        *("_refill_s", "_waits_from_s", "_visits", "federation"),
    )

    def __init__(self, federation: Federation, pacing: Pacing) -> None:
        self.federation = federation
        self._pacing = pacing
        self._visits = Visits(pacing, federation.num_clients)
        self._round = 0
        self._opened_s = 0.0  # when the round was first opened
        self._phase: Phase = "opening"
        self._dispatches = 0  # of the run
        self._steps = 0  # server steps of the run
        self._begun = False  # whether the round has come to the phase `out`
        self._round_steps = 0
        self._absorbed = 0  # visits that the round's steps absorbed
        self._refill_s: float | None = None  # the instant of the earliest RefillDue that is scheduled
        self._waits_from_s: float | None = None  # since when no visit is out, and nobody can be sent out

    @property
    def finished(self) -> bool:
        return self._phase == "finished"

    @property
    def visits(self) -> VisitCounts:
        """The visits of the whole run up to now, by outcome."""
        return self._visits.counts

    def start(self) -> Reaction:
        """The reaction that schedules the opening of the first round at virtual time 0, and the run's end."""
        ends_s = self.federation.settings.ends_s
        last = [] if ends_s is None else [(ends_s, RunEnds())]
        return Reaction([(self._opened_s, RoundOpened(self._round)), *last])

    def handle(self, event: Event, now_s: float) -> Reaction:
        """Handle one event; RunError if it does not fit the phase of the round.

        The deadline of a round that has closed already has no effect, nor has a RefillDue while a round is
        opened or participants are selected: free slots are looked at again after that.
        """
        reaction: Reaction | None = None
        match self._phase, event:
            case _, RoundDeadline(round=number) if number < self._round:
                reaction = Reaction()  # that round closed before its deadline
            case "opening" | "waiting", RoundOpened(round=self._round):
                reaction = self._open_round(now_s)
            case "reporting", DispatchDue(round=self._round):
                reaction = self._select(now_s)
            case "selecting", CohortDue(round=self._round):
                reaction = self._dispatch(now_s)
            case "out" | "selecting", RoundDeadline(round=self._round):
                due = self._visits.deadline_passed(now_s, may_open=self._phase == "out")
                reaction = Reaction() if due is None else self._react(due)
            case phase, RefillDue() if phase != "finished":
                reaction = self._refill(now_s)
            case phase, RunEnds() if phase != "finished":
                reaction = self._finish(now_s)
        if reaction is None:
            raise self._unexpected(event, now_s)
        return reaction

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Handle the ends of visits, in order, up to the first after which the pacing wants something.

        Returns how many of `ends` were handled, and the reaction. Raises RunError if one of the visits was
        never opened.
        """
        if ends.visit.max(initial=-1) >= self._visits.opened:
            row = int(ends.visit.argmax())
            raise self._unexpected(f"the end of visit {ends.visit[row]}", float(ends.time_s[row]))
        count, due = self._visits.end(ends, may_open=self._phase == "out")
        return count, Reaction() if due is None else self._react(due)

    # -- the phases of a round -----------------------------------------------------------------------------

    def _open_round(self, now_s: float) -> Reaction:
        """Open the round, possibly once more; participants are selected after the slowest response."""
        dispatch_s = self.federation.open_round(self._round, now_s)
        self._follow(now_s)
        self._phase = "reporting"
        return Reaction([(dispatch_s, DispatchDue(self._round))])

    def _select(self, now_s: float) -> Reaction:
        """Select the participants that the pacing wants now; if too few clients are online, wait for them."""
        visits, federation = self._visits, self.federation
        self._plan()
        wanted, busy = visits.wanted(), visits.busy if visits.count > 0 and visits.in_flight else None
        if not wanted.any():
            if busy is not None:
                return self._go_on(now_s)
            if visits.sizes.any():
                raise RunError(f"round {self._round}: the pacing {self._pacing.name} opens no visit")
        lost = visits.fruitless
        # The slots are those that are free, and those whose visits are out.
        if lost > 0 and lost > FRUITLESS_VISITS * (int(wanted.sum()) + visits.counts.out):
            raise RunError(
                f"round {self._round}: no visit was absorbed since the run began ({visits.counts}): it is "
                f"given up; clients go offline or crash before they are done, or the pacing abandons them; "
                f"`driftscale check` says how long a visit takes"
            )
        departs_s = federation.select(self._round, self._dispatches, wanted, now_s, busy)
        if departs_s is not None:
            self._phase, self._waits_from_s = "selecting", None
            return Reaction([(departs_s, CohortDue(self._round))])
        if self._phase == "reporting" and busy is None:
            again_s = federation.selectable.enough_online_s(self._round, wanted, self._opened_s, now_s)
            self._phase = "waiting"
            return Reaction([(again_s, RoundOpened(self._round))])
        if self._starved(wanted, now_s).any():
            return self._go_on(now_s, refill_s=now_s)
        # The next client may come, or a visit end before that: only if none is out is it a wait.
        if visits.is_out:
            self._waits_from_s = None
        elif self._waits_from_s is None:
            self._waits_from_s = now_s
        next_s = federation.selectable.enough_online_s(self._round, wanted, self._waits_from_s, now_s, busy)
        return self._go_on(now_s, refill_s=next_s)

    def _dispatch(self, now_s: float) -> Reaction:
        """Begin the visits of the selected participants."""
        sent = self.federation.dispatch(self._round, self._dispatches, self._visits.opened, now_s)
        self._follow(now_s)
        self._dispatches += 1
        self._visits.open(sent, now_s)
        return self._go_on(now_s, sent=sent.ends)

    def _go_on(self, now_s: float, *, sent: VisitEnds = NO_ENDS, refill_s: float | None = None) -> Reaction:
        """Come to the phase `out`, for the first time in this round or again.

        Visits were `sent` out. The round closes now if server steps were made meanwhile that say so.
        Otherwise slots that are free are filled now, or at `refill_s`, when the next client may come.
        """
        self._phase = "out"
        events: list[tuple[float, Event]] = []
        if not self._begun:
            self._begun = True
            deadline_s = self._visits.begin_round(now_s)
            if deadline_s is not None:
                events.append((deadline_s, RoundDeadline(self._round)))
        closed = self._closed(now_s)
        if closed is not None:
            return replace(closed, events=[*events, *closed.events], visits=sent)
        if refill_s is not None:
            events += self._refill_at(refill_s)
        elif not self._pacing.whole_rounds:  # one that opens more visits is refused when a visit ends
            events += self._refill_now(now_s)
        return Reaction(events, sent)

    def _react(self, due: Due) -> Reaction:
        """Make the server step that is due, close the round if it is over, and have free slots filled."""
        now_s, rows = due.at_s, []
        if due.absorbing.any():
            ended = self._visits.take(due.absorbing)
            out = self._visits.clients_out if self._pacing.push == "active" else NO_IDS
            rows = _logged(self.federation.aggregate(self._round, self._steps, ended, now_s, out))
            self._steps, self._round_steps = self._steps + 1, self._round_steps + 1
            self._absorbed += int(np.count_nonzero(ended.outcome == COMPLETED))
            self._follow(now_s)
        if self._phase != "out":
            return Reaction(ended=rows)
        closed = self._closed(now_s)
        if closed is not None:
            return Reaction(closed.events, record=closed.record, ended=[*rows, *closed.ended])
        return Reaction(self._refill_now(now_s), ended=rows)

    def _refill(self, now_s: float) -> Reaction:
        """Select participants for the slots that are free."""
        if self._refill_s is not None and self._refill_s <= now_s:
            self._refill_s = None
        visits = self._visits
        if self._phase != "out":
            return Reaction()
        if visits.is_planned_anew:  # other quotas may be full
            absorbing = visits.absorbing(now_s)
            if absorbing.any():
                return self._react(Due(now_s, absorbing))
        wanted = visits.wanted()
        if not wanted.any():
            visits.refuse_waiting()
            return Reaction()
        if self._pacing.whole_rounds:
            name, more = self._pacing.name, wanted.sum()
            raise RunError(f"the pacing {name} opens {more} more visits in the same round{WHOLE}")
        starved = self._starved(wanted, now_s)
        return self._react(Due(now_s, starved)) if starved.any() else self._select(now_s)

    def _closed(self, now_s: float) -> Reaction | None:
        """Close the round, and schedule the opening of the next one; None if the round is not over."""
        if self._round_steps == 0:
            return None
        if not self._pacing.closes(self._absorbed, self._visits.elapsed_s(now_s)):
            if self._pacing.whole_rounds:
                name = self._pacing.name
                raise RunError(f"the pacing {name} leaves the round open after its server step{WHOLE}")
            return None
        settings = self.federation.settings
        if settings.ends_s is None and self._round + 1 == settings.rounds:
            return self._finish(now_s)
        if settings.ends_s is not None and now_s >= settings.ends_s:
            return None  # the run ends at this instant, and with it the round
        record, opens_s = self.federation.close_round(
            self._round, self._opened_s, now_s, in_flight=self._in_flight
        )
        self._round, self._opened_s, self._phase = self._round + 1, opens_s, "opening"
        self._begun, self._round_steps, self._absorbed = False, 0, 0
        return Reaction([(opens_s, RoundOpened(self._round))], record=record)

    def _finish(self, now_s: float) -> Reaction:
        """Close the last round, and abandon what is in flight."""
        in_flight = self._in_flight
        rows = _logged(self.federation.abandon(self._round, self._visits.abandon_all(now_s), now_s))
        opened_s = min(self._opened_s, now_s)
        record, _ = self.federation.close_round(
            self._round, opened_s, now_s, in_flight=in_flight, is_last=True
        )
        self._phase = "finished"
        return Reaction(record=record, ended=rows)

    # -- shared --------------------------------------------------------------------------------------------

    @property
    def _in_flight(self) -> int | None:
        """The visits in flight, for the log; None where there are none between rounds."""
        return None if self._pacing.whole_rounds else self._visits.in_flight

    def _starved(self, wanted: Ints, now_s: float) -> Bools:
        """(lanes,) lanes with free slots, `wanted` (lanes,), whose buffers cannot be filled.

        All their clients wait for a server step; or no visit is out, and nobody comes as long as a run waits.
        Their buffers are absorbed though they are not full.
        """
        visits, selectable = self._visits, self.federation.selectable
        starved: Bools = (wanted > 0) & visits.all_back
        if starved.any():
            idle = selectable.num_idle(self._round, visits.busy)
            waits = visits.is_out or selectable.is_soon_online(self._round, wanted, now_s, visits.busy)
            starved &= (idle == 0) | (not waits)
        return starved

    def _refill_now(self, now_s: float) -> list[tuple[float, Event]]:
        """Let slots be filled, once all visits that end at this instant have ended, if some are free."""
        visits = self._visits
        if visits.wanted().any() or visits.is_planned_anew:
            return self._refill_at(now_s)
        if not visits.in_flight and not visits.sizes.any():
            self.federation.selectable.refuse_empty_lanes(self._round)
        visits.refuse_waiting()
        return []

    def _refill_at(self, time_s: float) -> list[tuple[float, Event]]:
        """The event by which slots are filled at `time_s`; none if it is inf, or an earlier one is there."""
        if math.isinf(time_s) or (self._refill_s is not None and self._refill_s <= time_s):
            return []
        self._refill_s = time_s
        return [(time_s, RefillDue())]

    def _follow(self, now_s: float) -> None:
        """Let the visits in flight follow their models, and the quotas the lanes, after an assignment."""
        if self._pacing.whole_rounds:
            return  # nothing is in flight; visits begin in the lanes that they were selected from
        followed = self.federation.followed()
        if followed is not None:
            num_lanes = len(self.federation.selectable.sizes(self._round))
            self._visits.follow(followed.visit, followed.lane, num_lanes, now_s)
        self._plan()

    def _plan(self) -> None:
        """Set the quota of each lane, if an assignment or a data step has changed their clients."""
        sizes = self.federation.selectable.sizes(self._round)
        if sizes is not self._visits.sizes:
            self._visits.plan(sizes, self._pacing.quota(sizes))

    def _unexpected(self, event: Event | str, now_s: float) -> RunError:
        return RunError(
            f"round {self._round} at {now_s:.0f} s: {event} does not fit, the round waits for "
            f"{WAITS_FOR[self._phase]}; {self.visits}"
        )


def _logged(rows: VisitRows | None) -> list[VisitRows]:
    return [] if rows is None else [rows]
