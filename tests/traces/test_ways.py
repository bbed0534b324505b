"""Row w N + r of the ways of N samples is sample r, read in way w."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from emulator.arrays import Floats, Floats32
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import FakeSamples
from traces import ways as module
from traces.ways import Ways

N = 4


def a_reader() -> FakeSamples:
    """N samples of one feature: 10 times the row; labels 0, 1, 2, 0."""
    return FakeSamples(N, num_labels=3, times=10)


def plus(features: Floats32, ways: Floats) -> Floats32:
    """The features, to which the first number of a way is added."""
    more = ways[:, :1] if ways.shape[1] > 0 else np.zeros((len(ways), 1))
    return features + np.nan_to_num(more).astype(np.float32)


def numbers(*each: float) -> Floats:
    return np.array(each, dtype=np.float64)[:, None]


@pytest.fixture
def ways() -> Iterator[Ways]:
    return Ways(a_reader(), plus)


def read(ways: Ways, *rows: int) -> list[float]:
    return ways.features(np.array(rows, dtype=np.int64))[:, 0].tolist()


def test_without_ways_everything_is_as_the_other_reader_has_it(ways: Ways) -> None:
    rows = np.array([3, 0])
    assert read(ways, 3, 0) == [30, 0]
    assert ways.labels(rows).tolist() == [0, 0]
    assert ways.sample_keys(rows).tolist() == [[3, 10], [0, 7]]
    assert ways.reference_rows(2).tolist() == [0, 1]
    assert (ways.sample_shape, ways.num_labels, ways.num_features, ways.integers) == ((1,), 3, 1, False)
    assert (len(ways), ways.num_known) == (N, 0)


def test_ways_are_numbered_from_1_and_a_row_is_shifted_by_n_for_each(ways: Ways) -> None:
    assert ways.add(numbers(0.5, 0.25)).tolist() == [4, 8]
    assert ways.add(numbers(0.125)).tolist() == [12]
    assert read(ways, 1, 4 + 1, 8 + 1, 12 + 3, 2) == [10, 10.5, 10.25, 30.125, 20]
    assert read(ways) == []


def test_labels_are_read_as_their_way_has_them_and_keys_are_those_of_the_sample(ways: Ways) -> None:
    shift = ways.add(np.zeros((2, 0)), np.array([[2, 0, 1], [0, 1, 2]]))
    rows = np.array([0, 1, 2, 4 + 0, 4 + 1, 4 + 2, 8 + 1])
    assert shift.tolist() == [4, 8]
    assert ways.labels(rows).tolist() == [0, 1, 2, 2, 0, 1, 1]
    assert ways.sample_keys(rows)[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 1]
    assert read(ways, *rows.tolist()) == [0, 10, 20, 0, 10, 20, 10]


def test_a_way_without_numbers_of_its_own_is_plain(ways: Ways) -> None:
    ways.add(numbers(np.nan, 1))
    assert read(ways, 4 + 2, 8 + 2) == [20, 21]


def test_ways_for_now_are_forgotten_and_their_numbers_used_again(ways: Ways) -> None:
    ways.add(numbers(1))
    with ways.for_now(numbers(2, 3)) as shift:
        assert shift.tolist() == [8, 12]
        assert read(ways, 4, 8, 12) == [1, 2, 3]
    assert ways.num_known == 1
    assert ways.add(numbers(4)).tolist() == [8]
    assert read(ways, 4, 8) == [1, 4]


def test_ways_that_are_not_kept_are_not_known_and_their_numbers_not_used_again(ways: Ways) -> None:
    ways.add(numbers(1, 2, 3))
    ways.keep(np.array([2, 8 + 3, 8]))
    assert ways.num_known == 1
    assert read(ways, 8 + 1, 3) == [12, 30]
    for row in (4, 12):
        with pytest.raises(KeyError, match=rf"ways \[{row // N}\] are not known"):
            ways.features(np.array([row]))
        with pytest.raises(KeyError, match="are not known"):
            ways.labels(np.array([row]))
    assert ways.add(numbers(5)).tolist() == [16]
    ways.keep(np.zeros(0, dtype=np.int64))
    with pytest.raises(KeyError, match=r"ways \[4\] are not known"):
        ways.features(np.array([16]))


def test_a_way_may_have_other_numbers_once_all_others_are_forgotten(ways: Ways) -> None:
    """As a run whose ways have two numbers goes on from a round in which none was known."""
    ways.add(numbers(1))
    ways.keep(np.zeros(0, dtype=np.int64))
    ways.add(np.array([[2.0, 3.0]]))
    assert read(ways, 8) == [2]


def test_ways_are_stored_and_restored(ways: Ways) -> None:
    ways.add(numbers(1, 2), np.array([[1, 0, 2], [2, 1, 0]]))
    ways.keep(np.array([8]))
    resumed = Ways(a_reader(), plus)
    resumed.restore(from_bytes(to_bytes(ways.state())))
    rows = np.array([8, 9, 10, 3])
    assert read(resumed, *rows.tolist()) == read(ways, *rows.tolist()) == [2, 12, 22, 30]
    assert resumed.labels(rows).tolist() == ways.labels(rows).tolist() == [2, 1, 0, 0]
    assert resumed.add(numbers(3)).tolist() == ways.add(numbers(3)).tolist() == [12]


def test_samples_some_at_a_time_are_read_the_same(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    ways.add(np.array([[0.5, 0, 0], [0.25, 0, 0]]))
    rows = [5, 2, 9, 6, 11]
    together = read(ways, *rows)
    for at_once in (1, 3, 7):
        monkeypatch.setattr(module, "AT_ONCE", at_once)
        assert read(ways, *rows) == together == [10.5, 20, 10.25, 20.5, 30.25]
        assert ways.features(np.zeros(0, dtype=np.int64)).shape == (0, 1)


def test_samples_may_be_read_in_another_shape_and_are_so_in_every_way() -> None:
    def beside(features: Floats32, ways: Floats) -> Floats32:
        more = np.nan_to_num(ways) if ways.shape[1] > 0 else np.zeros((len(ways), 2))
        return np.hstack([features, more.astype(np.float32)])

    ways = Ways(a_reader(), beside)
    assert (ways.sample_shape, ways.num_features) == ((3,), 1)
    ways.add(np.array([[1.0, 2.0]]))
    assert ways.features(np.array([2, 6])).tolist() == [[20, 0, 0], [20, 1, 2]]
    assert ways.plain(np.array([2])).tolist() == [[20]]
