from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.stats import chisquare

from coordinator.selectors.draws import by_lane, weighted_draw
from emulator.arrays import Ints
from tests.fakes import a_view, ints


def test_every_ordered_draw_has_the_probability_of_drawing_one_after_the_other() -> None:
    # Of weights 1, 2 and 3 first i, then j, with probability w_i / 6 times w_j / (6 - w_i).
    ids, weights, generator = ints(4, 7, 9), ints(1, 2, 3), np.random.default_rng(0)
    pairs = list(permutations(range(3), 2))
    drawn = [tuple(weighted_draw(ids, weights, 2, generator).tolist()) for _ in range(6000)]
    counts = [drawn.count((int(ids[first]), int(ids[second]))) for first, second in pairs]
    likely = [weights[i] / 6 * weights[j] / (6 - weights[i]) for i, j in pairs]
    assert sum(counts) == 6000
    assert chisquare(counts, 6000 * np.array(likely)).pvalue > 1e-3


def test_a_draw_of_more_than_there_are_has_them_all_and_one_of_none_is_empty() -> None:
    generator = np.random.default_rng(0)
    for count in (3, 8):
        assert sorted(weighted_draw(ints(5, 2, 9), ints(1, 1, 1), count, generator).tolist()) == [2, 5, 9]
    assert weighted_draw(ints(5, 2, 9), ints(1, 1, 1), 0, generator).tolist() == []
    assert weighted_draw(ints(), ints(), 2, generator).tolist() == []


def test_lanes_have_streams_of_their_own_and_their_clients_come_back_ascending() -> None:
    drawn: dict[int, float] = {}

    def choose(lane: int, count: int, generator: np.random.Generator) -> Ints:
        drawn[lane] = generator.random()
        return ints(*range(10 * lane + count, 10 * lane, -1))

    view = a_view(num_clients=30, round_=3)
    assert by_lane(ints(2, 0, 1), view, choose).tolist() == [1, 2, 21]
    assert drawn == {lane: view.rng("selection", lane).random() for lane in range(3)}
