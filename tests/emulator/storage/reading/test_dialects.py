"""CSVs as people have them: what separates cells, decimal commas, texts for missing values, and zips."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.storage.reading import tally
from emulator.storage.reading.dialects import Dialect, Sample, find_dialect
from emulator.storage.table_paths import Given
from tests.traces.building.table.tables import as_csv, build, built, refused, rows, write, write_parquet
from traces.files import open_folder

SAID = "read with {} between cells and '{}' as decimal point: --separator and --decimal override"


def sample(text: str, name: str = "t.csv", *, is_whole: bool = True) -> Sample:
    header, *lines = (line for line in text.encode().split(b"\n") if line)
    return Sample(Path(name), header, lines, is_whole)


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a,b\n1,2\n", ",", "."),
        ("a;b\n1,5;2\n", ";", ","),
        ("a;b\n1,5;2.5\n", ";", "."),  # a number has a point
        ("a;b\n1,5;31.12.2020\n", ";", ","),  # which is no number
        ("a\tb\n1,500\t,5\n", "\t", ","),  # the second one separates no thousands
        ("a|b\n1e-3|-1,5E+2\n", "|", ","),
        ("day at;b\n2024-01-01 10:00;1\n", ";", "."),  # a blank is no separator
        ("a;b, c\n1;2,5\n", ",", "."),  # both fit: commas come first
        ('a;b;c\n"x;y";"1,5";2\n', ";", ","),  # within quotes nothing is separated
        ('a;b\n"x\n;;y";1\n2;3\n', ";", "."),  # nor lines
        ('a;b\n5" nail;2\nx;"7"\n', ";", "."),  # a quote within a cell is a letter
        ('a;b\n"say ""1,5""; or";2\n', ";", "."),
        ("a;b\nx;y,z\n", ";", "."),  # no number
        ("abc\n1\n", ",", "."),
    ],
)
def test_the_separator_is_the_one_that_fits_all_rows(text: str, separator: str, decimal: str) -> None:
    found = find_dialect(lambda: [sample(text)], Given())
    assert (found.separator, found.decimal) == (separator, decimal)


def test_a_row_that_may_go_on_behind_the_first_lines_is_not_counted() -> None:
    text = 'a;b\n1;2\n"x;'
    assert find_dialect(lambda: [sample(text, is_whole=False)], Given()).separator == ";"
    with pytest.raises(Exception, match="row 2: has 1 cell with ';' between them"):
        find_dialect(lambda: [sample(text)], Given())


def test_what_fits_a_single_row_is_kept_where_bad_rows_may_be_left_out() -> None:
    """Such a table was built before other separators were read."""
    text = "a,b;c,d\n1,2;3,4\n5,6;7\n"
    assert find_dialect(lambda: [sample(text)], Given()).separator == ";"
    assert find_dialect(lambda: [sample(text)], Given(), skips_bad=True).separator == ","


def test_a_quoted_cell_with_quotes_in_it_is_no_number() -> None:
    assert find_dialect(lambda: [sample('a;b\n"1,5""";x\n')], Given()).decimal == "."


def test_evidence_is_that_of_all_files() -> None:
    files = [sample("a;b|c\n1,500;2|3\n"), sample("a;b|c\n4,25;5,5\n", "u.csv")]
    assert find_dialect(lambda: files, Given()) == Dialect(";", ",", said=True)
    files[1] = sample("a;b|c\n4.25;5\n", "u.csv")
    assert find_dialect(lambda: files, Given()) == Dialect(";", ".", said=True)


