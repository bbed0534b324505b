from __future__ import annotations

import json

import numpy as np
import pytest

from traces.building.sums import ByteSums, Moments


def test_blocks_merge_to_the_moments_of_all_rows() -> None:
    values = np.random.default_rng(0).normal([1e6, -3.0], [1.0, 5.0], (1000, 2))
    weight = np.random.default_rng(1).integers(0, 3, 1000)
    values[::10, 1] = np.nan
    moments = Moments(2)
    for first in range(0, 1000, 170):
        moments.add(values[first : first + 170], weight[first : first + 170])
    repeated = np.repeat(values, weight, axis=0)
    assert moments.mean == pytest.approx(np.nanmean(repeated, axis=0), rel=1e-12)
    assert moments.deviation() == pytest.approx(np.nanstd(repeated, axis=0), rel=1e-9)


def test_a_constant_column_has_the_deviation_one() -> None:
    moments = Moments(2)
    moments.add(np.full((7, 2), [0.1, 0.0]), None)
    moments.add(np.full((9, 2), [0.1, 0.0]), np.ones(9, dtype=bool))
    assert moments.deviation().tolist() == [1.0, 1.0]


def test_a_state_that_is_stored_as_json_is_restored_to_the_last_bit() -> None:
    block = np.random.default_rng(0).normal(size=(50, 3))
    straight, resumed = Moments(3), Moments(3)
    straight.add(block[:20], None)
    resumed.restore(json.loads(json.dumps(straight.as_json())))
    for moments in (straight, resumed):
        moments.add(block[20:], None)
    assert straight.as_json() == resumed.as_json()


def test_rows_without_weight_change_nothing() -> None:
    moments = Moments(1)
    moments.add(np.array([[1.0], [np.nan]]), np.array([0, 0]))
    assert moments.count.tolist() == [0.0]


def test_bytes_that_count_often_are_summed_exactly() -> None:
    """Two samples of 0 and 255, the second of which counts 2^31 - 1 times: their squares pass 64 bits."""
    samples, times = np.array([[[0] * 999], [[255] * 999]], np.uint8).repeat(100, axis=0), 2**31 - 1
    sums = ByteSums.of(samples, np.repeat([1, times], 100))
    assert sums.count == 999 * 100 * (1 + times)
    assert sums.squares == (999 * 100 * times * 255**2,)
    assert sums.squares[0] > 2**63
