"""The log record of the present round, as it is filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coordinator.assignment import Assignment, Fit
from coordinator.federation.evaluation.adapting import AdaptationFigures
from coordinator.federation.evaluation.measurement import Measurement
from coordinator.federation.evaluation.personal import PersonalFigures
from coordinator.federation.hearing.hearing import Heard
from emulator.arrays import Bools, Floats, Ints
from emulator.ledger import Ledger
from emulator.messages import COMPLETED, DROPPED, AnyTrigger, EndedVisits
from emulator.storage.runlog import RoundRecord


@dataclass
class RoundProgress:
    """The fields of the present round's record, with the names of `emulator.storage.runlog.RoundRecord`."""

    changed: int = 0
    reported: int = 0
    nonfinite_reports: int = 0
    moved: int = 0
    reclustered: bool = False
    fitted: Fit | None = None
    trigger: AnyTrigger | None = None
    members_changed: bool = False
    dispatched_s: float | None = None
    steps: int = 0
    participants: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    crashed: list[int] = field(default_factory=list)
    train_loss: float | None = None  # mean of `losses`
    losses: Floats | None = None  # (n,) training losses of the updates absorbed
    staleness: int = 0  # of the visits absorbed, in all
    largest_staleness: int | None = None
    trained_accuracy: float | None = None  # of the last server step
    epochs: list[int] = field(default_factory=list)  # of the tasks dispatched, where these stop early
    without_held_out: int = 0  # clients of these tasks who hold nothing out, once for each visit
    decided: dict[str, list[int]] = field(default_factory=dict)  # by what detectors watch, ascending
    flagged: dict[str, list[int]] = field(default_factory=dict)  # of these, by detector
    noted: dict[str, float] = field(default_factory=dict)

    def heard(self, heard: Heard, *, detection: bool = False) -> None:
        """Take note of the clients that were heard, and with `detection` of whom detectors decided about."""
        if detection:
            self.detected("representation", heard.decided, heard.drift)
        self.changed += heard.checked
        self.reported += heard.reported
        self.nonfinite_reports += heard.nonfinite

    def detected(self, watched: str, decided: Ints, drift: Mapping[str, Bools]) -> None:
        """Take note of the clients `decided` (n,) about by detectors that watch this.

        `drift` has (N,) flags by the name of each; of others than those that were decided about none counts.
        """
        self.decided[watched] = _union(self.decided.get(watched, []), decided)
        for name, flags in drift.items():
            self.flagged[name] = _union(self.flagged.get(name, []), decided[flags[decided]])

    def trained(self, losses: Floats) -> None:
        """Take note of the training losses (n,) of updates that a server step absorbs."""
        self.losses = losses if self.losses is None else np.concatenate([self.losses, losses])
        self.train_loss = float(self.losses.mean())

    def stopped(self, client: Ints, epochs: Floats, held_out: Floats, samples: Ints) -> None:
        """Take note of n tasks that stopped early: of which client, their epochs, and samples held out."""
        self.epochs += epochs[samples > 0].astype(np.int64).tolist()
        self.without_held_out += len(np.unique(client[(held_out == 0) & (samples > 0)]))

    def note(self, numbers: Mapping[str, float]) -> None:
        """Take note of numbers by name; of a name that was noted before, the new number counts."""
        self.noted |= {name: float(number) for name, number in numbers.items()}

    def landed(self, ended: EndedVisits, crashed: Ints, *, whole_round: bool = False) -> None:
        """Take note of visits that are over, and of the clients (n,) among them whose device crashed.

        They may be all of a `whole_round`: then none is stale.
        """
        self.participants += ended.client.tolist()
        completed = ended.outcome == COMPLETED
        self.completed += ended.client[completed].tolist()
        self.dropped += ended.clients_with(DROPPED).tolist()
        self.crashed += crashed.tolist()
        staleness = ended.staleness[completed]
        if len(staleness) > 0 and not whole_round:
            self.staleness += int(staleness.sum())
            self.largest_staleness = max(self.largest_staleness or 0, int(staleness.max()))

    def assigned(self, assignment: Assignment, moved: int | None) -> None:
        """Take note of an assignment that was applied.

        `moved` clients changed cluster label by it; None for the first assignment.
        """
        self.members_changed |= moved != 0
        self.reclustered |= assignment.reclustered
        self.fitted = assignment.fitted or self.fitted
        if not assignment.reclustered:
            self.moved += moved or 0

    def log_trigger(self, trigger: AnyTrigger) -> None:
        """Take note of an evaluated trigger; of several, record the last that fired, or else the last.

        There are several in a round that is opened again after waiting for clients.
        """
        if trigger.fired or self.trigger is None or not self.trigger.fired:
            self.trigger = trigger

    def record(
        self,
        round_: int,
        opened_s: float,
        closed_s: float,
        *,
        step: int,
        clusters: Ints,
        members: Ints | None,
        measured: Measurement,
        personal: PersonalFigures,
        adaptation: AdaptationFigures,
        ledger: Ledger,
        num_holding: int,
        num_clients: int,
        in_flight: int | None,
        clipped: dict[str, int] | None = None,
    ) -> RoundRecord:
        """The record of the finished round.

        `members` (N,) are the cluster labels of all clients, or None if they did not change. Of `num_clients`
        clients `num_holding` hold data. `in_flight` is None where a round is one dispatch and one server
        step: then steps and staleness say nothing. `clipped` is None if detections are not logged.
        """
        several = in_flight is not None
        return RoundRecord(
            round=round_,
            step=step,
            opened_s=opened_s,
            dispatched_s=closed_s if self.dispatched_s is None else self.dispatched_s,
            closed_s=closed_s,
            participants=self.participants,
            completed=self.completed,
            dropped=self.dropped,
            changed=self.changed,
            reported=self.reported,
            nonfinite_reports=self.nonfinite_reports,
            moved=self.moved,
            reclustered=self.reclustered,
            clusters=clusters.tolist(),
            members=members,
            train_loss=self.train_loss,
            **vars(measured),
            **vars(personal),
            trained_accuracy=self.trained_accuracy,
            **vars(ledger),
            adaptation_samples=adaptation.samples,
            adaptation_s=adaptation.computing_s,
            nonfinite_copies=adaptation.nonfinite_copies,
            kmeans_clients=None if self.fitted is None else self.fitted.kmeans_clients,
            silhouette_clients=None if self.fitted is None else self.fitted.silhouette_clients,
            rejected=self.rejected,
            forgotten=self.forgotten,
            crashed=self.crashed,
            trigger=self.trigger,
            silhouettes=None if self.fitted is None else dict(self.fitted.silhouettes),
            holding=None if num_holding == num_clients else num_holding,
            steps=self.steps if several else None,
            staleness=self.staleness / len(self.completed) if several and self.completed else None,
            largest_staleness=self.largest_staleness if several else None,
            in_flight=in_flight,
            decided=None if clipped is None else self.decided,
            flagged=None if clipped is None else {name: self.flagged.get(name, []) for name in clipped},
            clipped=clipped,
            noted=self._all_noted() or None,
        )

    def _all_noted(self) -> dict[str, float]:
        """What parts noted, and of tasks that stop early the mean epochs and who holds nothing out."""
        if not self.epochs:
            return self.noted
        own = {"epochs": float(np.mean(self.epochs)), "without_held_out": float(self.without_held_out)}
        return {**self.noted, **own}


def _union(ids: list[int], more: Ints) -> list[int]:
    """The ids of both, ascending."""
    union: list[int] = (np.union1d(ids, more).astype(np.int64) if ids else more).tolist()
    return union
