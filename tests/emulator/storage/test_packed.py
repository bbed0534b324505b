from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.storage.packed import PLAIN, packed, unpacked

NUMBERS = st.lists(st.integers(-(2**62), 2**62 - 1), min_size=1, max_size=5)


def test_a_few_clients_are_a_plain_list_and_nan_is_null() -> None:
    assert packed(np.array([3, -1])) == [3, -1]
    assert packed(np.array([0.5, np.nan], dtype=np.float32)) == [0.5, None]
    assert np.isnan(unpacked([0.5, None], np.float32)[1])


def test_a_million_labels_take_less_than_a_byte_each() -> None:
    labels = np.random.default_rng(0).integers(0, 4, 1_000_000)
    value = packed(labels)
    assert value["dtype"] == "|i1"
    assert len(value["zlib"]) < 500_000
    assert (unpacked(value, np.int64) == labels).all()


def test_a_difference_is_added_to_what_was_before() -> None:
    before = np.arange(PLAIN + 1)
    after = before * 200
    difference = packed(after, before)
    assert difference["difference"] is True
    assert unpacked(difference, np.int64, before).tolist() == after.tolist()
    for last in (None, before[:-1]):
        with pytest.raises(ValueError, match="a difference to an array of another length"):
            unpacked(difference, np.int64, last)


def test_what_was_cut_or_has_more_behind_it_is_refused() -> None:
    whole = packed(np.arange(5000))
    content = base64.b64decode(whole["zlib"])
    for damaged in (content[: len(content) // 2], content + b"more"):
        with pytest.raises(ValueError, match="ends too early or too late"):
            unpacked({**whole, "zlib": base64.b64encode(damaged).decode()}, np.int64)


@pytest.mark.parametrize("entries", [[10**30], [1.5], [None], [[1], [2]], ["a"]])
def test_a_list_that_holds_anything_but_whole_numbers_is_refused(entries: list[object]) -> None:
    with pytest.raises(ValueError, match=r"too large|not a list of numbers"):
        unpacked(entries, np.int64)


def test_a_number_too_large_for_single_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="overflow"):
        unpacked([0.5, 1e300], np.float32)


@pytest.mark.slow
@given(NUMBERS, NUMBERS, st.booleans())
def test_whole_numbers_are_kept_to_the_last_digit(
    numbers: list[int], last_numbers: list[int], long: bool
) -> None:
    size = PLAIN + 1 if long else 3
    values, last = np.resize(np.array(numbers), size), np.resize(np.array(last_numbers), size)
    for before in (None, last):
        through_json = json.loads(json.dumps(packed(values, before)))
        assert unpacked(through_json, np.int64, before).tolist() == values.tolist()


@pytest.mark.slow
@given(st.lists(st.floats(width=32), max_size=5), st.booleans())
def test_shares_are_kept_to_the_last_bit(numbers: list[float], long: bool) -> None:
    values = np.resize(np.array(numbers or [0.0], dtype=np.float32), PLAIN + 1 if long else 3)
    again = unpacked(json.loads(json.dumps(packed(values))), np.float32)
    np.testing.assert_array_equal(again, values)
