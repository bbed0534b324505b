"""Bad tables: one line with the file and the row or column, and nothing left behind."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from emulator.errors import InputError
from emulator.storage.reading import tally
from emulator.storage.table_paths import TABLE_SUFFIXES
from tests.traces.building.table.tables import TINY, build, built, refused, rows, write, write_parquet
from traces.building.table.settings import TableSettings

HEAD = "who,kind,t,a\n"


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("who,kind,a,a\nx,0,1,2\n", {}, "table.csv: a column name occurs twice: 'a'"),
        ("who,kind,,a\nx,0,1,2\n", {}, "table.csv: column 3 has no name"),
        ("", {}, "table.csv: is empty"),
        (
            "who,kind,a\rx,0,1\ny,0,1\n",
            {},
            "table.csv: cannot be read as CSV (new-line character seen in unquoted field - do you need to "
            "open the file in universal-newline mode?)",
        ),
        (
            "who,kind,a\nx,k\x1b,1\n",
            {},
            "class 'k\\x1b': is no name: it is blank, or has control characters",
        ),
        (
            "who,kind,a\nx\x1b,k,1\n",
            {},
            "client 'x\\x1b': is no name: it is blank, or has control characters",
        ),
        ("who,kind,a\n", {}, "table.csv: has no rows"),
        ("who,kind\nx,0\n", {}, "table.csv: has no feature: all its columns are something else: who, kind"),
        (
            "who,kind,a\nx,0,1\nx,0\n",
            {},
            "table.csv, row 2: cannot be read as CSV (CSV parse error: Row #3: Expected 3 columns, got 2: "
            "x,0)",
        ),
        ("who,kind,a\nx,0,1\nx,,2\n", {}, "table.csv, row 2: kind is missing: the label of the row"),
        ("who,kind,a\nx,0,1\n ,1,2\n", {}, "table.csv, row 2: who is missing: the client of the row"),
        (
            "who,kind,a\nx,0,1\nx,1,\n",
            {},
            "table.csv, row 2: a is missing; give --missing mean or --missing zero to fill it",
        ),
        (
            "who,kind,a\nx,0,1\nx,1,inf\n",
            {"missing": "zero"},
            "table.csv, row 2: a is not finite: infinity, or a number beyond 1e+38",
        ),
        (
            "who,kind,a\nx,0,1\nx,1,3.4e38\n",
            {"missing": "mean"},
            "table.csv, row 2: a is not finite: infinity, or a number beyond 1e+38",
        ),
        (
            "who,kind,a,sex,b\nx,0,1,M,0.5\ny,0,1,F,NA\ny,1,2,F,0.3x\n",
            {},
            "table.csv: features of text: sex ('M' in row 1), b ('0.3x' in row 3); name the numbers with "
            "--features (and --skip-bad, to leave out rows with a text among numbers), or make columns of "
            "the values with --one-hot",
        ),
        (
            "who,kind,a\nx,0.5,1\n",
            {},
            "table.csv, row 1: label: column 'kind' holds 0.5, a regression target; labels are classes: "
            "integers or texts",
        ),
        ("who,kind,a\nx,0,1\n", {"client": "whom"}, "table.csv: client: unknown column 'whom'"),
        ("who,kind,a\nx,0,1\n", {"features": ["b"]}, "table.csv: features: unknown column 'b'"),
        (
            f"{HEAD}x,0,3 Jan 2015,1\n",
            {"time": "t"},
            "table.csv, row 1: t = '3 Jan 2015': must be a date or a timestamp in ISO 8601, as 2015-01-31 or "
            "2015-01-31T12:00:00Z; --time-format says how other texts are written, such as %d.%m.%Y",
        ),
        (
            f"{HEAD}x,0,2015-02-30,1\n",
            {"time": "t"},
            "table.csv, row 1: t = '2015-02-30': must be a date or a timestamp in ISO 8601, as 2015-01-31 or "
            "2015-01-31T12:00:00Z",
        ),
        (
            f"{HEAD}x,0,2015-01-01T00:00Z,1\nx,0,2015-01-01T00:00,1\n",
            {"time": "t"},
            "table.csv, row 2: t = '2015-01-01T00:00': has no offset, and '2015-01-01T00:00Z' in table.csv, "
            "row 1 has an offset; give all times an offset, or none",
        ),
        (
            f"{HEAD}x,0,2015-01-01T00:00+01:00,1\nx,0,2015-01-01,1\n",
            {"time": "t", "zone": "Europe/Paris"},
            "table.csv, row 2: t = '2015-01-01': has no offset, and '2015-01-01T00:00+01:00' in "
            "table.csv, row 1 has an offset; give",
        ),
        (
            f"{HEAD}x,0,2015-01-01,1\n",
            {"time": "t", "zone": "Europe/Paris"},
            "table.csv, row 1: t = '2015-01-01': has no offset, so that its day is a local one already; "
            "leave out --zone",
        ),
        (
            f"{HEAD}x,0,20150131,1\n",
            {"time": "t"},
            "table.csv, row 1: t = 20150131: too small for a Unix time; give --unix s if it is one, "
            "--time-format for dates such as 20240131, or --step or --order for other numbers",
        ),
        (
            f"{HEAD}x,0,1420070400,1\nx,0,soon,1\n",
            {"time": "t"},
            "table.csv, row 1: t = '1420070400': must be a date or a timestamp in ISO 8601, as 2015-01-31 or "
            "2015-01-31T12:00:00Z; give --unix s, ms, us or ns for Unix times, or",
        ),
        (
            f"{HEAD}x,0,1420070400,1\nx,0,1420070400000,1\n",
            {"time": "t"},
            "table.csv, row 2: t = 1420070400000: has the size of Unix milliseconds, and 1420070400 in "
            "table.csv, row 1 that of seconds; write all of them in one unit, or give --unix s if they are",
        ),
        (
            f"{HEAD}x,0,03.04.2024 10:00,1\nx,0,03.04.2024,1\n",
            {"time": "t", "time_format": "%d.%m.%Y %H:%M"},
            "table.csv, row 2: t = '03.04.2024': must be written as --time-format '%d.%m.%Y %H:%M' says, as "
            "'31.01.2015 12:00'",
        ),
        (f"{HEAD}x,0,1,1\nx,0,soon,1\n", {"step": "t"}, "table.csv: step: column 't' is string"),
        (
            f"{HEAD}x,0,later,1\n",
            {"split": "t"},
            "table.csv, row 1: t = 'later': must be train or test; --splits 'val=test'",
        ),
        (
            f"{HEAD}x,0,train,1\ny,0,test,1\n",
            {"split": "t"},
            "table.csv: client y has rows for tests only (1 of 2 clients have); each needs one for training",
        ),
        (f"{HEAD}x,0,-1,1\n", {"count": "t"}, "table.csv, row 1: t = -1: must be from 0 to 2147483647"),
        (f"{HEAD}x,0,1,1\n", {"min_samples": 2}, "table.csv: no row of it belongs to a client with"),
        (
            f"{HEAD}x,0,2015-01-01,1\n",
            {"time": "t", "since": "2016-01-01"},
            "table.csv: no row of it is good, arrives, and lies between since and until",
        ),
        (
            f"{HEAD}x,0,5,1\n",
            {"step": "t", "retain": 1},
            "table.csv: has no training row that clients own at the start with retain = 1",
        ),
        (
            "who,kind,use,a,b\nx,0,train,,1\nx,0,train,,1\nx,0,test,3,1\n",
            {"split": "use", "missing": "mean"},
            "table.csv: feature 'a' has no value in the rows that means are taken of; leave it out, raise "
            "retain, or give --missing zero",
        ),
    ],
)
def test_a_bad_csv_is_refused_by_one_line(
    tmp_path: Path, text: str, settings: dict[str, Any], message: str
) -> None:
    assert refused(write(tmp_path, text), **settings).startswith(message)


def test_a_close_column_is_suggested(tmp_path: Path) -> None:
    message = refused(write(tmp_path, TINY), client="whom")
    assert message.endswith("choices: a, b, day, kind, who; did you mean 'who'?")


@pytest.mark.slow
def test_a_value_of_another_type_than_the_first_rows_is_named_with_its_row(tmp_path: Path) -> None:
    """The type is that of the first block; the value is far behind it."""
    lines = "".join(f"x,0,{row}.5,1\n" for row in range(200_000))
    table = write(tmp_path, f"who,kind,a,b\n{lines}x,0,abc,1\nx,0,2,1\n")
    assert refused(table) == "table.csv, row 200001: a = 'abc': must be a number"


@pytest.mark.slow
def test_fractions_among_whole_labels_are_a_regression_target(tmp_path: Path) -> None:
    lines = "".join(f"x,{row % 3},1\n" for row in range(200_000))
    table = write(tmp_path, f"who,kind,a\n{lines}x,0.25,1\n")
    message = refused(table)
    assert message == (
        "table.csv: label: column 'kind' holds 0.25, a regression target; labels are classes: integers or "
        "texts"
    )


def test_a_truncated_gzip_is_refused(tmp_path: Path) -> None:
    lines = "".join(f"x,{row % 3},{row * 37 % 1009}\n" for row in range(5000))
    whole = gzip.compress(f"who,kind,a\n{lines}".encode())
    for share in (0.3, 0.95):
        table = tmp_path / "table.csv.gz"
        table.write_bytes(whole[: int(len(whole) * share)])
        assert refused(table).startswith("table.csv.gz: cannot be read as CSV (")


def test_a_truncated_parquet_is_refused(tmp_path: Path) -> None:
    table = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0]})
    table.write_bytes(table.read_bytes()[:-20])
    assert refused(table).startswith("table.parquet: cannot be read as parquet (")


def test_shards_have_the_same_columns_of_the_same_types(tmp_path: Path) -> None:
    write(tmp_path, "who,kind,a\nx,0,1\n", "t/a.csv")
    write(tmp_path, "who,kind,b\nx,0,1\n", "t/b.csv")
    assert refused(tmp_path / "t") == "t/b.csv: has other columns than a.csv: it alone has b, it lacks a"
    write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0]}, "u/a.parquet")
    write_parquet(tmp_path, {"who": ["x"], "kind": ["0"], "a": [1.0]}, "u/b.parquet")
    assert refused(tmp_path / "u") == "u/b.parquet: column 'kind' is string, but int64 in a.parquet"
    write(tmp_path, "who,kind,a\nx,0,1\n", "u/c.csv")
    assert refused(tmp_path / "u") == "u: has both CSV and Parquet, a.parquet and c.csv; give one kind"


def test_a_folder_without_tables_and_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    kinds = ", ".join(TABLE_SUFFIXES)
    assert refused(tmp_path / "t") == f"t: has no table, no file that ends with {kinds}"
    assert (
        refused(write(tmp_path, TINY, "a.text")) == f"a.text: a table is one of {kinds}, or a folder of them"
    )
    assert refused(tmp_path / "none.csv") == "none.csv: no such file"


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        (
            {"kind": [[1, 2]]},
            {},
            "label: column 'kind' is list<element: int64>, a sequence or several",
        ),
        ({"who": [1.5]}, {}, "client: column 'who' is double; it must hold texts or whole numbers"),
        ({"t": [True]}, {"time": "t"}, "column 't' is bool; a time is a date or a timestamp in ISO 8601"),
        (
            {"t": pa.array([1.0e9], pa.float32())},
            {"time": "t"},
            "column 't' is float, which has too few digits",
        ),
        (
            {"t": [np.datetime64("2015-01-01", "us")]},
            {"time": "t", "zone": "UTC"},
            "column 't' is timestamp[us], without a time zone: its days are local ones already; leave out",
        ),
        (
            {"t": [np.datetime64("2015-01-01", "us")]},
            {"time": "t", "time_format": "%Y"},
            "column 't' is timestamp[us]; --time-format is for texts",
        ),
        ({"t": [7.5]}, {"step": "t"}, "step: column 't' is double; it must hold whole numbers"),
        (
            {"b": [np.datetime64("2015-01-01", "us")]},
            {},
            "column 'b' is timestamp[us]; a feature is a number",
        ),
        ({"b": [b"..."]}, {}, "column 'b' holds images, and must be the only feature: give --features b"),
    ],
)
def test_a_column_of_another_type_is_refused(
    tmp_path: Path, columns: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0], **columns})
    assert refused(table, **settings).removeprefix("table.parquet: ").startswith(message)


def test_missing_values_of_a_parquet_are_named(tmp_path: Path) -> None:
    columns = {"who": ["x", None], "kind": [0, 1], "a": [1.0, 2.0]}
    assert refused(write_parquet(tmp_path, columns)).startswith("table.parquet, row 2: who is missing")
    columns = {"who": [1, None], "kind": [0, 1], "a": [1.0, 2.0]}
    assert refused(write_parquet(tmp_path, columns)).startswith("table.parquet, row 2: who is missing")
    nan = {"who": ["x", "x"], "kind": [0, 1], "a": [1.0, float("nan")]}
    assert refused(write_parquet(tmp_path, nan)).startswith("table.parquet, row 2: a is missing; give")
    null = {"who": ["x", "x"], "kind": [0, 1], "a": pa.array([1, None])}
    assert refused(write_parquet(tmp_path, null)).startswith("table.parquet, row 2: a is missing; give")
    stamps = pa.array([0, None], pa.timestamp("us"))
    late = {"who": ["x", "x"], "kind": [0, 1], "a": [1.0, 2.0], "t": stamps}
    assert refused(write_parquet(tmp_path, late), time="t") == "table.parquet, row 2: t is missing"


TIMED = {"label": "l", "client": "c", "time": "t"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label": "l"}, "needs either client, a column, or partition"),
        ({"label": "l", "client": "c", "partition": "iid"}, "client and partition exclude each other: a row"),
        (
            {"label": "l", "client_from": "{client}.csv", "partition": "iid"},
            "client_from and partition exclude each other: a row has one client",
        ),
        ({"label": "l", "client_from": "*.csv"}, "client_from\n  Value error, has no {client}, which stands"),
        ({"label": "l", "client": "c", "shape": [7]}, "an image has 2 or 3 dimensions, not 1"),
        (
            {"label": "l", "client": "c", "shape": [32, 32, 3]},
            "they come first, as 3,32,32: store",
        ),
        ({"label": "l", "client": "c", "shape": [2, 2], "one_hot": ["a"]}, "shape and one_hot exclude each"),
        ({"label": "l", "client": "c", "clients": 3}, "clients = 3: only with partition"),
        ({"label": "l", "client": "c", "time": "t", "step": "s"}, "time and step exclude each other"),
        ({"label": "l", "client": "c", "unix_seconds": True}, "unix_seconds: only with time"),
        ({"label": "l", "client": "c", "order": "o", "unix": "ms"}, "unix = ms: only with time"),
        ({**TIMED, "unix_seconds": True, "unix": "ms"}, "unix = ms and unix_seconds, which are s, exclude"),
        (
            {**TIMED, "unix": "s", "time_format": "%Y"},
            "time_format = %Y: not with unix, as Unix times are numbers",
        ),
        ({"label": "l", "client": "c", "time_format": "%Y"}, "time_format = %Y: only with time or order"),
        ({**TIMED, "time_format": "mixed"}, "'mixed' has no year: neither %Y nor %y"),
        ({**TIMED, "time_format": "%Y %s"}, "'%Y %s' has %s, which is no directive; these are %Y %y %m %d"),
        ({**TIMED, "time_format": "%Y%"}, "'%Y%' has %, which is no directive"),
        ({**TIMED, "time_format": "%Y%Y"}, "'%Y%Y' has %Y twice"),
        ({**TIMED, "time_format": "%d/%Y"}, "'%d/%Y' has a day and no month"),
        ({**TIMED, "time_format": "%Y %H %p"}, "'%Y %H %p' has one of %I and %p without the other"),
        ({**TIMED, "time_format": "%Y", "zone": "UTC"}, "written as '%Y' have no offset, %z: their days are"),
        ({**TIMED, "zone": "Europe/Berln"}, "no time zone; it is an IANA name; did you mean Europe/Berlin"),
        ({**TIMED, "zone": "../UTC"}, "'../UTC' is no time zone; it is an IANA name; such as Europe/Berlin"),
        ({"label": "l", "client": "c", "order": "o", "zone": "UTC"}, "zone = UTC: only with time"),
        ({"label": "l", "client": "c", "retain": 2}, "retain = 2: without time, step or order"),
        ({"label": "l", "client": "l"}, "column 'l' is named twice"),
        ({"label": "l", "client": "c", "time": "t", "since": 5}, "since = 5: must be a date"),
        ({"label": "l", "client": "c", "step": "t", "until": "2015-01-01"}, "until = 2015-01-01: must be a"),
        ({"label": "l", "client": "c", "since": 5}, "since = 5: only with time, step or order"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        TableSettings.model_validate(settings)
    assert message in str(error.value)


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    root = write(tmp_path, TINY)
    build(root, tmp_path / "out")
    before = (tmp_path / "out/trace.toml").read_bytes()
    with pytest.raises(Exception, match="exists already"):
        build(root, tmp_path / "out")
    assert (tmp_path / "out/trace.toml").read_bytes() == before


def test_the_current_folder_is_refused_as_a_trace_folder_to_make(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--out \.: exists already"):
        build(write(tmp_path, TINY), Path())


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet"])
def test_a_table_of_too_many_cells_is_refused_while_it_is_read(tmp_path: Path, name: str) -> None:
    """Half a million equal rows are a file of a few kilobytes."""
    size = 500_000
    if name.endswith(".gz"):
        root = write(tmp_path, "who,kind,x\n" + "ann,up,1\n" * size, name)
    else:
        columns = {"who": ["ann"] * size, "kind": ["up"] * size, "x": np.ones(size)}
        root = write_parquet(tmp_path, columns, name, row_group_size=50_000)
    message = refused(root, most_cells=2_000_100)
    read = int(message.split(" rows")[0].rpartition(" ")[2].replace(",", ""))
    assert 200_000 < read < 330_000  # a batch more than the bound
    assert message.startswith(
        f"{name}: has {read:,} rows or more x 3 columns (a row counts as 10 cells or more); at most "
    )
    assert message.endswith(
        "2,000,100 cells are read: raise --most-cells if 6 bytes for each fit into memory"
    )
    assert build(root, tmp_path / "out", most_cells=10 * size + 100).train > 0


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_of_too_much_text_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Its texts are longer than the bound together, and short enough each."""
    names = [f"{number:05d}" * 20 for number in range(2000)]
    if name == "t.parquet":
        root = write_parquet(tmp_path, {"who": names, "kind": ["up"] * 2000, "x": np.ones(2000)}, name)
    else:
        root = write(tmp_path, "who,kind,x\n" + "".join(f"{text},up,1\n" for text in names), name)
    monkeypatch.setattr(tally, "MOST_TEXT", 150_000)
    assert refused(root) == (
        f"{name}: has more than 150,000 bytes of text: save it as Parquet, in which numbers are no text, and "
        "leave out columns of texts"
    )
    monkeypatch.setattr(tally, "MOST_TEXT", 250_000)
    assert build(root, tmp_path / "out").clients == 2000


