from __future__ import annotations

import numpy as np
import pytest

from emulator.arrays import Floats, Floats32, Ints
from traces.ways import Ways


class Three:
    """Three samples of two features, of labels 0, 1 and 2."""

    sample_shape = (2,)
    num_labels = 3

    def __len__(self) -> int:
        return 3

    def features(self, rows: Ints) -> Floats32:
        return np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)[rows]

    def labels(self, rows: Ints) -> Ints:
        return np.arange(3)[rows]

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 7 * rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        return np.arange(per_label)


def plus(features: Floats32, ways: Floats) -> Floats32:
    """Features with the first number of a way added; as they are where it is NaN."""
    added = np.nan_to_num(ways[:, :1]) if ways.shape[1] else 0
    return (features + added).astype(np.float32)


EVERY = np.arange(3)


def test_rows_of_the_plain_way_are_those_of_the_reader() -> None:
    ways = Ways(Three(), plus)
    ways.add(np.array([[10.0]]), np.array([[2, 1, 0]]))
    assert ways.features(EVERY).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert ways.labels(EVERY).tolist() == [0, 1, 2]
    assert ways.reference_rows(2).tolist() == [0, 1]
    assert len(ways) == 3


def test_a_row_of_another_way_has_other_features_and_labels_and_the_same_key() -> None:
    ways = Ways(Three(), plus)
    tens, swapped = ways.add(np.array([[10.0], [np.nan]]), np.array([[0, 1, 2], [1, 0, 2]]))
    assert (tens, swapped) == (3, 6)
    rows = np.array([2, tens + 2, swapped + 1, 0])
    assert ways.features(rows).tolist() == [[5, 6], [15, 16], [3, 4], [1, 2]]
    assert ways.labels(rows).tolist() == [2, 2, 0, 0]
    assert ways.sample_keys(rows).tolist() == [[2, 14], [2, 14], [1, 7], [0, 0]]


def test_ways_for_now_are_forgotten_and_their_numbers_used_again() -> None:
    ways = Ways(Three(), plus)
    kept = ways.add(np.array([[1.0]]))
    with ways.for_now(np.array([[2.0], [3.0]])) as shift:
        assert ways.features(shift).tolist() == [[3, 4], [4, 5]]
    assert ways.num_known == 1
    with pytest.raises(KeyError, match="ways \\[2, 3\\] are not known"):
        ways.features(shift)
    assert ways.features(kept).tolist() == [[2, 3]]


def test_only_ways_of_given_rows_are_kept_and_new_ones_never_have_their_numbers() -> None:
    ways = Ways(Three(), plus)
    first, second, third = ways.add(np.array([[1.0], [2.0], [3.0]]))
    ways.keep(np.array([second + 1, 0]))
    assert ways.features(np.array([second])).tolist() == [[3, 4]]
    for forgotten in (first, third):
        with pytest.raises(KeyError):
            ways.labels(np.array([forgotten]))
    assert ways.add(np.array([[9.0]])).tolist() == [third + 3]


def test_ways_are_stored_and_restored() -> None:
    ways, again = Ways(Three(), plus), Ways(Three(), plus)
    rows = ways.add(np.array([[1.0], [2.0]]), np.array([[2, 0, 1], [0, 2, 1]])) + 1
    again.restore(ways.state())
    assert again.features(rows).tolist() == ways.features(rows).tolist() == [[4, 5], [5, 6]]
    assert again.labels(rows).tolist() == ways.labels(rows).tolist() == [0, 2]
    assert again.add(np.array([[0.0]])).tolist() == ways.add(np.array([[0.0]])).tolist()


def test_the_shape_of_samples_is_that_as_which_they_are_read() -> None:
    def doubled(features: Floats32, ways: Floats) -> Floats32:
        return np.hstack([features, features])

    ways = Ways(Three(), doubled)
    assert ways.sample_shape == (4,)
    assert ways.num_features == 2
    assert ways.plain(EVERY).shape == (3, 2)