LONG = f"{'x' * 500};0;2\n"
"""Many of these are more than pyarrow infers types from."""


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (
            "who|kind;a\nx|0;1\n",
            {},
            "t.csv: may be separated in two ways: ';' gives 2 columns, who|kind, a; '|' gives 2 columns, "
            "who, kind;a: give --separator ';' or --separator '|'",
        ),
        (
            "who;kind;a\nx;0;1\ny;1\n",
            {},
            "t.csv, row 2: has 2 cells with ';' between them, but the header has 3: mend the row, or give "
            "--separator ';' (and --skip-bad, to leave out such rows)",
        ),
        (
            "who;kind;a\nx;0;2\nx;0;1,500\n",
            {},
            "t.csv, row 2: a = '1,500': is 1.500 if its comma is a decimal point, and 1500 if it separates "
            "thousands, and no other number tells: give --decimal ',' for the former; for the latter save "
            "the numbers without such commas, or give --decimal . to keep them as texts",
        ),
        (
            "who;kind;a\nx;0;1\n",
            {"separator": "|"},
            "t.csv: --separator '|': its header 'who;kind;a' has one cell with '|' between cells; give "
            "another one, or none, to have it found",
        ),
        ("who;kind;a\nx;0;1,5\nx;1;2.5\n", {}, "t.csv: features of text: a ('1,5' in row 1); name the"),
        (
            "who;kind;a\nx;0;1,5\nx;1;2.5\n",
            {"decimal": ","},
            "t.csv: features of text: a ('2.5' in row 2); name the",
        ),
        (
            f"who;kind;a\nx;0;1,5\n{LONG * 2500}x;0;2.5\n",
            {},
            "t.csv, row 2502: a = '2.5': must be a number, with ',' as decimal point",
        ),
        (
            "who;kind;t;a\nx;0;0,5;1\nx;0;later;1\n",
            {"order": "t", "decimal": ","},
            "t.csv, row 1: t = '0,5': must be a date",
        ),
    ],
)
def test_a_dialect_that_cannot_be_told_is_refused(
    tmp_path: Path, text: str, settings: dict[str, Any], message: str
) -> None:
    assert refused(write(tmp_path, text, "t.csv"), **settings).startswith(message)


def test_files_of_one_table_have_one_separator(tmp_path: Path) -> None:
    write(tmp_path, "who;kind;a\nx;0;1\n", "t/a.csv")
    write(tmp_path, "who\tkind\ta\nx\t0\t1\n", "t/b.csv")
    assert refused(tmp_path / "t") == (
        "t/b.csv: has a tab between its cells, but a.csv has ';': files of one table have the same; save "
        "them alike, or give each kind of them a folder of its own"
    )


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zip", "t.tsv", "t.tsv.gz"])
@pytest.mark.parametrize("skip_bad", [0, 5])
def test_a_table_in_another_dialect_gives_the_same_trace(tmp_path: Path, name: str, skip_bad: int) -> None:
    generator = np.random.default_rng(0)
    columns = {
        "who": generator.integers(0, 5, 300),
        "kind": generator.integers(0, 3, 300),
        "t": generator.normal(size=300).round(3),
        "a": generator.normal(size=300).round(2),
        "b": generator.integers(0, 9, 300),
    }
    settings = {"order": "t", "features": ["a", "b"], "skip_bad": skip_bad}
    plain = built(write(tmp_path, as_csv(columns), "plain.csv"), **settings)
    mark = "\t" if ".tsv" in name else ";"
    text = as_csv(columns).replace(",", mark).replace(".", ",")
    root = zipped(tmp_path / name, ("t.csv", text)) if name.endswith("zip") else write(tmp_path, text, name)
    result = build(root, tmp_path / "out", **settings)
    assert open_folder(tmp_path / "out").digests == plain.digests
    assert result.notes[0] == SAID.format("a tab" if mark == "\t" else "';'", ",")


def test_a_dialect_that_is_given_is_not_told(tmp_path: Path) -> None:
    root = write(tmp_path, "who|kind|a;b\nx|0|1,500\n")
    result = build(root, tmp_path / "out", separator="|", decimal=",", test_share=0)
    assert open_folder(tmp_path / "out").features.values.tolist() == [[1.5]]
    assert not any("between cells" in note for note in result.notes)


