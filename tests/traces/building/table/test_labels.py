"""Labels that are whole numbers, written as fractions: as pandas writes integers with a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.traces.building.table.tables import build, refused, rows, write, write_parquet
from traces.files import open_folder

NOTE = "label: whole numbers written as fractions, such as {}, are classes, such as {}"


@pytest.mark.parametrize(
    ("cells", "classes", "labels", "note"),
    [
        (["2.0", "1.0", "10.0", "2"], ("1", "2", "10"), [1, 0, 2, 1], NOTE.format("1.0", 1)),
        (["1", "2.00", "+2.", "-1.0"], ("-1", "1", "2"), [1, 2, 2, 0], NOTE.format("-1.0", -1)),
        (["1.000e+00", "2.0e0", "1"], ("1", "2"), [0, 1, 0], NOTE.format("1.000e+00", 1)),
        (["2,0", "1,0"], ("1", "2"), [1, 0], NOTE.format("1,0", 1)),
    ],
)
def test_they_are_classes_of_a_csv(
    tmp_path: Path, cells: list[str], classes: tuple[str, ...], labels: list[int], note: str
) -> None:
    text = "who;kind;a\n" + "".join(f"x;{cell};1\n" for cell in cells)
    root = write(tmp_path, text if "," in cells[0] else text.replace(";", ","))
    result = build(root, tmp_path / "out", in_file_order=True, test_share=0)
    folder = open_folder(tmp_path / "out")
    assert folder.facts.classes == classes
    assert [label for (label,) in rows(folder, "label")] == labels
    assert note in result.notes


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_they_are_classes_of_a_parquet_in_which_nan_is_missing(tmp_path: Path, kind: pa.DataType) -> None:
    labels = pa.array([np.float16(value) for value in (3, 1, np.nan, 3)] + [None], pa.float16()).cast(kind)
    root = write_parquet(tmp_path, {"who": ["x"] * 5, "kind": labels, "a": np.arange(5)})
    assert refused(root) == "table.parquet, row 3: kind is missing: the label of the row"
    result = build(root, tmp_path / "out", skip_bad=2, in_file_order=True, test_share=0)
    folder = open_folder(tmp_path / "out")
    assert (folder.facts.classes, rows(folder, "label")) == (("1", "3"), [(1,), (0,), (1,)])
    assert NOTE.format("1.0", 1) in result.notes


def test_a_fraction_behind_whole_numbers_is_one_of_them(tmp_path: Path) -> None:
    """The type of the column is that of the first block, and of whole numbers."""
    lines = "".join(f"{'x' * 500},{row % 2},1\n" for row in range(2500))
    result = build(write(tmp_path, f"who,kind,a\n{lines}x,1.0,1\n"), tmp_path / "out", test_share=0)
    assert open_folder(tmp_path / "out").facts.classes == ("0", "1")
    assert rows(open_folder(tmp_path / "out"), "label").count((1,)) == 1251
    assert NOTE.format("1.0", 1) in result.notes


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1.0", "2.5"], "table.csv, row 2: label: column 'kind' holds 2.5, a regression target; labels"),
        (["1.0", "NA"], "table.csv, row 2: kind is missing: the label of the row"),
        (["1.0", ""], "table.csv, row 2: kind is missing: the label of the row"),
        (
            [f"{number}.0" for number in range(1001)],
            "table.csv: label: column 'kind' has more than 1000 different values, a regression target",
        ),
        (["1e30", "2.0"], "table.csv, row 1: label: column 'kind' holds 1e30, a regression target"),
    ],
)
def test_others_are_refused(tmp_path: Path, cells: list[str], message: str) -> None:
    root = write(tmp_path, "who,kind,a\n" + "".join(f"x,{cell},1\n" for cell in cells))
    assert refused(root).startswith(message)


def test_a_thousand_are_classes(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"who": ["x"] * 1001, "kind": np.arange(1001.0), "a": np.arange(1001)}
    assert refused(write_parquet(tmp_path, columns)).startswith(
        "table.parquet: label: column 'kind' has more"
    )
    columns["kind"] = np.minimum(columns["kind"], 999)
    assert build(write_parquet(tmp_path, columns), tmp_path / "out").classes == 1000


def test_texts_among_which_fractions_are_stay_texts(tmp_path: Path) -> None:
    build(write(tmp_path, "who,kind,a\nx,1.0,1\nx,v2,1\nx,NA,1\n"), tmp_path / "out", test_share=0)
    assert open_folder(tmp_path / "out").facts.classes == ("1.0", "NA", "v2")


def test_a_number_of_millions_of_digits_behind_whole_ones_is_refused_at_once(tmp_path: Path) -> None:
    """Hostile: as a whole number it would take minutes."""
    root = write(tmp_path, "who,kind,a\n" + "x,1,1\n" * 200_000 + "x,1.5,1\nx,1e30000000,1\n")
    assert refused(root).startswith("table.csv: label: column 'kind' holds 1.5, a regression target")
