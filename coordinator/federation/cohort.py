"""One round's visits: who is out, who is back, and what each exchange has cost so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.in_flight import VisitEnds
from emulator.latency import Phases
from emulator.messages import Outcome, TrainTasks, Work
from emulator.storage.state_tree import Tree, as_tree, of_tree

Full = Callable[[Ints, Ints], Bools]
"""Which lanes have all they need: `quota` (lanes,) and visits back (..., lanes) to (..., lanes)."""


@dataclass(frozen=True)
class Picked:
    """Participants of a round, ascending, whose visits have not begun; the lane of each; quotas (lanes,); and
    when they were picked."""

    clients: Ints
    lanes: Ints
    quota: Ints
    at_s: float


class Cohort:
    """A cohort of visits, in ascending client order, with the tasks that were frozen when it was sent out:
    task i starts from row `start[i]` of `models` (M, P), which nobody changes.

    `start_s` is when it went out, `asked_s` (visits,) how long each client then answered questions before it
    went to work, `crash_s` (visits,) when its device crashes, or inf. `work` is what crosses the wire,
    `payload` without what is lost on the way.

    `first_visit` numbers its first visit; visit ids run through the whole run, so that an event of an earlier
    cohort is recognised as such.
    """

    def __init__(
        self,
        *,
        first_visit: int,
        clients: Ints,
        lanes: Ints,
        quota: Ints,
        start_s: float,
        asked_s: Floats,
        crash_s: Floats,
        payload: Work,
        work: Work,
        phases: Phases,
        tasks: TrainTasks,
        models: Floats32,
        start: Ints,
    ) -> None:
        self.first_visit = first_visit
        self.clients = clients
        self.lanes = lanes
        self.quota = quota
        self.start_s = start_s
        self.asked_s = asked_s
        self.crash_s = crash_s
        self.payload = payload
        self.work = work
        self.phases = phases
        self.tasks = tasks
        self.models = models
        self.start = start
        self.outcome = np.full(len(clients), Outcome.OUT, dtype=np.int64)
        self.end_s: Floats = np.full(len(clients), np.nan)

    def state(self) -> dict[str, Tree]:
        return {name: as_tree(value) for name, value in vars(self).items()}

    @classmethod
    def of_state(cls, state: Mapping[str, Tree]) -> Cohort:
        """The cohort that was in such a state."""
        kinds = {"payload": Work, "work": Work, "phases": Phases, "tasks": TrainTasks}
        values = {name: of_tree(kinds[name], tree) if name in kinds else tree for name, tree in state.items()}
        outcome, end_s = values.pop("outcome"), values.pop("end_s")
        cohort = cls(**values)
        cohort.outcome, cohort.end_s = outcome, end_s
        return cohort

    def __len__(self) -> int:
        return len(self.clients)

    def end(self, ends: VisitEnds, full: Full) -> tuple[int, float | None]:
        """Visits end, in order: how many of `ends` were looked at, and when the last visit ended if none is
        out any more.

        What ended of this cohort counts, all else is of visits that are over. As soon as a lane is `full`,
        what is still out in it is abandoned. What comes after the end of the last visit is not looked at.
        """
        row = ends.visit - self.first_visit
        known = np.flatnonzero((row >= 0) & (row < len(self)))
        place = known[self.outcome[row[known]] == Outcome.OUT]
        rows, time_s, count = row[place], ends.time_s[place], len(place)
        arrived = np.where(ends.dropped[place], -1, self.lanes[rows])
        closes = self._closes(arrived, full)[self.lanes]
        own = np.full(len(self), count)
        own[rows] = np.arange(count)
        out = self.outcome == Outcome.OUT
        over = np.minimum(own, closes)  # by which of these ends each visit is over; `count`: by none
        ended = np.flatnonzero(out & (over < count))
        self.end_s[ended] = time_s[over[ended]]
        self.outcome[ended] = np.where(
            own[ended] > closes[ended],
            Outcome.ABANDONED,
            np.where(arrived[over[ended]] < 0, Outcome.DROPPED, Outcome.ABSORBED),
        )
        last = int(over[out].max(initial=0))
        return (len(ends), None) if last == count else (int(place[last]) + 1, float(time_s[last]))

    def _closes(self, arrived: Ints, full: Full) -> Ints:
        """(lanes,) which of n ends closes each lane, n: none of them.

        `arrived` (n,) is the lane of each visit that arrives, -1 for one that does not.
        """
        count, num_lanes = len(arrived), len(self.quota)
        arrivals = arrived[:, None] == np.arange(num_lanes)
        back, has_visits = self.back(), self._is_open()
        found, counted = np.full(num_lanes, count), arrivals
        # When a lane closes can change when others do, but only later ones. With each pass the earliest
        # closing that was wrong comes later, so that this ends whatever rule `full` is.
        while True:
            is_full = full(self.quota, back + np.cumsum(counted, axis=0)) & has_visits
            closes = np.where(is_full.any(axis=0), is_full.argmax(axis=0), count) if count else found
            if (closes == found).all():
                return found
            found = closes
            counted = arrivals & (np.arange(count)[:, None] <= found)

    def abandon(self, lanes: Bools, now_s: float) -> None:
        """End every visit that is still out in the given lanes, (lanes,) flags."""
        left = (self.outcome == Outcome.OUT) & lanes[self.lanes]
        self.outcome[left], self.end_s[left] = Outcome.ABANDONED, now_s

    def back(self) -> Ints:
        """(lanes,) visits that have returned."""
        lanes = self.lanes[self.outcome == Outcome.ABSORBED]
        counts: Ints = np.bincount(lanes, minlength=len(self.quota))
        return counts

    def _is_open(self) -> Bools:
        """(lanes,) whether a visit is out in the lane."""
        lanes = self.lanes[self.outcome == Outcome.OUT]
        return np.bincount(lanes, minlength=len(self.quota)) > 0

    def ids(self, outcome: Outcome) -> Ints:
        """Clients, ascending, whose visit ended so."""
        ended: Bools = self.outcome == outcome
        return self.clients[ended]

    def ends(self, offline_s: Floats) -> VisitEnds:
        """When each visit is due, or its client drops out before that: at `offline_s` (visits,), or as it
        crashes."""
        due_s = self.start_s + self.asked_s + self.phases.total_s
        gone_s = np.minimum(offline_s, self.crash_s)
        return VisitEnds(
            time_s=np.minimum(due_s, gone_s),
            client=self.clients,
            visit=self.first_visit + np.arange(len(self)),
            dropped=gone_s < due_s,
        )

    def crashed(self) -> Ints:
        """Clients, ascending, whose visit was dropped because they crashed."""
        crashed: Bools = (self.outcome == Outcome.DROPPED) & (self.end_s == self.crash_s)
        return self.clients[crashed]

    def moved_bytes(self) -> tuple[Floats, Floats]:
        """(visits,) bytes down and up that crossed the wire until each visit ended; all, if it is back."""
        return self._moved(self.work)

    def moved_payload_bytes(self) -> float:
        """The sum of these both ways, without what was lost."""
        down, up = self._moved(self.payload)
        return float((down + up).sum())

    def _moved(self, work: Work) -> tuple[Floats, Floats]:
        down, up = self.phases.moved(work, self.end_s - self.start_s - self.asked_s)
        came_back = self.outcome == Outcome.ABSORBED
        # Not left to the elapsed time, whose rounding can make a whole upload a hair short.
        return (
            np.where(came_back, work.download_bytes, down),
            np.where(came_back, work.upload_bytes, up),
        )

    def kept_tasks(self) -> tuple[TrainTasks, Ints]:
        """The tasks of the visits that returned, and the row (n,) of `models` that each starts from."""
        kept = self.outcome[self.tasks.visit - self.first_visit] == Outcome.ABSORBED
        return self.tasks.take(np.flatnonzero(kept)), self.start[kept]
