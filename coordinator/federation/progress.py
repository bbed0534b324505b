"""What the round at hand has come to, until it is recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.assignment import Fit
from coordinator.federation.cohort import Cohort
from coordinator.federation.measurement import Measurement
from emulator.arrays import Ints
from emulator.ledger import Ledger
from emulator.messages import Outcome
from emulator.storage.runlog import RoundRecord
from emulator.trigger import Trigger


@dataclass
class RoundProgress:
    """The names are those of `emulator.storage.runlog.RoundRecord`."""

    number: int
    opened_s: float
    changed: int = 0
    reported: int = 0
    moved: int = 0
    reclustered: bool = False
    fitted: Fit | None = None
    trigger: Trigger | None = None
    members_changed: bool = False
    rejected: list[int] = field(default_factory=list)
    crashed: list[int] = field(default_factory=list)

    def asked(self, trigger: Trigger) -> None:
        """A trigger was asked. Of several, since a round that waited is opened again, the last that fired
        counts; else the last."""
        if trigger.fired or self.trigger is None or not self.trigger.fired:
            self.trigger = trigger

    def record(
        self,
        cohort: Cohort,
        closed_s: float,
        *,
        step: int,
        clusters: Ints,
        members: Ints | None,
        train_loss: float | None,
        measured: Measurement,
        ledger: Ledger,
    ) -> RoundRecord:
        """The round is over: what the log says of it."""
        return RoundRecord(
            round=self.number,
            step=step,
            opened_s=self.opened_s,
            dispatched_s=cohort.start_s,
            closed_s=closed_s,
            participants=cohort.clients.tolist(),
            kept=cohort.ids(Outcome.ABSORBED).tolist(),
            dropped=cohort.ids(Outcome.DROPPED).tolist(),
            changed=self.changed,
            reported=self.reported,
            moved=self.moved,
            reclustered=self.reclustered,
            clusters=clusters.tolist(),
            members=members,
            train_loss=train_loss,
            **vars(measured),
            **vars(ledger),
            kmeans_clients=None if self.fitted is None else self.fitted.kmeans_clients,
            silhouette_clients=None if self.fitted is None else self.fitted.silhouette_clients,
            rejected=self.rejected,
            crashed=self.crashed,
            trigger=self.trigger,
            silhouettes=None if self.fitted is None else dict(self.fitted.silhouettes),
        )
