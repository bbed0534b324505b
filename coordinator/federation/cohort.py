"""The participants of a round: the tasks and costs of each visit, frozen at dispatch, and its outcome.

`coordinator.visits` tracks which visits are still out; the two tables are joined by visit id.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.in_flight import VisitEnds
from emulator.latency import Phases
from emulator.messages import COMPLETED, DROPPED, EndedVisits, TrainTasks, VisitRows, Work


@dataclass(frozen=True)
class Picked:
    """Participants of a round that have been selected, but not dispatched yet."""

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
    """The visits of a round, by ascending client, with the tasks that were frozen at dispatch.

    Columns are (visits,). Task i starts from row `start[i]` of `models`, which must not be changed.
    """

    first_visit: int  # id of the first visit
    clients: Ints
    start_s: float  # instant of dispatch
    requests_s: Floats  # virtual seconds that each client spends on requests before it starts to work
    crash_s: Floats  # instant at which each device crashes, or inf
    payload: Work  # without packet loss
    work: Work  # what crosses the wire, with resent packets
    phases: Phases
    tasks: TrainTasks
    models: Floats32  # (M, P)
    start: Ints  # (tasks,)

    @property
    def due_s(self) -> Floats:
        """(visits,) instant at which each visit ends if it completes."""
        return self.start_s + self.requests_s + self.phases.total_s

    def ends(self, drop_out_s: Floats) -> VisitEnds:
        """The end of each visit: when it is due, or earlier if it drops out.

        A visit drops out at `drop_out_s` (visits,), as the time model says, or when its client's device
        crashes.
        """
        due_s = self.due_s
        gone_s = np.minimum(drop_out_s, self.crash_s)
        return VisitEnds(
            time_s=np.minimum(due_s, gone_s),
            client=self.clients,
            visit=self.first_visit + np.arange(len(self.clients)),
            dropped=gone_s < due_s,
        )

    def crashed(self, ended: EndedVisits) -> Ints:
        """Ids, ascending, of the clients whose visit was dropped because of a crash."""
        return self.clients[self._crashed(ended)]

    def _crashed(self, ended: EndedVisits) -> Bools:
        """(visits,) whether each was dropped because of a crash."""
        crashed: Bools = (ended.outcome == DROPPED) & (ended.end_s == self.crash_s)
        return crashed

    def moved_bytes(self, ended: EndedVisits) -> tuple[Floats, Floats, Floats]:
        """(visits,) bytes downloaded, (visits,) bytes uploaded, and (visits,) both without packet loss.

        They are counted until each visit ended; a completed visit counts in full.
        """
        down, up = self._moved(self.work, ended)
        # `payload` and `work` are the same object unless links lose packets.
        arrived = (down, up) if self.payload is self.work else self._moved(self.payload, ended)
        return down, up, arrived[0] + arrived[1]

    def logged(
        self, round_: int, ended: EndedVisits, down: Floats, up: Floats, payload: Floats, labels: Ints
    ) -> VisitRows:
        """The ended visits for the log, with the bytes of `moved_bytes`.

        `labels` (M,) are the labels of the models that the visits started from.
        """
        models = np.bincount(self.tasks.visit - self.first_visit, minlength=len(self.clients))
        return VisitRows(
            round=round_,
            visit=ended.visit,
            client=ended.client,
            lane=ended.lane,
            num_models=models,
            models=labels[self.start],
            dispatched_s=ended.start_s,
            requests_s=self.requests_s,
            download_s=self.phases.download_s,
            compute_s=self.phases.compute_s,
            upload_s=self.phases.upload_s,
            end_s=ended.end_s,
            outcome=ended.outcome,
            crashed=self._crashed(ended),
            download_bytes=down,
            upload_bytes=up,
            payload_bytes=payload,
        )

    def _moved(self, work: Work, ended: EndedVisits) -> tuple[Floats, Floats]:
        down, up = self.phases.moved(work, ended.end_s - self.start_s - self.requests_s)
        completed = ended.outcome == COMPLETED
        # A completed visit does not rely on the elapsed time, whose rounding could cut its upload short.
        return np.where(completed, work.download_bytes, down), np.where(completed, work.upload_bytes, up)

    def completed_tasks(self, ended: EndedVisits) -> tuple[TrainTasks, Ints]:
        """The tasks of completed visits, and the row (n,) of `models` that each starts from."""
        completed = ended.outcome[self.tasks.visit - self.first_visit] == COMPLETED
        return self.tasks.take(completed.nonzero()[0]), self.start[completed]
