"""Plays rounds of the real federation over fake ports, with a part under test among simple parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.assignment import Assignment
from coordinator.clusterers import Clusterer
from coordinator.detectors.changed import Changed
from coordinator.federation import Federation
from coordinator.federation.method import Parts, RoundSettings
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.pacing import CohortSize
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.selectors.random import Random
from coordinator.view import Part, View
from emulator.arrays import Bools
from emulator.latency import DriftscaleLatency
from emulator.messages import EndedVisits, Outcome
from emulator.plugins import NoSettings
from emulator.seeding import RandomStreams
from experiments.contracts.ports import SLOT_S, LabelStream, Presence, ToyModels, initial, quick_fleet

SLOTS = 3
"""Availability slots in a round.

The round opens in the first, its visits are in the second, and in the third updates are aggregated and
clients are served.
"""


P = TypeVar("P", bound=Part)


def with_streams(part: P) -> P:
    """The part, with random streams as a run would give them to it."""
    part.streams = RandomStreams(9)
    return part


class Scripted(Clusterer):
    """A clusterer whose assignments are given by round; in other rounds nothing changes."""

    Settings = NoSettings

    def __init__(self, script: Mapping[int, Assignment]) -> None:
        self.script = script

    def on_data(self, view: View) -> Assignment | None:
        return self.script.get(view.round)


class Rounds:
    """A federation that plays round after round, at instants that a coordinator could give it.

    `parts` replace the simple parts, by their names in `Parts`. `online` (slots, N): whether each client is
    online in each slot, `SLOTS` of them per round; None if all clients always are. With `abandons` the last
    visit of a round of several is abandoned, unless it was dropped.
    """

    def __init__(
        self, stream: LabelStream, online: Bools | None = None, abandons: bool = False, **parts: Any
    ) -> None:
        clients = stream.num_clients
        self._abandons = abandons
        self.federation = Federation(
            replace(_simple_parts(clients), **parts),
            RoundSettings(rounds=1, local_steps=4, batch_size=2, learning_rate=0.1),
            stream=stream,
            availability=Presence(np.ones((1, clients), dtype=bool) if online is None else online),
            latency=DriftscaleLatency(quick_fleet(clients)),
            executor=ToyModels(stream),
            streams=RandomStreams(9),
        )
        self.round = -1
        self._opened_s = self._now_s = 0.0
        self._visits = 0

    def play(self) -> None:
        """Play the next round, from its opening to its record."""
        self.open()
        self.dispatch()

    def open(self) -> None:
        """Open the next round: the clusterer's `on_data` and the memory's `claim` are called."""
        self.round += 1
        self._opened_s = self._at(SLOTS * SLOT_S * self.round)
        self.federation.open_round(self.round, self._opened_s)

    def dispatch(self) -> None:
        """Select participants, dispatch their visits, and close the round when all have ended.

        Does nothing if no client has anything to train.
        """
        federation, start_s = self.federation, SLOTS * SLOT_S * self.round
        if not federation.selectable.sizes(self.round).any():
            return
        self.select()
        sent_s = self._at(start_s + SLOT_S)
        sent = federation.dispatch(self.round, self.round, self._visits, sent_s)
        self._visits += len(sent.clients)
        ends = sent.ends
        outcome = ends.outcome.copy()
        if self._abandons and len(ends) > 1 and outcome[-1] == Outcome.COMPLETED:
            outcome[-1] = Outcome.ABANDONED
        ended = EndedVisits(
            *(ends.visit, ends.client, sent.lanes, np.full(len(ends), sent_s), ends.time_s, outcome),
            np.zeros(len(ends), dtype=np.int64),
        )
        now_s = self._at(max(start_s + 2 * SLOT_S, float(ends.time_s.max())))
        federation.aggregate(self.round, self.round, ended, now_s)
        federation.close_round(self.round, self._opened_s, now_s)

    def select(self) -> None:
        """Select participants; if too few clients are online, open the round again later and retry once.

        Raises AssertionError if too few are online then, too.
        """
        federation, pacing = self.federation, self.federation.parts.pacing
        for _ in range(2):
            sizes = federation.selectable.sizes(self.round)
            quota = pacing.quota(sizes)
            wanted = pacing.opens(quota, sizes, 0 * sizes[None], 0 * sizes[None])[0]
            departs_s = federation.select(self.round, self.round, wanted, self._now_s)
            if departs_s is not None:
                self._at(departs_s)
                return
            self._at(federation.selectable.enough_online_s(self.round, wanted, self._opened_s, self._now_s))
            federation.open_round(self.round, self._now_s)
        raise AssertionError("too few clients are online at the instant at which enough could be online")

    def _at(self, time_s: float) -> float:
        """Advance to `time_s`, or stay at the present instant if that is later; returns the new instant."""
        self._now_s = max(self._now_s, time_s)
        return self._now_s


def _simple_parts(num_clients: int) -> Parts:
    """Simple parts: one model for all clients, trained by two of three clients in each round."""
    return Parts(
        clusterer=Scripted({0: Assignment.fresh(np.zeros(num_clients, dtype=np.int64), 1, initial(0))}),
        detectors={"changed": Changed(NoSettings())},
        selector=Random(NoSettings()),
        memory=Claimed(ClaimedSettings()),
        aggregator=FedAvg(FedAvgSettings()),
        pacing=Sync(SyncSettings(), CohortSize(participants=-(-2 * num_clients // 3))),
    )
