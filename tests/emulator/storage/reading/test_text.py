"""Text in other encodings, with runs of blanks and with lines to leave out: what is read and refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from emulator.errors import DataFileError
from emulator.storage.reading import text
from emulator.storage.table_paths import Given, TablePath
from emulator.storage.tables import read_table

ROWS = "a,b\n1,Zo\u00e9\n2.5,x\n"


def given(**keys: Any) -> Given:
    return Given.model_validate(keys)


def refusal(path: Path, use: str = "b", **keys: Any) -> str:
    with pytest.raises(DataFileError) as error:
        read_table(path, given(**keys)).texts(use)
    return str(error.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (ROWS.encode("latin-1"), {"encoding": "latin-1"}),
        (ROWS.encode("utf-16"), {}),
        (ROWS.encode("utf-16-be"), {"encoding": "utf-16-be"}),
        (ROWS.encode("utf-8-sig"), {}),
        (f"sep=;\r\n{ROWS.replace(',', ';')}".encode(), {}),
        ("sep=\t\r\n{}".format(ROWS.replace(",", "\t")).encode(), {}),
        (ROWS.replace("\n", "\r").encode(), {}),
        (f"# one\r{ROWS}".replace("\n", "\r").encode("utf-16"), {"skip_lines": 1}),
        (f"# one, two\n\n{ROWS}".encode(), {"skip_lines": 2}),
        (ROWS.replace(",", "   ").encode(), {"separator": "space"}),
        (ROWS.replace(",", "\t  ").replace("\n", " \r\n  ").encode(), {"separator": "space"}),
        (ROWS.split("\n", 1)[1].encode(), {"columns": ["a", "b"]}),
        (ROWS.split("\n", 1)[1].replace("\n", ";\n").encode(), {"columns": ["a", "b"]}),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_the_same_table_in_other_clothes(
    tmp_path: Path, name: str, content: bytes, keys: dict[str, Any]
) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_table(tmp_path / name, given(**keys))
    assert table.columns == ["a", "b"]
    assert table.numbers("a").tolist() == [1, 2.5]
    assert table.texts("b") == ["Zo\u00e9", "x"]


def test_pieces_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((f"\u00e9\n\u00e9\n{ROWS}" * 1).encode("utf-16"))
    for size in (1, 2, 3, 7, 64):
        monkeypatch.setattr(text, "_PIECE", size)
        form = text.form_of(path.read_bytes(), given(skip_lines=2, separator="space"))
        pieces = b"".join(text.pieces_of(path, form))
        assert pieces.decode() == ROWS


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_byte_that_is_not_of_the_encoding_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    content = ROWS.encode("latin-1") + b"3,\x81\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert refusal(tmp_path / name) == (
        f"{name}: byte 0xe9 at 8, in line 2, is not UTF-8: give the encoding that it was saved in, such as "
        f"--encoding windows-1252"
    )
    assert "byte 0x81 at 18, in line 4, is not WINDOWS-1252" in refusal(
        tmp_path / name, encoding="windows-1252"
    )
    assert "is not GB18030" in refusal(tmp_path / name, encoding="gb18030")
    with pytest.raises(DataFileError, match=r'such as { path = "t.csv.*", encoding = "windows-1252" }'):
        read_table(tmp_path / name, TablePath(path=name)).texts("b")


def test_a_byte_in_the_header_is_named_and_so_are_null_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,h\u00f6he\n1,2\n".encode("latin-1"))
    assert "byte 0xf6 at 3, in line 1, is not UTF-8" in refusal(path)
    path.write_bytes(ROWS.encode("utf-16-le"))
    assert refusal(path).endswith(
        "its first line has null bytes: give its encoding, such as --encoding utf-16-le"
    )
    path.write_bytes(ROWS.encode("utf-16-be"))
    assert refusal(path).endswith("such as --encoding utf-16-be")


def test_utf_16_without_its_mark_or_its_end_is_refused_with_what_may_be_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS.encode("utf-16-le"))
    assert refusal(path, encoding="utf-16") == (
        "t.csv: has no mark of UTF-16 at its beginning: give --encoding utf-16-le or --encoding utf-16-be"
    )
    path.write_bytes(ROWS.encode("utf-16")[:-1])
    assert "is not UTF-16: it is cut off or damaged, or else give the encoding" in refusal(path)


def test_lines_to_leave_out_are_fewer_than_there_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    for number in (2, 3, 1000):
        assert refusal(path, skip_lines=number) == (
            f"t.csv: --skip-lines {number}: it has no line after those; leave out fewer"
        )


def test_a_row_of_one_cell_with_blanks_in_it_may_be_separated_by_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1 2 3\n4 5 6\n")
    assert refusal(tmp_path / "t.csv", columns=["a", "b", "c"]).endswith(
        "has 3 names, but its first row has 1 cell; name each of them, or give --separator space if blanks "
        "separate"
    )


def test_columns_are_as_many_as_a_row_has(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1;2;3\n4;5;6\n")
    assert refusal(path, columns=["a", "b"]) == (
        "t.csv, row 1: --columns a,b: has 2 names, but its first row has 3 cells; name each of them"
    )
    assert read_table(path, given(columns=["a", "b", "c"])).numbers("b").tolist() == [2, 5]
    path.write_text("1\n4\n")
    assert read_table(path, given(columns=["a"], separator=";")).numbers("a").tolist() == [1, 4]


def test_runs_of_blanks_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a b\n1,5 2\n")
    [note] = read_table(tmp_path / "t.csv", given(separator="space")).notes
    assert note.startswith("read with blanks between cells and ',' as decimal point")


@pytest.mark.parametrize(
    ("content", "doubt"),
    [
        (
            "7,0.5,x\n8,0.25,y\n",
            "if it has no header, name its 3 columns, as --columns a,b,c does",
        ),
        ("0,walk,0,1\n1,run,2,1\n", "name its 4 columns, as --columns a,b,c,d does"),  # of equal cells too
        ("# made by hand\n# in May\n1\n", "looks like a comment: leave it out with --skip-lines 2"),
        ("who   b\n1     2\n", "is one cell: give --separator space if blanks separate"),
    ],
)
def test_a_first_line_that_is_hardly_a_header_is_told_where_a_column_is_missing(
    tmp_path: Path, content: str, doubt: str
) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert refusal(tmp_path / "t.csv").endswith(doubt)
    assert read_table(tmp_path / "t.csv").notes[-1].endswith(doubt)


def test_a_comment_that_is_no_row_of_the_table_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("# made by hand\na,b\n1,2\n")
    message = refusal(tmp_path / "t.csv")
    assert message.startswith("t.csv, row 1: cannot be read as CSV (")
    assert message.endswith(
        "its first line, '# made by hand', looks like a comment: leave it out with --skip-lines 1"
    )


def test_numbers_that_count_up_are_names_as_pandas_gives_them(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",0,1,2\n0,5,6,7\n")
    table = read_table(tmp_path / "t.csv")
    assert table.columns == ["0", "1", "2"]
    assert table.notes == ("column 1 has no name, and is left out: pandas' index or R's row names, perhaps",)


def test_a_line_without_end_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_LINE", 1000)
    (tmp_path / "t.csv").write_text("x" * 2000)
    assert "has a line of more than 1,000 letters" in refusal(tmp_path / "t.csv", separator="space")
