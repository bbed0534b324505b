"""A table behaves as a list of rows would, from which those that were removed are gone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.table import FEWEST_ROWS, Table
from tests.fakes import ints

Row = tuple[int, float, tuple[float, float]]


def columns(rows: list[Row]) -> dict[str, Any]:
    """The rows (key, number, pair) as columns."""
    return {
        "key": np.array([key for key, _, _ in rows], dtype=np.int64),
        "number": np.array([number for _, number, _ in rows], dtype=np.float32),
        "pair": np.array([pair for _, _, pair in rows]).reshape(len(rows), 2),
    }


def rows_of(content: dict[str, Any]) -> list[Row]:
    names = ("key", "number", "pair")
    pairs = zip(*(content[name].tolist() for name in names), strict=True)
    return [(key, number, tuple(pair)) for key, number, pair in pairs]


class Both:
    """A table and the list of rows that it should be; `serial` makes rows that differ."""

    def __init__(self) -> None:
        self.table, self.rows, self.key, self.serial = Table("key"), list[Row](), 0, 0
        self.append([])

    def append(self, gaps: list[int]) -> None:
        """Add rows whose keys are above all earlier ones, also of removed rows, and may be equal."""
        added = []
        self.key += 1
        for gap in gaps:
            self.key, self.serial = self.key + gap, self.serial + 1
            added.append((self.key, float(self.serial), (self.serial + 0.5, -1.0)))
        self.table.append(columns(added))
        self.rows += added

    def find(self, keys: list[int]) -> None:
        rows, counts = self.table.find_all(np.array(keys, dtype=np.int64))
        expected = [[row for row in self.rows if row[0] == key] for key in keys]
        assert counts.tolist() == [len(found) for found in expected]
        assert rows_of(self.table.take(rows)) == [row for found in expected for row in found]

    def remove(self, chosen: list[int]) -> None:
        """Remove all rows of some of the keys that are there."""
        keys = sorted({key for key, _, _ in self.rows})
        gone = [key for index, key in enumerate(keys) if index in chosen]
        rows, _ = self.table.find_all(np.array(gone, dtype=np.int64))
        self.table.remove(rows)
        self.rows = [row for row in self.rows if row[0] not in gone]

    def store(self) -> None:
        content = from_bytes(to_bytes(self.table.state()))
        self.table = Table("key")
        self.table.restore(content)

    def check(self) -> None:
        assert self.table.count == len(self.rows)
        assert rows_of(self.table.take(self.table.rows)) == self.rows
        assert rows_of(self.table.state()) == self.rows


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 2), max_size=40)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 60), max_size=60)),
    st.tuples(st.just("store")),
)


@given(actions=st.lists(ACTIONS, max_size=10))
def test_a_table_is_a_list_of_rows(actions: list[tuple[Any, ...]]) -> None:
    both = Both()
    for name, *arguments in actions:
        getattr(both, name)(*arguments)
        both.check()
        # Keys that were removed are not asked for: their rows may still be there.
        present = sorted({key for key, _, _ in both.rows})
        both.find(present[::-2])
        both.find([*present, both.key + 1, -1])


def test_what_is_written_to_a_column_stays_as_the_table_grows() -> None:
    table = Table("key")
    table.append({"key": ints(4, 4, 7), "number": ints(0, 0, 0)})
    rows, counts = table.find_all(ints(7, 4))
    assert (rows.tolist(), counts.tolist()) == ([2, 0, 1], [1, 2])
    assert table.find(ints(7, 4, 7)).tolist() == [2, 0, 2]  # the first of each key
    table.columns["number"][rows] = [9, 8, 7]
    table.remove(ints(0))
    for key in range(10, 10 + 2 * FEWEST_ROWS):
        table.append({"key": ints(key), "number": ints(key)})
    assert table.take(table.rows)["number"].tolist()[:4] == [7, 9, 10, 11]
    assert table.count == 2 + 2 * FEWEST_ROWS


def test_what_was_taken_is_a_copy() -> None:
    table = Table("key")
    table.append({"key": ints(1, 2)})
    taken = table.take(ints(0, 1))
    taken["key"][:] = 0
    assert table.columns["key"].tolist() == [1, 2]


def test_room_follows_the_rows_that_are_there_and_not_those_that_ever_were() -> None:
    table = Table("key")
    for first in range(0, 20_000, 50):
        table.append({"key": np.arange(first, first + 50)})
        if first >= 100:
            table.remove(table.find(np.arange(first - 100, first - 50)))
    assert table.count == 100
    # 150 rows at most, twice as many when it was last enlarged.
    assert len(table.columns["key"]) <= 2 * 150
    assert table.take(table.rows)["key"].tolist() == list(range(19_900, 20_000))


def test_a_table_without_rows_keeps_its_columns() -> None:
    table = Table("key")
    assert (list(table.columns), table.count, table.state()) == ([], 0, {})
    table.append({"key": ints(3), "pair": np.array([[1.0, 2.0]])})
    table.remove(ints(0))
    assert (table.count, table.rows.tolist(), list(table.columns)) == (0, [], ["key", "pair"])
    assert table.state()["pair"].shape == (0, 2)
    again = Table("key")
    again.restore(from_bytes(to_bytes(table.state())))
    assert (again.count, list(again.columns)) == (0, ["key", "pair"])
    again.append({"key": ints(1), "pair": np.array([[5.0, 6.0]])})
    assert again.columns["pair"].tolist() == [[5.0, 6.0]]
