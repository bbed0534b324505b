from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chisquare

from coordinator.candidates import Candidates
from coordinator.pacing.buffered import Buffered, BufferedSettings
from coordinator.selectors import Selector
from coordinator.selectors.fewest_updates import FewestUpdates
from coordinator.selectors.random import Random
from emulator.messages import ABANDONED, COMPLETED, DROPPED, EndedVisits
from tests.fakes import NOTHING, FakeExecutor, Population, a_fleet, a_view, ints


def ended(clients: Sequence[int], outcomes: Sequence[int]) -> EndedVisits:
    zeros = np.zeros(len(clients))
    whole = zeros.astype(np.int64)
    return EndedVisits(np.arange(len(clients)), ints(*clients), whole, zeros, zeros, ints(*outcomes), whole)


def selected(
    selector: Selector, candidates: Sequence[np.ndarray], wanted: Sequence[int], round_: int = 0
) -> list[int]:
    available = Candidates(list(candidates), lambda ids: np.ones(len(ids), dtype=bool))
    return selector.select(available, np.array(wanted), a_view(num_clients=20, round_=round_)).tolist()


def after(*visits: EndedVisits) -> FewestUpdates:
    """A selector that has selected once, and then learned of these visits."""
    selector = FewestUpdates(NOTHING)
    selected(selector, [np.arange(20)], [1])
    for of_step in visits:
        selector.feedback(of_step, None)
    return selector


def test_those_with_the_fewest_absorbed_updates_are_chosen():
    # Absorbed: client 0 twice, 1 once, 2 never, 3 once, 4 never.
    selector = after(ended([0, 1, 3], [COMPLETED] * 3), ended([0], [COMPLETED]))
    lane = [np.arange(5)]
    assert selected(selector, lane, [2]) == [2, 4]
    assert selected(selector, lane, [4]) == [1, 2, 3, 4]
    assert selected(selector, lane, [9]) == [0, 1, 2, 3, 4]


def test_visits_that_were_dropped_or_abandoned_do_not_count():
    selector = after(ended([0, 1, 1, 2], [DROPPED, DROPPED, COMPLETED, ABANDONED]))
    assert selected(selector, [np.arange(3)], [2]) == [0, 2]


def test_each_lane_has_its_own_fewest():
    selector = after(ended([0, 1, 4], [COMPLETED] * 3))
    assert selected(selector, [ints(0, 1, 2), ints(4, 5), ints()], [1, 1, 0]) == [2, 5]
    assert selected(selector, [ints(0, 1), ints(4)], [0, 1]) == [4]


def test_ties_are_broken_uniformly_by_the_stream_of_the_lane():
    # Client 3 comes first, and then one of the five that have contributed once.
    selector = after(ended([0, 1, 2, 4, 5], [COMPLETED] * 5))
    drawn = [selected(selector, [np.arange(6)], [2], round_) for round_ in range(2000)]
    others = [next(client for client in chosen if client != 3) for chosen in drawn]
    assert all(3 in chosen for chosen in drawn)
    assert chisquare(np.unique(others, return_counts=True)[1]).pvalue > 1e-3
    assert selected(selector, [np.arange(6)], [2], 7) == drawn[7]


def absorbed(selector: Selector, seconds: Sequence[float]) -> list[int]:
    """How many updates of each client were absorbed, of 300 one by one, with four visits out at a time."""
    played = Population(
        FakeExecutor(np.linspace(0, 1, len(seconds))),
        fleet=a_fleet(len(seconds), seconds, 16.0, 16.0),
        selector=selector,
        pacing=lambda cohort: Buffered(BufferedSettings(buffer=1, concurrency=4), cohort),
        rounds=15,
        participants=20,
    ).play()
    clients = [client for record in played.records for client in record.completed]
    assert len(clients) == 300
    return np.bincount(clients, minlength=len(seconds)).tolist()


def test_clients_of_different_speeds_contribute_nearly_equally_often():
    seconds = np.linspace(1, 2, 20).tolist()
    even, uniform = (absorbed(part, seconds) for part in (FewestUpdates(NOTHING), Random(NOTHING)))
    assert max(even) - min(even) <= 2
    assert max(uniform) - min(uniform) > 5
