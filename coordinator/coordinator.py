"""When things happen: a state machine that turns events and ends of visits into further events.

The federation defines what happens: it opens a round, selects and dispatches participants, and aggregates.
This module decides when, by the phase of the round and the pacing. It holds no clock and does no I/O: time
passes only through the events that it schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from coordinator.federation import Federation
from coordinator.pacing import Pacing
from coordinator.visits import VisitCounts, Visits
from emulator.errors import RunError
from emulator.events import CohortDue, DispatchDue, Event, RoundDeadline, RoundOpened
from emulator.in_flight import VisitEnds
from emulator.ports import Reaction
from emulator.storage.state_tree import Tree

Phase = Literal["opening", "waiting", "reporting", "selecting", "out", "finished"]

WAITS_FOR: Mapping[Phase, str] = {
    "opening": "RoundOpened",
    "waiting": "RoundOpened, again, as too few clients were online",
    "reporting": "DispatchDue",
    "selecting": "CohortDue",
    "out": "the ends of its visits",
    "finished": "nothing, as it was the last",
}


class Coordinator:
    """Runs all rounds of `federation` at the pace of `pacing`.

    The phases of a round, the event handled in each, and the next phase:

        opening,
        waiting    RoundOpened -> the federation opens the round           -> reporting
        reporting  DispatchDue -> too few clients are online               -> waiting
                                  else participants are selected           -> selecting
        selecting  CohortDue   -> their visits begin                       -> out
        out        ends of visits, RoundDeadline -> the pacing is evaluated; at
                   its server step the round closes, and the next one opens -> opening, or finished
    """

    def __init__(self, federation: Federation, pacing: Pacing) -> None:
        self.federation = federation
        self._pacing = pacing
        self._visits = Visits(pacing)
        self._round = 0
        self._opened_s = 0.0  # when the round was first opened
        self._phase: Phase = "opening"

    @property
    def finished(self) -> bool:
        return self._phase == "finished"

    @property
    def visits(self) -> VisitCounts:
        """The visits of the whole run up to now, by outcome."""
        return self._visits.counts

    def state(self) -> dict[str, Tree]:
        """The state of the coordinator and its federation, for a checkpoint.

        Raises RunError, naming the part, if a part cannot be stored.
        """
        return {
            "round": self._round,
            "opened_s": self._opened_s,
            "phase": self._phase,
            "visits": self._visits.state(),
            "federation": self.federation.state(),
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`, in a new coordinator that has handled no event yet."""
        self._round, self._opened_s = state["round"], state["opened_s"]
        self._phase = state["phase"]
        self._visits.restore(state["visits"])
        opened = self._round - 1 if self._phase == "opening" else self._round
        self.federation.restore(state["federation"], opened)

    def start(self) -> Reaction:
        """The reaction that schedules the opening of the first round, at virtual time 0."""
        return Reaction([(self._opened_s, RoundOpened(self._round))])

    def handle(self, event: Event, now_s: float) -> Reaction:
        """Handle one event; RunError if it does not fit the phase of the round.

        The deadline of a round that has closed already has no effect.
        """
        match self._phase, event:
            case _, RoundDeadline(round=number) if number < self._round:
                return Reaction()  # that round closed before its deadline
            case "opening" | "waiting", RoundOpened(round=self._round):
                return self._open_round(now_s)
            case "reporting", DispatchDue(round=self._round):
                return self._select(now_s)
            case "selecting", CohortDue(round=self._round):
                return self._dispatch(now_s)
            case "out", RoundDeadline(round=self._round):
                return self._step(now_s) if self._visits.deadline_passed(now_s) else Reaction()
        raise self._unfit(event, now_s)

    def visits_ended(self, ends: VisitEnds) -> tuple[int, Reaction]:
        """Handle the ends of visits, in order, up to the first after which there is a server step.

        Returns how many of `ends` were handled, and the reaction. Raises RunError if one of the visits was
        never opened.
        """
        if ends.visit.max(initial=-1) >= self._visits.opened:
            row = int(ends.visit.argmax())
            raise self._unfit(f"the end of visit {ends.visit[row]}", float(ends.time_s[row]))
        count, step_s = self._visits.end(ends)
        return count, Reaction() if step_s is None else self._step(step_s)

    def _open_round(self, now_s: float) -> Reaction:
        """Open the round, possibly once more; participants are selected after the slowest response."""
        dispatch_s = self.federation.open_round(self._round, now_s)
        self._phase = "reporting"
        return Reaction([(dispatch_s, DispatchDue(self._round))])

    def _select(self, now_s: float) -> Reaction:
        """Select participants; if too few clients are online, open the round again later."""
        sizes = self.federation.lane_sizes(self._round)
        quota = self._pacing.quota(sizes)
        no_visits = sizes * 0
        wanted = self._pacing.opens(quota, sizes, no_visits, no_visits)
        if sizes.any() and not wanted.any():
            raise RunError(f"round {self._round}: the pacing {self._pacing.name} opens no visit")
        departs_s = self.federation.select(self._round, quota, wanted, now_s)
        if departs_s is None:
            again_s = self.federation.enough_online_s(self._round, quota, self._opened_s, now_s)
            self._phase = "waiting"
            return Reaction([(again_s, RoundOpened(self._round))])
        self._visits.plan(sizes, quota)
        self._phase = "selecting"
        return Reaction([(departs_s, CohortDue(self._round))])

    def _dispatch(self, now_s: float) -> Reaction:
        """Begin the visits of the selected participants."""
        sent = self.federation.dispatch(self._round, self._visits.opened, now_s)
        deadline_s = self._visits.open(sent, now_s)
        self._phase = "out"
        deadline = [] if deadline_s is None else [(deadline_s, RoundDeadline(self._round))]
        return Reaction(deadline, sent.ends)

    def _step(self, now_s: float) -> Reaction:
        """Make the round's one server step, close the round, and open the next one or finish."""
        ended = self._visits.close(now_s)
        visits = self.federation.aggregate(self._round, ended, now_s)
        record, opens_s = self.federation.close_round(self._round, self._opened_s, now_s)
        if self._round + 1 == self.federation.settings.rounds:
            self._phase = "finished"
            return Reaction(record=record, ended=visits)
        self._round, self._opened_s, self._phase = self._round + 1, opens_s, "opening"
        return Reaction([(opens_s, RoundOpened(self._round))], record=record, ended=visits)

    def _unfit(self, event: Event | str, now_s: float) -> RunError:
        return RunError(
            f"round {self._round} at {now_s:.0f} s: {event} does not fit, the round waits for "
            f"{WAITS_FOR[self._phase]}; {self._visits.counts}"
        )
