"""Ranks and smallest values against sorting, with many equal values, too."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.selectors.order_statistics import PARTITIONED, at_rank, lowest
from emulator.arrays import Floats

NUMBER = 3 * PARTITIONED
RNG = np.random.default_rng(7)
EVEN = RNG.random(NUMBER)

COLUMNS: dict[str, Floats] = {
    "few": EVEN[:9],
    "one": EVEN[:1],
    "even": EVEN,
    "ascending": np.sort(EVEN),
    "descending": np.sort(EVEN)[::-1],
    "constant": np.full(NUMBER, 2.0),
    "of two values": np.floor(2 * EVEN),
    "mostly equal": np.where(EVEN < 0.7, 100.0, 300 * EVEN),
    "heavy tail": 1 / EVEN,
    "unlike its sample": np.where(np.arange(NUMBER) % (NUMBER // 2048) == 0, 2.0, EVEN),
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS)
def test_the_value_at_a_rank_is_that_of_the_sorted_values(values: Floats) -> None:
    ascending, last = np.sort(values), len(values) - 1
    before = values.copy()
    for rank in (
        0,
        1,
        350,
        len(values) // 3,
        len(values) // 2,
        int(0.9 * len(values)),
        last - 1,
        last,
        last + 5,
    ):
        assert at_rank(values, max(rank, 0)) == ascending[min(max(rank, 0), last)]
    assert (values == before).all()


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS)
def test_of_equal_values_those_with_the_lowest_index_are_the_smallest(values: Floats) -> None:
    stable = np.argsort(values, kind="stable")
    for count in (0, 1, 5, 1000, len(values), len(values) + 1):
        assert lowest(values, count).tolist() == np.sort(stable[:count]).tolist()
