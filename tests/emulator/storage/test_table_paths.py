from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from emulator.errors import DataFileError
from emulator.storage.table_paths import Given, TablePath, format_of


@pytest.mark.parametrize(
    "value", ["t.csv", {"path": "t.csv"}, {"path": "t.csv", "columns": ["a"], "separator": "space"}]
)
def test_a_path_of_a_table_is_recorded_as_it_was_given_and_read_back(value: Any) -> None:
    path = TablePath.model_validate(value)
    recorded = path.model_dump(mode="json")
    assert recorded == ("t.csv" if value == {"path": "t.csv"} else value)
    assert TablePath.model_validate(recorded).model_dump() == path.model_dump()


def test_a_path_of_a_table_is_a_text_or_a_table_in_a_json_schema() -> None:
    text, table = TypeAdapter(TablePath).json_schema()["anyOf"]
    assert text == {"type": "string"}
    assert {"path", "separator", "encoding"} <= set(table["properties"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "must be a text, or a table as { path ="),
        ({}, "path"),
        ({"path": "t.csv", "seperator": ";"}, "unknown key 'seperator'.* did you mean 'separator'"),
        ({"path": "t.csv", "encoding": "klingon"}, "Input should be 'utf-8', 'utf-16'"),
        ({"path": "t.csv", "columns": ["a", "a"]}, "columns: 'a' is blank or there twice"),
        ({"path": "t.csv", "skip_lines": -1}, "skip_lines"),
    ],
)
def test_what_is_no_path_of_a_table_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TablePath.model_validate(value)


def test_what_is_given_of_text_is_refused_of_another_format() -> None:
    for given, option in (
        (Given(decimal=","), "--decimal ','"),
        (Given(separator="tab"), "--separator tab"),
        (TablePath(path="x.parquet", skip_lines=2), '{ path = "x.parquet", skip_lines = 2 }'),
    ):
        with pytest.raises(DataFileError) as error:
            given.refuse_of(Path("x.parquet"), "Parquet")
        assert str(error.value) == f"x.parquet: {option}: only of a CSV; it is Parquet, which has none"
    Given().refuse_of(Path("x.parquet"), "Parquet")


def test_a_suffix_that_is_read_elsewhere_names_the_reader() -> None:
    with pytest.raises(DataFileError, match=r"read it in Python \(pandas.read_excel\)"):
        format_of(Path("t.xlsx"))
