from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from emulator.errors import DataFileError
from emulator.storage.tables import TableFile, read_table

Write = Callable[..., TableFile]


@pytest.fixture(params=[".csv", ".parquet"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Writes columns to a file, CSV or Parquet, and reads it back."""

    def written(**columns: Any) -> TableFile:
        path = tmp_path / f"table{request.param}"
        table = pa.table(columns)
        if request.param == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pq.write_table(table, path)
        return read_table(path)

    return written


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(DataFileError) as caught:
        call()
    return re.sub(r"^\S*/", "", str(caught.value))  # without the folder


def test_columns_and_numbers_come_out_as_they_went_in(read: Write) -> None:
    table = read(device=[3, 4], speed=[1.5, 0.0])
    assert table.columns == ["device", "speed"]
    assert len(table) == 2
    assert table.numbers("speed", at_least=0).tolist() == [1.5, 0.0]
    assert table.numbers("device").dtype == np.float64
    assert table.texts("device") == ["3", "4"]


def test_a_missing_column_lists_those_there_are(read: Write) -> None:
    table = read(device=[1], speed=[2.0])
    for call in (
        lambda: table.require("device", "latency"),
        lambda: table.numbers("latency"),
        lambda: table.ids("latency"),
        lambda: table.texts("latency"),
    ):
        assert "column 'latency' is missing; it has device, speed" in refusal(call)


def test_an_unknown_column_lists_the_known_ones(read: Write) -> None:
    table = read(device=[1], sped=[2.0])
    table.refuse_others({"device", "sped"})
    message = refusal(lambda: table.refuse_others({"speed", "device"}))
    assert "unknown column 'sped'; known are device, speed" in message


def test_columns_that_nothing_reads_are_named(read: Write) -> None:
    table = read(device=[1], speed=[2.0], brand=["x"], ram=[8])
    assert table.unread({"device", "speed", "latency"}) == ("not read: brand, ram",)
    assert table.unread({"device", "speed", "brand", "ram"}) == ()


@pytest.mark.parametrize("name", ["latncy", "Latency", " latency", "LATENCY ", "latency_"])
def test_a_column_near_a_known_one_that_is_lacking_is_refused(read: Write, name: str) -> None:
    message = refusal(lambda: read(**{"device": [1], name: [2.0]}).unread({"device", "latency"}))
    assert (
        f"unknown column {name!r}; did you mean 'latency'? If not, give it a name less like that" in message
    )
    assert message.endswith("known are device, latency")


def test_a_column_near_a_known_one_that_is_there_may_be_another(read: Write) -> None:
    table = read(device_id=[1], device_name=["x"], latency=[2.0])
    assert table.unread({"device_id", "latency"}) == ("not read: device_name",)


@pytest.mark.parametrize("value", [float("nan"), None, float("inf")])
def test_a_number_must_be_there_and_finite(read: Write, value: float | None) -> None:
    message = refusal(lambda: read(device=[1, 2, 3], speed=[1.0, 2.0, value]).numbers("speed"))
    assert message.split(": ")[0].endswith(", row 3")
    assert "must be a finite number, not missing or NaN" in message


def test_a_number_below_its_bound_is_named_with_its_row_and_the_rule(read: Write) -> None:
    table = read(device=[1, 2], speed=[0.0, -0.5])
    assert ", row 2: speed = -0.5 must be at least 0" in refusal(lambda: table.numbers("speed", at_least=0))
    assert ", row 1: speed = 0 must be greater than 0" in refusal(lambda: table.numbers("speed", above=0))
    assert table.numbers("speed", at_least=-0.5).tolist() == [0.0, -0.5]


def test_text_in_a_column_of_numbers_is_named(read: Write) -> None:
    message = refusal(lambda: read(device=[1, 2], speed=["2.0", "fast"]).numbers("speed"))
    assert ", row 2: column 'speed' must hold numbers" in message
    assert "'fast'" in message


def test_ids_are_ranks_that_no_order_of_the_rows_changes(read: Write) -> None:
    names = ["kiwi", "apple", "kiwi", "pear"]
    assert read(device=names).ids("device").tolist() == [1, 0, 1, 2]
    assert read(device=names[::-1]).ids("device").tolist() == [2, 1, 0, 1]
    assert read(device=[10, 9, 100]).ids("device").tolist() == [1, 0, 2]  # numbers rank as numbers


def test_a_view_of_texts_is_read_as_texts(tmp_path: Path) -> None:
    pq.write_table(pa.table({"device": pa.array(["b", "a", "b"], pa.string_view())}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.ids("device").tolist() == [1, 0, 1]
    assert table.texts("device") == ["b", "a", "b"]


def test_ids_and_texts_of_a_dictionary_column_are_those_of_its_values(tmp_path: Path) -> None:
    column = pa.array(["b", "a", "b"]).dictionary_encode()
    pq.write_table(pa.table({"device": column}), tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert table.ids("device").tolist() == [1, 0, 1]
    assert table.texts("device") == ["b", "a", "b"]


def test_a_duplicated_id_is_named_with_both_rows(read: Write) -> None:
    table = read(device=["b", "a", "c", "a", "a"])
    assert ", row 4: device 'a' is also in row 2" in refusal(lambda: table.unique_ids("device"))
    assert read(device=["b", "a"]).unique_ids("device").tolist() == [1, 0]


def test_a_missing_id_or_text_is_named_with_its_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"device": ["a", None]}), tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    for call in (table.ids, table.unique_ids, table.texts, table.values):
        assert refusal(lambda call=call: call("device")) == "table.parquet, row 2: device is missing"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("blank", ["", " \t", None])
def test_a_blank_text_is_missing_whatever_type_its_writer_chose(
    tmp_path: Path, kind: Any, blank: str | None
) -> None:
    """Some writers, such as pandas, have large strings, others bytes."""
    texts = [text.encode() if text is not None and "binary" in str(kind) else text for text in ("a", blank)]
    for column in (pa.array(texts, kind), pa.array(texts, kind).dictionary_encode()):
        pq.write_table(pa.table({"device": column}), tmp_path / "table.parquet")
        table = read_table(tmp_path / "table.parquet")
        for call in (table.ids, table.texts):
            assert refusal(lambda call=call: call("device")) == "table.parquet, row 2: device is missing"
        assert table.texts("device", may_be_empty=True)[1] == ""


@pytest.mark.parametrize("cells", [[[1], [1, 2]], [{"id": 1}]])
def test_a_nested_column_is_refused_before_it_is_read(tmp_path: Path, cells: list[object]) -> None:
    pq.write_table(pa.table({"device": cells}), tmp_path / "table.parquet")
    assert refusal(lambda: read_table(tmp_path / "table.parquet")) == (
        "table.parquet: column 'device' is nested; a table has one value in each cell"
    )


def test_a_column_name_that_is_used_stands_once(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b,a\n1,2,3\n")
    table = read_table(tmp_path / "table.csv")
    assert table.numbers("b").tolist() == [2]
    assert "a column name occurs twice: 'a'; rename one" in refusal(lambda: table.numbers("a"))
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "table.parquet")
    assert "a column name occurs twice: 'a'" in refusal(lambda: read_table(tmp_path / "table.parquet"))


@pytest.mark.parametrize("row", [1, 2, 3, 4, 5])
def test_the_first_cell_that_is_no_number_is_named_with_its_row(read: Write, row: int) -> None:
    speed = ["1.5"] * (row - 1) + ["fast"] + ["slow"] * (5 - row)
    message = refusal(lambda: read(speed=speed).numbers("speed"))
    assert f", row {row}: column 'speed' must hold numbers" in message
    assert "'fast'" in message


def test_values_are_those_of_the_file(read: Write) -> None:
    table = read(device=["b", "a"], speed=[2, 10])
    assert table.values("device") == ["b", "a"]
    assert table.values("speed") == [2, 10]


def test_a_gzipped_csv_is_read_as_the_csv_is(tmp_path: Path) -> None:
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(b"device,speed\na,1\nb,2.5\n", mtime=0))
    table = read_table(tmp_path / "table.csv.gz")
    assert table.columns == ["device", "speed"]
    assert table.numbers("speed").tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("table.csv", b"", "is empty"),
        ("table.csv.gz", gzip.compress(b"a,b\n", mtime=0), "has no rows"),
        ("table.csv.gz", b"a,b\n1,2\n", "cannot be read as CSV"),
        ("table.csv.gz", gzip.compress(b"a,b\n1,2\n" * 9, mtime=0)[:20], "cannot be read as CSV"),
        ("table.parquet.gz", gzip.compress(b"a\n1\n", mtime=0), "a table is one of .csv, .csv.gz, .csv.zip"),
        ("table.parquet", b"", "is empty"),
        ("table.csv", b"a,b\n", "has no rows"),
        ("table.csv", b"\n\n", "cannot be read as CSV"),
        ("table.parquet", b"PAR1 and then nothing of the kind", "cannot be read as parquet"),
        ("table.parquet", b"a,b\n1,2\n", "cannot be read as parquet"),
        ("table.text", b"a,b\n1,2\n", "a table is one of .csv, .csv.gz, .csv.zip"),
        ("table", b"a,b\n1,2\n", "a table is one of .csv, .csv.gz, .csv.zip"),
    ],
)
def test_a_file_that_is_no_table_is_one_clear_line(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    message = refusal(lambda: read_table(tmp_path / name))
    assert message.startswith(f"{name}: {problem}")
    assert "\n" not in message


def test_a_row_with_too_few_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3\n")
    message = refusal(lambda: read_table(tmp_path / "table.csv"))
    assert message == (
        "table.csv, row 2: cannot be read as CSV (CSV parse error: Row #3: Expected 2 columns, got 1: 3)"
    )


def test_a_byte_that_is_no_text_is_named_with_its_place_and_the_remedy_if_its_column_is_used(
    tmp_path: Path,
) -> None:
    (tmp_path / "table.csv").write_bytes("a,b\n1,2\n3,Jos\u00e9\n".encode("latin-1"))
    table = read_table(tmp_path / "table.csv")
    assert table.numbers("a").tolist() == [1, 3]
    assert refusal(lambda: table.texts("b")) == (
        "table.csv: byte 0xe9 at 13, in line 3, is not UTF-8: give the encoding that it was saved in, such "
        "as --encoding windows-1252"
    )


def test_ids_are_texts_as_they_are_written_and_numbers_rank_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("device\n10\n007\n7\n 10\n9\n")
    table = read_table(tmp_path / "table.csv")
    assert table.ids("device").tolist() == [3, 0, 1, 3, 2]
    devices = table.devices("device")
    assert devices.ids == ["007", "7", "9", "10"]
    assert devices.first_row.tolist() == [1, 2, 4, 0]


def test_a_parquet_file_without_rows_or_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    assert refusal(lambda: read_table(path)) == "table.parquet: has no rows"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "cannot be read as parquet" in refusal(lambda: read_table(path))


def test_a_missing_file_or_a_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "table.csv").mkdir()
    assert refusal(lambda: read_table(tmp_path / "table.csv")) == "table.csv: no such file"
    assert refusal(lambda: read_table(tmp_path / "table.parquet")) == "table.parquet: no such file"
