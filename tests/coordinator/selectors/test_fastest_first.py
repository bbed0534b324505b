"""README's selector in ten lines: the clients whose visit is expected to be shortest."""

from __future__ import annotations

import numpy as np

from coordinator.selectors import Candidates, Selector
from coordinator.view import View
from emulator.arrays import Ints
from emulator.plugins import NoSettings
from experiments.contracts import check_part, check_selector
from tests.fakes import FakeAvailability, FakeExecutor, Population, a_fleet


class FastestFirst(Selector):
    """The clients of each lane whose visit is expected to be shortest; ties go to the lowest id."""

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        chosen = []
        for lane, count in enumerate(wanted):
            online = candidates.ids(lane)
            fastest = np.argsort(view.expected_s(online), kind="stable")
            chosen.append(online[fastest[:count]])
        return np.sort(np.concatenate(chosen))


def test_it_passes_the_contract_of_selectors() -> None:
    check_part(FastestFirst, NoSettings())
    check_selector(lambda: FastestFirst(NoSettings()))


def test_it_selects_the_fastest_clients_that_are_online() -> None:
    # Client 1 is the fastest, and offline; of 0 and 3, which are equal, 0 comes first.
    fleet = a_fleet(5, seconds_per_sample=[3.0, 1.0, 2.0, 3.0, 9.0])
    population = Population(
        FakeExecutor([0.0] * 5),
        fleet=fleet,
        availability=FakeAvailability({1: []}),
        selector=FastestFirst(NoSettings()),
        participants=2,
    )
    assert population.play().records[0].completed == [0, 2]
