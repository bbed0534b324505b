"""One round's visits: who is out, who is back, and what each exchange has cost so far."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.latency import Phases
from emulator.messages import Outcome, TrainTasks, Work


class Cohort:
    """A cohort of visits, in ascending client order, with the tasks that were frozen when it was sent out.

    `start_s` is when it went out, `asked_s` (visits,) how long each client then answered questions before it
    went to work.

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
        work: Work,
        phases: Phases,
        tasks: TrainTasks,
        starts: Floats32,
    ) -> None:
        self.first_visit = first_visit
        self.clients = clients
        self.lanes = lanes
        self.quota = quota
        self.start_s = start_s
        self.asked_s = asked_s
        self.work = work
        self.phases = phases
        self.tasks = tasks
        self.starts = starts
        self.outcome = np.full(len(clients), Outcome.OUT, dtype=np.int64)
        self.end_s: Floats = np.full(len(clients), np.nan)

    def __len__(self) -> int:
        return len(self.clients)

    def is_out(self, visit: int) -> bool:
        """Whether `visit` belongs to this cohort and has not ended."""
        row = visit - self.first_visit
        return 0 <= row < len(self) and self.outcome[row] == Outcome.OUT

    def end(self, visit: int, outcome: Outcome, now_s: float) -> None:
        """End one visit that is out."""
        row = visit - self.first_visit
        self.outcome[row], self.end_s[row] = outcome, now_s

    def abandon(self, lanes: Bools, now_s: float) -> None:
        """End every visit that is still out in the given lanes, (lanes,) flags."""
        left = (self.outcome == Outcome.OUT) & lanes[self.lanes]
        self.outcome[left], self.end_s[left] = Outcome.ABANDONED, now_s

    def back(self) -> Ints:
        """(lanes,) visits that have returned."""
        lanes = self.lanes[self.outcome == Outcome.ABSORBED]
        counts: Ints = np.bincount(lanes, minlength=len(self.quota))
        return counts

    @property
    def any_out(self) -> bool:
        return bool((self.outcome == Outcome.OUT).any())

    def ids(self, outcome: Outcome) -> Ints:
        """Clients, ascending, whose visit ended so."""
        ended: Bools = self.outcome == outcome
        return self.clients[ended]

    @property
    def due_s(self) -> Floats:
        """(visits,) when each would return."""
        due: Floats = self.start_s + self.asked_s + self.phases.total_s
        return due

    def moved_bytes(self) -> tuple[Floats, Floats]:
        """(visits,) bytes down and up that crossed the wire until each visit ended; all, if it is back."""
        down, up = self.phases.moved(self.work, self.end_s - self.start_s - self.asked_s)
        came_back = self.outcome == Outcome.ABSORBED
        # Not left to the elapsed time, whose rounding can make a whole upload a hair short.
        return (
            np.where(came_back, self.work.download_bytes, down),
            np.where(came_back, self.work.upload_bytes, up),
        )

    def kept_tasks(self) -> tuple[TrainTasks, Floats32]:
        """The tasks of the visits that returned, and the model (n, P) each starts from."""
        kept = np.isin(self.tasks.visit, self.first_visit + np.flatnonzero(self.outcome == Outcome.ABSORBED))
        return self.tasks.take(np.flatnonzero(kept)), self.starts[kept]