def zipped(path: Path, *files: tuple[str, str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, text in files:
            archive.writestr(name, text)
    return path


TEXT = "who,kind,a\nx,0,1.5\n"


def changed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(old, new)


@pytest.mark.parametrize(
    ("files", "method", "change", "message"),
    [
        (
            (("a.csv", TEXT), ("b.csv", TEXT)),
            zipfile.ZIP_DEFLATED,
            None,
            "has a.csv, b.csv in it; a zip of a table has one CSV: unpack it, and give the folder",
        ),
        (
            (("a/", ""),),
            zipfile.ZIP_DEFLATED,
            None,
            "has no file in it; a zip of a table has one CSV: unpack it, and give the folder",
        ),
        ((("a.csv", ""),), zipfile.ZIP_DEFLATED, None, "is empty"),
        (
            (("a.csv", TEXT),),
            zipfile.ZIP_BZIP2,
            None,
            "a.csv in it is compressed by method 12; only deflate is read: unpack it, and give the CSV",
        ),
        (
            (("a.csv", TEXT),),
            zipfile.ZIP_STORED,
            changed(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
            "a.csv in it is encrypted; unpack it, and give the CSV",
        ),
        (
            (("a.csv", TEXT),),
            zipfile.ZIP_STORED,
            changed(b"1.5", b"1.6"),
            "cannot be read as CSV (Bad CRC-32 for file 'a.csv')",
        ),
        (
            (("a.csv", TEXT),),
            zipfile.ZIP_STORED,
            lambda content: content[:-30],
            "cannot be read as CSV (File is not a zip file)",
        ),
    ],
)
def test_a_zip_that_is_no_table_is_refused(
    tmp_path: Path,
    files: tuple[tuple[str, str], ...],
    method: int,
    change: Callable[[bytes], bytes] | None,
    message: str,
) -> None:
    root = zipped(tmp_path / "t.csv.zip", *files, method=method)
    if change is not None:
        root.write_bytes(change(root.read_bytes()))
    assert refused(root) == f"t.csv.zip: {message}"


def test_a_zip_is_unpacked_as_far_as_the_bound_of_texts_and_its_contents_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = zipped(tmp_path / "t.csv.zip", ("__MACOSX/._t.csv", "?"), ("t.csv", TEXT + "x,1,2\n" * 10_000))
    assert root.stat().st_size < 1000
    monkeypatch.setattr(tally, "MOST_TEXT", 50_000)
    assert refused(root).startswith("t.csv.zip: has more than 50,000 bytes of text")
    monkeypatch.setattr(tally, "MOST_TEXT", 70_000)
    assert build(root, tmp_path / "out").train > 0
    monkeypatch.setattr("emulator.storage.reading.zip_file.MOST_READ", 60)
    assert "its table of contents has more than 60 bytes" in refused(root)


def test_texts_stand_for_missing_features_and_are_classes_all_the_same(tmp_path: Path) -> None:
    text = "who,kind,a,s\n-,-,1,u\ny,0,-,-\nz,0, 3,?\n"
    settings: dict[str, Any] = {"na": ["-", "?"], "one_hot": ["s"], "missing": "zero", "test_share": 0}
    for skip_bad in (0, 1):
        folder = built(write(tmp_path, text, f"{skip_bad}/t.csv"), skip_bad=skip_bad, **settings)
        assert folder.features.values.tolist() == [[1, 1], [0, 0], [3, 0]]  # s=u comes second
        assert folder.facts.classes == ("-", "0")
        assert {client for (client,) in rows(folder, "client")} == {"-", "y", "z"}
    assert refused(write(tmp_path, text), **{**settings, "na": ["?"]}).endswith(
        "features of text: a ('-' in row 2); name the numbers with --features (and --skip-bad, to leave out "
        "rows with a text among numbers), or make columns of the values with --one-hot, or give --na for "
        "texts that stand for a missing number"
    )


@pytest.mark.parametrize(
    ("text", "settings", "what"),
    [
        ("who,kind,a\n-,0,1\n", {}, "who is missing: the client of the row"),
        ("who,kind,a\nx,-,1\n", {}, "kind is missing: the label of the row"),
        ("who,kind,t,a\nx,0,-,1\n", {"time": "t"}, "t is missing"),
        ("who,kind,t,a\nx,0,-,1\n", {"split": "t"}, "t is missing: the split of the row"),
        ("who,kind,t,a\nx,0,-,1\n", {"step": "t"}, "t is missing"),
    ],
)
def test_texts_stand_for_missing_labels_clients_and_times_on_request(
    tmp_path: Path, text: str, settings: dict[str, Any], what: str
) -> None:
    good = text.splitlines()[1].replace("-", "train" if "split" in settings else "1")
    root = write(tmp_path, f"{text}{good}\n")
    assert refused(root, na=["-"], na_everywhere=True, **settings) == f"table.csv, row 1: {what}"


def test_texts_that_no_feature_can_have_are_refused(tmp_path: Path) -> None:
    root = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0]})
    assert refused(root, na=["-"]).startswith(
        "table.parquet: --na: is about texts, and its features are none"
    )


