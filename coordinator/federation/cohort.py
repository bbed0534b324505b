"""The visits of a dispatch: the tasks and costs of each, frozen at dispatch, and what became of them.

`coordinator.visits` tracks which visits are still out; the two tables are joined by visit id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.in_flight import VisitEnds
from emulator.latency import Phases
from emulator.messages import ABANDONED, COMPLETED, DROPPED, EndedVisits, TrainTasks, VisitRows, Work


@dataclass(frozen=True)
class Picked:
    """Participants that have been selected, but not dispatched yet."""

    clients: Ints  # (n,) ids, ascending
    lanes: Ints  # (n,) the lane of each
    at_s: float  # instant of their selection


@dataclass(frozen=True)
class SentOut:
    """The participants of a dispatch, and when their visits end."""

    clients: Ints  # (n,) ids, ascending
    lanes: Ints  # (n,) the lane that each was selected from
    ends: VisitEnds  # (n,) the end of each visit


@dataclass(frozen=True)
class Cohort:
    """Visits with the tasks that were frozen at dispatch, by ascending client, then visit.

    They are those of one dispatch, or those of several that a server step takes out of the flight. Columns
    are (visits,). Task i starts from row `start[i]` of `models`, which must not be changed, and of the arrays
    `tasks.broadcast`; in the table of tasks, all of one visit are together, in the order of the visits.
    """

    visit: Ints
    clients: Ints
    dispatch: Ints  # the number of the dispatch
    start_s: Floats  # instant of dispatch
    requests_s: Floats  # virtual seconds that each client spends on requests before it starts to work
    crash_s: Floats  # instant at which each device crashes, or inf
    gone_s: Floats  # instant at which each client is gone, offline or crashed, or inf
    # (visits,) share of its models that a client had been sent before, which costs no bytes; None: nothing.
    sent_before: Floats | None
    base: Floats | None  # (visits,) bytes of the base in the payload's download; None: no parameter is frozen
    ways: (
        Work | None
    )  # (visits,) what choosing ways takes, which is in the payload, too; None: nobody chooses
    payload: Work | None  # `work` without packets that are sent again; None: no link loses any
    work: Work  # what crosses the wire
    phases: Phases
    tasks: TrainTasks
    models: Floats32  # (K, P)
    start: Ints  # (tasks,)
    version: Ints  # (tasks,) of the model that each starts from
    label: Ints  # (tasks,) of that model
    row: Ints  # (tasks,) of the bank now: the model that continues it, -1 = none
    bound: Bools  # (tasks,) whether the client's data have not changed since dispatch
    stayed: Bools  # (tasks,) whether the client has held data ever since

    def __len__(self) -> int:
        """The number of visits."""
        return len(self.visit)

    @property
    def due_s(self) -> Floats:
        """(visits,) instant at which each visit ends if it completes."""
        return self.start_s + self.requests_s + self.phases.total_s

    def ends(self, timeout_s: float | None = None) -> VisitEnds:
        """The end of each visit, as the coordinator learns of it: when it is due, or if it drops out before.

        With a time-out a visit that is out longer is abandoned, and that one has dropped out is noticed then.
        """
        due_s = self.due_s
        lost = self.gone_s < due_s
        time_s = np.minimum(due_s, self.gone_s)
        outcome = np.where(lost, DROPPED, COMPLETED)
        if timeout_s is not None:
            limit_s = self.start_s + timeout_s
            late = time_s > limit_s
            time_s = np.where(lost | late, limit_s, time_s)
            outcome = np.where(late, ABANDONED, outcome)
        return VisitEnds(time_s=time_s, client=self.clients, visit=self.visit, outcome=outcome)

    def crashed(self, ended: EndedVisits) -> Ints:
        """Ids, ascending, of the clients whose visit was dropped because of a crash."""
        return self.clients[self._crashed(ended)]

    def _crashed(self, ended: EndedVisits) -> Bools:
        """(visits,) whether each was dropped because of a crash."""
        crashed: Bools = (ended.outcome == DROPPED) & (self.gone_s == self.crash_s)
        return crashed

    def moved_bytes(self, ended: EndedVisits, most: int | None = None) -> tuple[Floats, Floats, Floats]:
        """(visits,) bytes downloaded, (visits,) bytes uploaded, and (visits,) both without packet loss.

        They are counted until each visit ended, or its client was gone; a completed visit counts in full, and
        so does one that came back with a staleness above `most`.
        """
        down, up = self._moved(self.work, ended, most)
        arrived = (down, up) if self.payload is None else self._moved(self.payload, ended, most)
        if self.sent_before is not None:
            # Bytes of the download that are of no model, and are charged whole.
            no_model = np.zeros(len(self))
            if self.base is not None:
                no_model += self.moved_base(ended, most)
            if self.ways is not None:
                no_model += self.moved_ways(ended, most)[0]
            charged, no_model = 1 - self.sent_before, self.sent_before * no_model
            return charged * down + no_model, up, charged * arrived[0] + no_model + arrived[1]
        return down, up, arrived[0] + arrived[1]

    def moved_base(self, ended: EndedVisits, most: int | None = None) -> Floats:
        """(visits,) the bytes of the base that arrived, which are among the last of `moved_bytes`."""
        assert self.base is not None
        return self._moved(replace(self.work, download_bytes=self.base), ended, most)[0]

    def moved_ways(self, ended: EndedVisits, most: int | None = None) -> tuple[Floats, Floats]:
        """(visits,) bytes downloaded and uploaded to choose ways, which are among those of `moved_bytes`."""
        assert self.ways is not None
        return self._moved(self.ways, ended, most)

    def base_lost(self, end_s: Floats) -> Bools:
        """(visits,) whether each brings the base, and ends, at `end_s` (visits,), before that is there."""
        assert self.base is not None
        arrives_s = self.start_s + self.requests_s + self.phases.download_s
        return (self.base > 0) & (arrives_s > np.minimum(end_s, self.gone_s))

    def logged(
        self,
        round_: int,
        ended: EndedVisits,
        down: Floats,
        up: Floats,
        payload: Floats,
        *,
        whole_rounds: bool = True,
    ) -> VisitRows:
        """The ended visits for the log, with the bytes of `moved_bytes`.

        Their dispatch and their staleness are left out if both follow from the round.
        """
        return VisitRows(
            round=round_,
            visit=ended.visit,
            client=ended.client,
            lane=ended.lane,
            num_models=self._num_tasks(),
            models=self.label,
            dispatched_s=ended.start_s,
            requests_s=self.requests_s,
            download_s=self.phases.download_s,
            compute_s=self.phases.compute_s,
            upload_s=self.phases.upload_s,
            # With a time-out the coordinator notices later that a client is gone.
            end_s=np.where(ended.outcome == DROPPED, np.minimum(ended.end_s, self.gone_s), ended.end_s),
            outcome=ended.outcome,
            crashed=self._crashed(ended),
            download_bytes=down,
            upload_bytes=up,
            payload_bytes=payload,
            dispatch=None if whole_rounds else self.dispatch,
            staleness=None if whole_rounds else ended.staleness,
        )

    def _moved(self, work: Work, ended: EndedVisits, most: int | None) -> tuple[Floats, Floats]:
        until_s = np.minimum(ended.end_s, self.gone_s)
        down, up = self.phases.moved(work, until_s - self.start_s - self.requests_s)
        # A visit that arrived does not rely on the elapsed time, whose rounding could cut its upload short;
        # one that was too stale as it came back has arrived, too.
        arrived = ended.outcome == COMPLETED
        if most is not None:
            arrived = arrived | ((ended.staleness > most) & (until_s >= self.due_s))
        return np.where(arrived, work.download_bytes, down), np.where(arrived, work.upload_bytes, up)

    def _num_tasks(self) -> Ints:
        """(visits,) the number of tasks of each visit."""
        return np.bincount(self.visit_of_task, minlength=len(self))

    @property
    def visit_of_task(self) -> Ints:
        """(tasks,) the row of each task's visit."""
        visits, of_tasks = self.visit, self.tasks.visit
        if visits is of_tasks:  # one each, as in most runs
            return np.arange(len(visits))
        order = visits.argsort()
        rows: Ints = order[visits.searchsorted(of_tasks, sorter=order)]
        return rows

    def absorbable(self, ended: EndedVisits) -> tuple[Ints, Ints]:
        """The rows (n,) of the tasks of completed visits whose model exists, or one that continues it.

        Also returns the row (n,) of each one's visit.
        """
        visits = self.visit_of_task
        rows = ((ended.outcome[visits] == COMPLETED) & (self.row >= 0)).nonzero()[0]
        return rows, visits[rows]
