from __future__ import annotations

import numpy as np
import pytest

from traces.patterns import NAMES, SEEDED, drift_cells, named_pattern, read_pattern


@pytest.mark.parametrize("name", [name for name in NAMES if name != SEEDED])
def test_every_named_pattern_has_ten_clients_in_ten_steps_and_a_last_test(name: str) -> None:
    pattern = named_pattern(name)
    assert pattern.shape == (11, 10)
    assert (pattern[0] == 0).all()
    assert set(np.unique(pattern)) <= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "cells"),
    [("Y", 10), ("Z", 10), ("F", 29), ("R0", 32), ("R1", 28), ("R2", 32), ("R3", 32), ("R4", 31)],
)
def test_drift_cells_are_as_many_as_in_the_authors_files(name: str, cells: int) -> None:
    drifts = drift_cells(named_pattern(name))
    assert drifts.size == 100
    assert drifts.sum() == cells


def test_a_method_that_fails_in_drift_cells_alone_scores_71_on_pattern_f() -> None:
    right = np.where(drift_cells(named_pattern("F")), 0.0, 100.0)
    assert right.mean() == pytest.approx(71.0)


def test_two_clients_of_pattern_y_drift_first_and_two_last() -> None:
    drifts = drift_cells(named_pattern("Y"))
    assert drifts.sum(axis=1).tolist() == [0, 0, 2, 3, 1, 2, 0, 2, 0, 0]
    assert np.flatnonzero(drifts[2]).tolist() == [1, 7]
    assert np.flatnonzero(drifts[7]).tolist() == [4, 9]


def test_z_is_y_with_another_concept_and_x_and_w_are_y_with_an_earlier_start() -> None:
    y, z, x, w = (named_pattern(name) for name in "YZXW")
    assert (z == 2 * y).all()
    for earlier, cells in ((x, [(1, 1), (2, 1)]), (w, [(2, 1), (2, 7)])):
        assert list(zip(*(index.tolist() for index in np.nonzero(earlier != y)), strict=True)) == cells


def test_clients_of_an_r_pattern_redraw_their_concept_every_two_steps() -> None:
    drifts = drift_cells(named_pattern("R3"))
    assert np.flatnonzero(drifts.any(axis=1)).tolist() == [1, 3, 5, 7]
    assert named_pattern("R3")[[2, 3, 8, 10]].tolist() == [
        [0, 1, 1, 2, 0, 2, 1, 1, 2, 0],
        [0, 1, 1, 2, 0, 2, 1, 1, 2, 0],
        [3, 0, 2, 1, 2, 2, 2, 0, 1, 0],
        [3, 0, 2, 1, 2, 2, 2, 0, 1, 0],
    ]


def test_ten_patterns_redraw_and_no_two_are_the_same() -> None:
    redrawn = {named_pattern(f"R{seed}").tobytes() for seed in range(10)}
    assert len(redrawn) == 10


def test_a_pattern_is_read_row_by_row() -> None:
    pattern = read_pattern(["012", "912"])
    assert pattern.tolist() == [[0, 1, 2], [9, 1, 2]]
    assert drift_cells(pattern).tolist() == [[True, False, False]]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "at least 2 rows, .*; this one has 0"),
        (["000"], "at least 2 rows, .*; this one has 1"),
        (["000", "00"], "row 1 of the pattern has 2 digits, row 0 has 3"),
        (["000", "0A0"], "row 1 of the pattern is '0A0', not a string of digits"),
        (["", ""], "row 0 of the pattern is '', not a string of digits"),
        (["0", "²"], "row 1 of the pattern is '²', not a string of digits"),
        ([0, 1], "row 0 of the pattern is 0, not a string of digits"),
    ],
)
def test_an_invalid_pattern_is_refused(rows: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_pattern(rows)


def test_an_unknown_name_lists_the_patterns() -> None:
    with pytest.raises(ValueError, match=r"no such pattern; choices: Y, Z, X, W, F, R0, .*, R, or a list"):
        named_pattern("Q")
    with pytest.raises(ValueError, match="did you mean 'R1'"):
        named_pattern("R11")