def test_names_count_as_cells_since_they_stay_in_memory(tmp_path: Path) -> None:
    root = write(tmp_path, "who,kind,x\n" + "".join(f"client-{number:04d},up,1\n" for number in range(1000)))
    assert refused(root, most_cells=50_000) == (
        "table.csv: has 1,000 rows or more with 1,000 different names (a name counts as 32 cells, and one "
        "for each letter); at most 50,000 cells are read: raise --most-cells if 6 bytes for each fit into "
        "memory"
    )
    assert build(root, tmp_path / "out", most_cells=60_000).clients == 1000


def test_too_many_columns_are_refused_before_their_names_are_compared(tmp_path: Path) -> None:
    root = write(tmp_path, ",".join(f"{number:x}" for number in range(150_000)) + "\n")
    assert refused(root) == "table.csv: has 150000 columns; a table has at most 16384"


def test_a_table_of_which_no_row_can_be_used_is_refused_and_leaves_no_folder(tmp_path: Path) -> None:
    """That shows only when features are read, after the rows were counted as used."""
    root = write(tmp_path, "who,kind,x\n" + "a,up,\n" * 20)
    assert refused(root, skip_bad=100).endswith("no row of it is good: 20 have features that cannot be used")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["t.json", "t.arff", "t.npz", "t.mat"])
