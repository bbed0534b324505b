"""The participants of a round: what each visit does and costs, frozen at dispatch, and what came of it.

Which visits are still out is `coordinator.visits`'; the two tables are joined by visit id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.in_flight import VisitEnds
from emulator.latency import Phases
from emulator.messages import Outcome, TrainTasks, Work


@dataclass(frozen=True)
class Picked:
    """Participants of a round, ascending, who have not been sent out yet; the lane of each; and when they
    were picked.
    """

    clients: Ints
    lanes: Ints
    at_s: float


@dataclass(frozen=True)
class SentOut:
    """Visits that begin now, (n,): the client and the selection lane of each, and when it ends."""

    clients: Ints
    lanes: Ints
    ends: VisitEnds


@dataclass(frozen=True)
class EndedVisits:
    """Visits that are over, (n,), in ascending order of `visit`; none is still OUT."""

    visit: Ints
    client: Ints
    end_s: Floats
    outcome: Ints

    def clients_with(self, outcome: Outcome) -> Ints:
        """Clients, in order, whose visit ended so."""
        ended: Bools = self.outcome == outcome
        return self.client[ended]


@dataclass(frozen=True)
class Cohort:
    """Visits in ascending client order, with the tasks that were frozen when they were sent out: task i
    starts from row `start[i]` of `models` (M, P), which nobody changes. Columns are (visits,).

    `start_s` is when they were sent out, `requests_s` how long each client then answered requests before it
    went to work, `crash_s` when its device crashes, or inf. `work` is what crosses the wire, `payload`
    without what is lost on the way. `first_visit` is the id of the first visit.
    """

    first_visit: int
    clients: Ints
    start_s: float
    requests_s: Floats
    crash_s: Floats
    payload: Work
    work: Work
    phases: Phases
    tasks: TrainTasks
    models: Floats32
    start: Ints

    def ends(self, offline_s: Floats) -> VisitEnds:
        """When each visit is due, or its client drops out before that: at `offline_s` (visits,), or as it
        crashes."""
        due_s = self.start_s + self.requests_s + self.phases.total_s
        gone_s = np.minimum(offline_s, self.crash_s)
        return VisitEnds(
            time_s=np.minimum(due_s, gone_s),
            client=self.clients,
            visit=self.first_visit + np.arange(len(self.clients)),
            dropped=gone_s < due_s,
        )

    def crashed(self, ended: EndedVisits) -> Ints:
        """Clients, ascending, whose visit was dropped because they crashed."""
        crashed: Bools = (ended.outcome == Outcome.DROPPED) & (ended.end_s == self.crash_s)
        return self.clients[crashed]

    def moved_bytes(self, ended: EndedVisits) -> tuple[Floats, Floats, float]:
        """(visits,) bytes down and up that crossed the wire until each visit ended, all if it completed; and
        the sum of these both ways, without what was lost."""
        down, up = self._moved(self.work, ended)
        # The same object, unless links lose something.
        arrived = (down, up) if self.payload is self.work else self._moved(self.payload, ended)
        return down, up, float((arrived[0] + arrived[1]).sum())

    def _moved(self, work: Work, ended: EndedVisits) -> tuple[Floats, Floats]:
        down, up = self.phases.moved(work, ended.end_s - self.start_s - self.requests_s)
        completed = ended.outcome == Outcome.COMPLETED
        # Not left to the elapsed time, whose rounding can make a whole upload a hair short.
        return np.where(completed, work.download_bytes, down), np.where(completed, work.upload_bytes, up)

    def completed_tasks(self, ended: EndedVisits) -> tuple[TrainTasks, Ints]:
        """The tasks of the visits that completed, and the row (n,) of `models` that each starts from."""
        completed = ended.outcome[self.tasks.visit - self.first_visit] == Outcome.COMPLETED
        return self.tasks.take(np.flatnonzero(completed)), self.start[completed]
