"""Over random fleets, drop-outs and pacings, the counts include every visit at every step of a run."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator.coordinator import Coordinator
from coordinator.pacing.fixed import Fixed, FixedSettings
from coordinator.pacing.sync import Sync, SyncSettings
from coordinator.population import FaultSettings
from coordinator.visits import VisitCounts
from emulator.emulation import Emulation
from tests.fakes import INF, FakeAvailability, FakeExecutor, MemoryLog, Population, a_fleet

PACINGS = {
    "lane": lambda cohort: Sync(SyncSettings(), cohort),
    "pooled": lambda cohort: Sync(SyncSettings(close="pooled"), cohort),
    "deadline": lambda cohort: Sync(SyncSettings(deadline_s=12.0), cohort),
    "fixed": lambda cohort: Fixed(FixedSettings(duration_s=12.0), cohort),
}


@given(st.data())
def test_visits_opened_are_completed_dropped_abandoned_or_out_after_each_step(data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, 8))
    speeds = data.draw(st.lists(st.sampled_from([0.5, 1.0, 5.0, 40.0]), min_size=clients, max_size=clients))
    # Online from 0 on for a while, and again from 50 s on without end.
    offline_s = data.draw(st.lists(st.sampled_from([3.0, 9.0, INF]), min_size=clients, max_size=clients))
    sessions = {client: [(-INF, end_s), (max(end_s, 50.0), INF)] for client, end_s in enumerate(offline_s)}
    rounds = data.draw(st.integers(1, 4))
    population = Population(
        FakeExecutor(np.linspace(0, 1, clients)),
        availability=FakeAvailability({c: s for c, s in sessions.items() if s[0][1] < INF}),
        fleet=a_fleet(clients, seconds_per_sample=speeds),
        participants=data.draw(st.integers(1, clients)),
        over_commit=data.draw(st.sampled_from([1.0, 1.3, 2.0])),
        pacing=PACINGS[data.draw(st.sampled_from(sorted(PACINGS)))],
        faults=FaultSettings(crash=data.draw(st.sampled_from([0.0, 0.3]))),
        rounds=rounds,
    )
    coordinator, log = population.coordinator(), MemoryLog()
    emulation = Emulation(coordinator, log)
    for _ in emulation.steps():
        counts = coordinator.visits
        ended = counts.completed + counts.waiting + counts.dropped + counts.abandoned
        assert counts.opened == ended + counts.out
        assert counts.out <= len(emulation.in_flight)
        recorded = [(len(r.participants), len(r.completed), len(r.dropped), r.abandoned) for r in log.records]
        sent, completed, dropped, abandoned = np.array(recorded, dtype=int).reshape(-1, 4).sum(axis=0)
        assert_at_least(coordinator, sent, completed, dropped, abandoned)
    assert len(log.records) == rounds
    counts = coordinator.visits
    assert counts == VisitCounts(sent, completed, 0, dropped, abandoned, 0)


def assert_at_least(
    coordinator: Coordinator, sent: int, completed: int, dropped: int, abandoned: int
) -> None:
    """The counts include all visits of the log, and possibly some of the present round."""
    counts = coordinator.visits
    assert counts.opened >= sent
    assert counts.completed >= completed
    assert counts.dropped >= dropped
    assert counts.abandoned >= abandoned
