from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from traces.ordering import ranks_of, rows_in_order

NUMBERS = some.integers(-(2**62), 2**62) | some.integers(-3, 3)


@given(some.lists(some.tuples(some.integers(0, 5), some.integers(0, 1), NUMBERS), min_size=1, max_size=30))
def test_the_order_is_that_of_lexsort(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    assert rows_in_order(*columns).tolist() == np.lexsort(tuple(reversed(columns))).tolist()


@given(some.lists(some.floats(-1, 1), min_size=1, max_size=30))
def test_fractions_are_ordered_too(values: list[float]) -> None:
    column = np.array(values)
    assert rows_in_order(column).tolist() == np.argsort(column, kind="stable").tolist()


def test_no_rows_have_no_order() -> None:
    assert rows_in_order(np.zeros(0, dtype=np.int64)).tolist() == []


@given(some.lists(NUMBERS, min_size=1, max_size=30))
def test_ranks_are_those_among_the_distinct_values(values: list[int]) -> None:
    distinct, rank = ranks_of(np.array(values))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[rank].tolist() == values
