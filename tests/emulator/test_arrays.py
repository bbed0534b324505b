from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emulator.arrays import NARROW, Floats, Floats32, weighted_sums


def test_each_row_of_weights_makes_one_mean_of_the_rows() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    weights = np.array([[0.25, 0.75], [1.0, -1.0]])
    assert weighted_sums(weights, rows).tolist() == [[2.5, 5.0], [-2.0, -4.0]]


def test_a_unit_row_copies_exactly_even_beside_rows_that_are_not_finite() -> None:
    model = np.float32([0.1, -3.7e-12, 2.5e30])
    rows = np.stack([np.full(3, np.nan, np.float32), model, np.full(3, np.inf, np.float32)])
    sums = weighted_sums(np.array([[0.0, 1.0, 0.0]]), rows)
    assert sums.astype(np.float32).tobytes() == model.tobytes()


def test_the_sum_runs_in_ascending_row_order() -> None:
    # In float64 1e16 + 1 is 1e16: when the 1 is added decides whether it is lost.
    ones = np.ones((1, 3))
    assert weighted_sums(ones, np.float32([[1e16], [-1e16], [1]])).item() == 1.0
    assert weighted_sums(ones, np.float32([[1], [1e16], [-1e16]])).item() == 0.0


def test_sums_are_kept_in_double_precision() -> None:
    rows = np.float32([[1.0], [2**-40]])
    assert weighted_sums(np.ones((1, 2)), rows).item() == 1.0 + 2**-40


def test_no_rows_sum_to_nothing() -> None:
    assert weighted_sums(np.zeros((2, 0)), np.zeros((0, 3), np.float32)).tolist() == [[0.0] * 3] * 2


@pytest.mark.slow
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_sums_equal_the_naive_double_loop_to_the_bit(k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((k, n)) * (rng.random((k, n)) < 0.7)
    rows = rng.standard_normal((n, 3)).astype(np.float32)
    expected = np.zeros((k, 3))
    for i in range(k):
        for j in range(n):
            expected[i] += weights[i, j] * rows[j].astype(np.float64)
    assert weighted_sums(weights, rows).tolist() == expected.tolist()


@pytest.mark.slow
@given(
    weights=hnp.arrays(np.float64, (2, 5), elements=st.sampled_from([0.0, -0.0, 0.5, -2.0, 1e300])),
    rows=hnp.arrays(
        np.float32,
        st.tuples(st.just(5), st.sampled_from([0, 1, NARROW, NARROW + 1])),
        elements=st.sampled_from([0.0, -0.0, 1.0, 3.3, -1e30, math.inf, -math.inf, math.nan]),
        fill=st.just(0.1),
    ),
)
def test_narrow_and_wide_rows_have_the_bits_of_one_addition_after_another(
    weights: Floats, rows: Floats32
) -> None:
    expected = np.zeros((2, rows.shape[1]))
    with np.errstate(all="ignore"):
        for total, row_weights in zip(expected, weights, strict=True):
            for weight, row in zip(row_weights, rows, strict=True):
                if weight != 0:
                    total += weight * row
        sums = weighted_sums(weights, rows)
    assert np.array_equal(np.isnan(sums), np.isnan(expected))
    numbers = ~np.isnan(expected)  # which bits a NaN has is the processor's affair
    assert sums[numbers].tobytes() == expected[numbers].tobytes()
