"""Samples in proportion to scores, and the windows that they are drawn from."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from coordinator.selectors.utility import Scale, drawn, exploited, explored, learned, scores


def pairs(weight: list[float], times: int = 4000) -> dict[tuple[int, ...], int]:
    """How often each pair is drawn."""
    found = [tuple(drawn(np.array(weight), 2, np.random.default_rng(seed)).tolist()) for seed in range(times)]
    values, counts = np.unique(np.array(found), axis=0, return_counts=True)
    return dict(zip(map(tuple, values.tolist()), counts.tolist(), strict=True))


def test_pairs_are_as_likely_as_those_of_one_draw_after_the_other() -> None:
    # Of the weights 1, 2 and 5: first a, then b with b / (8 - a), or the other way around.
    counts = pairs([1.0, 2.0, 5.0])
    expected = {
        (0, 1): 1 / 8 * 2 / 7 + 2 / 8 * 1 / 6,
        (0, 2): 1 / 8 * 5 / 7 + 5 / 8 * 1 / 3,
        (1, 2): 2 / 8 * 5 / 6 + 5 / 8 * 2 / 3,
    }
    assert set(counts) == set(expected)
    share = [counts[pair] for pair in expected]
    assert chisquare(share, [4000 * chance for chance in expected.values()]).pvalue > 1e-3


def test_a_client_of_weight_0_is_drawn_only_if_no_other_is_left() -> None:
    assert set(pairs([0.0, 3.0, 1.0], 200)) == {(1, 2)}
    assert set(pairs([0.0, 3.0, 0.0], 200)) == {(0, 1)}


def test_clients_below_the_cut_off_are_drawn_only_if_there_are_not_ten_times_as_many_above() -> None:
    # One of 12 is wanted; the second-best score is 1, the cut-off 0.5.
    generator = np.random.default_rng(4)
    above = np.array([1.0] * 11 + [0.4])
    assert {int(exploited(above, 1, 0.5, generator)[0]) for _ in range(2000)} == set(range(11))
    # With ten above it, the eleven best are drawn from, and of the two next ones that with the lower id.
    fewer = np.array([0.4, 0.4] + [1.0] * 10)
    assert {int(exploited(fewer, 1, 0.5, generator)[0]) for _ in range(2000)} == set(range(12)) - {1}


def test_the_cut_off_is_a_share_of_the_best_score_left_over() -> None:
    # Two are wanted; the third-best score is 4, and the share 0.5: all 30 with the score 2 count.
    generator = np.random.default_rng(4)
    score = np.array([100.0, 80.0, 4.0] + [2.0] * 30 + [1.9] * 30)
    best = {one for _ in range(3000) for one in exploited(score, 2, 0.5, generator).tolist()}
    assert max(best) <= 32
    assert len(best) > 15


def test_untried_clients_are_drawn_from_five_times_their_number() -> None:
    weight = np.array([1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 9.0])
    generator = np.random.default_rng(4)
    assert {int(explored(weight, 1, 5.0, generator)[0]) for _ in range(500)} == {2, 3, 4, 5, 6}
    assert explored(weight, 7, 5.0, generator).tolist() == list(range(7))
    assert explored(weight, 0, 5.0, generator).tolist() == []


def test_utilities_without_any_above_0_have_the_narrowest_scale() -> None:
    scale = Scale.of(np.zeros(3), 0.9)
    assert (scale.low, scale.width, scale.clip) == (0.0, 1e-4, 0.0)
    assert scores(np.zeros(2), np.array([1, 2]), 1, scale).tolist() == [0.0, 0.0]


def test_equal_utilities_are_not_blown_up() -> None:
    scale = Scale.of(np.full(4, 1e-3), 0.9)
    assert scale.width == 1e-4
    assert scores(np.array([1e-3]), np.array([1]), 1, scale).round(12).tolist() == [0.01]


def test_without_updates_nothing_is_learned() -> None:
    clients, utility = learned(None, 10)
    assert (len(clients), len(utility)) == (0, 0)
