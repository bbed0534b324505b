"""Columns of small CSVs: texts as they are written, and numbers that are checked when they are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import DataFileError
from emulator.storage.reading.tally import Tally
from traces.building.text_columns import TextColumns


def table(folder: Path, *cells: str) -> TextColumns:
    path = folder / "t.csv"
    path.write_text("\n".join(("a,b", *(f"{cell},x" for cell in cells))) + "\n", encoding="utf-8")
    return TextColumns(path, ("a",), Tally(10**6), optional=("b", "c"))


def test_texts_are_as_written_without_blanks_at_their_ends(tmp_path: Path) -> None:
    columns = table(tmp_path, " 007 ", "NA", "7")
    assert columns.texts("a") == ["007", "NA", "7"]
    assert (columns.num_rows, "b" in columns, "c" in columns) == (3, True, False)


def test_numbers_are_read_and_checked_when_they_are_used(tmp_path: Path) -> None:
    columns = table(tmp_path, " 1", "-2 ")
    assert (columns.integers("a").tolist(), columns.numbers("a").tolist()) == ([1, -2], [1.0, -2.0])


@pytest.mark.parametrize(
    ("cells", "kind", "message"),
    [
        (("1", "2.5"), "integers", "row 2: a = '2.5': must be a whole number"),
        (("1", "+2", "x"), "integers", "row 2: a = '+2': must be a whole number"),
        (("1", "", "x"), "integers", "row 2: a is missing"),
        (("1", "left"), "numbers", "row 2: a = 'left': must be a number"),
        (("1", "2", "nan"), "numbers", "row 3: a = nan: must be a finite number"),
    ],
)
def test_the_first_cell_that_does_not_fit_is_named(
    tmp_path: Path, cells: tuple[str, ...], kind: str, message: str
) -> None:
    with pytest.raises(DataFileError) as error:
        getattr(table(tmp_path, *cells), kind)("a")
    assert str(error.value).endswith(message)
