"""Rules as rows: which cells they look at, which rows are left out, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows
from traces.building.rules import Cells, Rule, keep, refuse

PATH = Path("t.csv")
SMALL = Rule(lambda c: c.value > c.most, "{name} = {value}: must be at most {most}{hint}")
EVEN = Rule(lambda c: c.value % 2 == 1, "{name} = {value}: must be even")


def kept(cells: Cells, bad: BadRows, num_rows: int, among: np.ndarray | None = None) -> list[bool]:
    return keep((SMALL, EVEN), cells, bad, Batch(PATH, 10, {}, num_rows), 100, among).tolist()


def test_a_row_is_left_out_by_the_first_rule_that_it_breaks() -> None:
    bad = BadRows(9)
    value = np.array([2, 9, 3, 8])
    assert kept(Cells(name="x", value=value, most=5, hint=""), bad, 4) == [True, False, False, False]
    assert bad.causes == {"x: must be at most 5": 2, "x: must be even": 1}
    assert bad.rows == {101, 102, 103}
    assert bad.first == "t.csv, row 12: x = 9: must be at most 5"


def test_only_the_rows_asked_for_are_looked_at_and_messages_worked_out_when_needed() -> None:
    asked: list[int] = []
    cells = Cells(name="x", value=np.array([9, 9, 2]), most=5, hint=lambda row: asked.append(row) or "!")
    bad = BadRows(9)
    assert kept(cells, bad, 3, np.array([False, True, True])) == [False, False, True]
    assert bad.rows == {101}
    assert set(asked) == {1}


def test_rules_look_once_at_each_distinct_value_of_coded_columns() -> None:
    texts = pa.array(["up", "down", None])
    cells = Cells(name="kind", codes=np.array([0, 0, 1, -1]), value=texts, is_missing=texts.is_null())
    rules = (
        Rule(lambda c: c.is_missing, "{name} is missing"),
        Rule(lambda c: [text == "down" for text in c.value.to_pylist()], "{name} = {value!r}: must be up"),
    )
    bad = BadRows(2)
    assert keep(rules, cells, bad, Batch(PATH, 0, {}, 4), 0).tolist() == [True, True, False, False]
    assert bad.causes == {"kind: must be up": 1, "kind is missing": 1}


def test_of_several_columns_the_first_one_that_breaks_a_rule_is_named() -> None:
    cells = Cells(name=lambda cell: "ab"[cell[1]], value=np.array([[2, 4], [2, 3], [9, 3]]), most=5, hint="")
    bad = BadRows(2)
    assert kept(cells, bad, 3) == [True, False, False]
    assert bad.causes == {"b: must be even": 1, "a: must be at most 5": 1}


def test_rows_of_a_whole_file_are_never_left_out() -> None:
    cells = Cells(name="x", value=np.array([2, 7]), most=5, hint="; halve it")
    with pytest.raises(DataFileError, match=r"t.csv, row 2: x = 7: must be at most 5; halve it"):
        refuse((SMALL,), cells, PATH, 2)
    with pytest.raises(DataFileError, match="row 6"):
        refuse((SMALL,), cells, PATH, 2, 4)