def test_a_blank_first_line_is_no_header(tmp_path: Path) -> None:
    folder = built(write(tmp_path, "\n\nwho;kind;a\nx;0;1,5\n"), test_share=0)
    assert folder.features.values.tolist() == [[1.5]]


def test_tables_of_other_formats_beside_a_csv_stay_unread_and_are_named(tmp_path: Path) -> None:
    """As they did before they could be read."""
    write(tmp_path, "who,kind,a\nx,0,1\n", "t/a.csv")
    write(tmp_path, "who\tkind\ta\nx\t0\t2\n", "t/b.tsv")
    result = build(tmp_path / "t", tmp_path / "out")
    assert result.train == 1
    assert result.notes[0] == (
        "not read, beside files that end with .csv, .csv.gz, .parquet: b.tsv; give them a folder of their own"
    )
    (tmp_path / "t/a.csv").rename(tmp_path / "t/a.csv.zip")
    assert refused(tmp_path / "t") == "t/a.csv.zip: cannot be read as CSV (File is not a zip file)"
    (tmp_path / "t/a.csv.zip").rename(tmp_path / "t/a.arrow")
    assert refused(tmp_path / "t") == "t: has both Arrow and CSV, a.arrow and b.tsv; give one kind"


def test_a_column_name_that_occurs_twice_matters_where_it_is_used(tmp_path: Path) -> None:
    text = "who,kind,a,b,b\nx,0,1,2,3\nx,1,2,3,4\n"
    folder = built(write(tmp_path, text), features=["a"], test_share=0)
    assert folder.features.values.tolist() == [[1], [2]]
    for used in ({}, {"features": ["b"]}, {"order": "b", "features": ["a"]}):
        assert refused(write(tmp_path, text, "u.csv"), **used) == (
            "u.csv: a column name occurs twice: 'b'; rename one, or use neither"
        )


def test_a_file_without_a_header_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    text = "x;0;1,5\ny;1;2,5\n"
    names = {"columns": ["who", "kind", "a"]}
    folder = built(write(tmp_path, text, "t.txt"), test_share=0, **names)
    assert folder.features.values.tolist() == [[1.5], [2.5]]
    bad = write(tmp_path, f"{text}z;1\n", "bad.txt")
    assert refused(bad, separator=";", **names).startswith("bad.txt, row 3: cannot be read as CSV")
    assert build(bad, tmp_path / "out", separator=";", skip_bad=1, **names).left_out == 1
    late = write(tmp_path, "x,0,1\n" * 300_000 + "x,0,soon\n", "late.txt")
    assert refused(late, **names) == "late.txt, row 300001: a = 'soon': must be a number"


def test_texts_beside_tables_tell_about_them_and_alone_they_are_tables(tmp_path: Path) -> None:
    write(tmp_path, "who kind a\nx 0 1\n", "t/a.txt")
    assert build(tmp_path / "t", tmp_path / "out", separator="space").train == 1
    write(tmp_path, "who,kind,a\nx,0,1\nx,0,2\n", "t/b.tsv")
    result = build(tmp_path / "t", tmp_path / "two", separator=",", test_share=0)
    assert result.train == 2
    assert not any("a.txt" in note for note in result.notes)


def test_rewritten_shards_are_one_table(tmp_path: Path) -> None:
    for number, name in enumerate(("a.csv", "b.csv")):
        (tmp_path / "t").mkdir(exist_ok=True)
        (tmp_path / "t" / name).write_bytes(f"# {name}\nwho,kind,a\nJosé,0,{number}\n".encode("latin-1"))
    folder = built(tmp_path / "t", encoding="latin-1", skip_lines=1, test_share=0)
    assert folder.features.values.tolist() == [[0], [1]]
    assert {client for (client,) in rows(folder, "client")} == {"José"}
    assert refused(tmp_path / "t", skip_lines=1) == (
        "t/a.csv: byte 0xe9 at 22, in line 3, is not UTF-8: give the encoding that it was saved in, such as "
        "--encoding windows-1252"
    )
