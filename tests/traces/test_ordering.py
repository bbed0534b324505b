from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from traces import ordering
from traces.ordering import chunks_of_clients, ranks_of, rows_in_order

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


@given(some.lists(some.integers(0, 6), min_size=1, max_size=60))
def test_chunks_have_each_row_once_and_all_rows_of_their_clients(clients: list[int]) -> None:
    client = np.array(clients)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "CHUNK_ROWS", 8)
        chunks = list(chunks_of_clients(client, 7))
    assert np.concatenate(chunks).tolist() == np.argsort(client, kind="stable").tolist()
    owners = [set(client[chunk].tolist()) for chunk in chunks]
    assert sum(map(len, owners)) == len(set(clients))  # no client is in two chunks
    assert all(len(chunk) <= 8 or len(some) == 1 for chunk, some in zip(chunks, owners, strict=True))


@given(some.lists(NUMBERS, min_size=1, max_size=30))
def test_ranks_are_those_among_the_distinct_values(values: list[int]) -> None:
    distinct, rank = ranks_of(np.array(values))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[rank].tolist() == values