def test_a_file_of_another_kind_names_what_reads_it_and_write_trace(tmp_path: Path, name: str) -> None:
    message = refused(write(tmp_path, "?", name))
    assert message.startswith(f"{name}: a table is one of .csv, ")
    assert "read it in Python (" in message
    assert message.endswith("driftscale.write_trace (docs/howto/from-python.md)")


def test_other_texts_of_splits_are_what_is_said(tmp_path: Path) -> None:
    text = "who,kind,use,a\nx,0,train,1\nx,0,val,2\nx,0,dev,3\nx,0,test,4\n"
    folder = built(write(tmp_path, text), split="use", splits=["val=test", "dev=train"])
    assert rows(folder, "split", "sample") == [("train", 0), ("train", 2), ("test", 1), ("test", 3)]
    assert refused(write(tmp_path, text, "u.csv"), split="use", splits=["val=test"]).startswith(
        "u.csv, row 3: use = 'dev': must be train or test or val; --splits 'val=test' says"
    )
    with pytest.raises(ValidationError, match="splits: 'val=hold' must be a text and train or test"):
        TableSettings(label="kind", client="who", split="use", splits=("val=hold",))
    with pytest.raises(ValidationError, match="splits: only with split"):
        TableSettings(label="kind", client="who", splits=("val=test",))
