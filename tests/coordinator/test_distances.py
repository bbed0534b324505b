import math

import numpy as np
import pytest

from coordinator import distances
from coordinator.distances import DISTANCES, comparable, cosine, js, paired, unit_rows


def rows(*values) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def js_of(p, q) -> float:
    """The root of the divergence by its definition, one label after the other."""
    total = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        total += sum(0.5 * share * math.log(share / middle) for share in (a, b) if share > 0)
    return math.sqrt(total)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("l1", 7.0), ("euclidean", 5.0), ("squared_euclidean", 25.0), ("cosine", 1 - 24 / 25)],
)
def test_three_and_four_by_hand(name, wanted):
    # (3, 4) and (0, 0) or, for the cosine, (4, 3): 24 / (5 x 5).
    other = rows([4, 3]) if name == "cosine" else rows([0, 0])
    assert DISTANCES[name](rows([3, 4]), other) == pytest.approx(rows([wanted]), abs=1e-15)


def test_js_by_hand_to_12_digits():
    # p = (1/2, 1/2, 0), q = (0, 1/2, 1/2): m = (1/4, 1/2, 1/4), and both divergences are (1/2) ln 2.
    assert js(rows([0.5, 0.5, 0]), rows([0, 0.5, 0.5]))[0, 0] == pytest.approx(
        math.sqrt(0.5 * math.log(2)), rel=1e-12
    )
    # p = (3/4, 1/4), q = (1/4, 3/4): m = (1/2, 1/2), KL = (3/4) ln(3/2) + (1/4) ln(1/2) for both.
    wanted = math.sqrt(0.75 * math.log(1.5) - 0.25 * math.log(2))
    assert js(rows([0.75, 0.25]), rows([0.25, 0.75]))[0, 0] == pytest.approx(wanted, rel=1e-12)
    assert js(rows([1, 0]), rows([0, 1]))[0, 0] == pytest.approx(math.sqrt(math.log(2)), rel=1e-12)


def test_js_is_its_definition_for_reports_near_and_far():
    rng = np.random.default_rng(0)
    p = rng.multinomial(20, rng.dirichlet(np.full(6, 0.5), size=30)) / 20
    for shift in (1.0, 1e-2):
        q = (1 - shift) * p + shift * rng.dirichlet(np.ones(6), size=30)
        wanted = [js_of(*pair) for pair in zip(p, q, strict=True)]
        assert paired(p, q, "js") == pytest.approx(rows(wanted)[0], rel=1e-11)


def test_js_of_reports_that_hardly_differ_keeps_its_digits():
    # (1/2 - e, 1/2 + e) from (1/2, 1/2): e^2 / 2 to first order, so that the distance is e / sqrt(2).
    for e in (1e-4, 1e-8, 1e-12):
        there = rows([0.5 - e, 0.5 + e])
        real_e = (there[0, 1] - there[0, 0]) / 2
        assert js(rows([0.5, 0.5]), there)[0, 0] == pytest.approx(real_e / math.sqrt(2), rel=1e-7)


@pytest.mark.parametrize("name", DISTANCES)
def test_a_distance_is_symmetric_and_0_between_equal_rows_to_the_bit(name):
    reports = np.random.default_rng(1).dirichlet(np.full(7, 0.3), size=20)
    apart = DISTANCES[name](reports, reports)
    assert np.diagonal(apart).tolist() == [0.0] * 20
    assert apart == pytest.approx(apart.T, abs=1e-15)
    assert apart.min() == 0.0


@pytest.mark.parametrize("name", DISTANCES)
def test_no_rows_have_no_distances(name):
    assert DISTANCES[name](np.zeros((0, 3)), np.ones((2, 3)) / 3).shape == (0, 2)
    assert paired(np.zeros((0, 3)), np.zeros((0, 3)), name).shape == (0,)


@pytest.mark.parametrize("name", DISTANCES)
def test_a_report_that_is_not_a_number_is_at_no_distance(name):
    assert np.isnan(DISTANCES[name](rows([np.nan, 1.0]), rows([0.5, 0.5]))).all()


@pytest.mark.parametrize("at_once", [1, 7, 64])
def test_blocks_change_no_bit_of_js(monkeypatch, at_once):
    left, right = np.random.default_rng(2).dirichlet(np.full(5, 0.3), size=(2, 20))
    whole = js(left, right)
    monkeypatch.setattr(distances, "AT_ONCE", at_once)
    assert js(left, right).tolist() == whole.tolist()


def test_a_row_of_zeros_is_at_1_from_all_others_in_cosine_and_at_0_from_another():
    assert cosine(rows([0, 0], [1, 0]), rows([0, 0], [0, 2], [-3, 0])).tolist() == [[0, 1, 1], [1, 1, 2]]


def test_the_cosine_is_that_of_directions_however_long_rows_are():
    assert cosine(rows([1e-200, 0]), rows([1e200, 1e200]))[0, 0] == pytest.approx(1 - math.sqrt(0.5))


def test_unit_rows_have_length_1_and_only_the_cosine_needs_them():
    reports = rows([3, 4], [0, 0])
    assert unit_rows(reports).tolist() == [[0.6, 0.8], [0, 0]]
    assert comparable(reports, "cosine").tolist() == [[0.6, 0.8], [0, 0]]
    assert comparable(reports, "l1") is reports
