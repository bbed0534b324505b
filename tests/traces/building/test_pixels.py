"""Images that are rows of several files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traces.building.pixels import ArrayFiles
from traces.building.rules import Cells, Rule


def test_rows_of_several_files_are_streamed_in_any_order() -> None:
    arrays = [np.full((rows, 1, 1), number, np.uint8) for number, rows in enumerate((2, 0, 3))]
    arrays[2][:, 0, 0] += np.arange(3, dtype=np.uint8)
    files = ArrayFiles(Path("r"), ["a", "b", "c"], arrays)
    order = np.array([4, 0, 1, 3, 2, 0])
    assert [np.asarray(image).item() for image in files.stream(order)] == [4, 0, 0, 3, 2, 0]
    assert list(files.stream(order[:0])) == []
    assert [files.name(image) for image in (1, 2, 4)] == ["r/a, row 2", "r/c, row 1", "r/c, row 3"]


def test_a_rule_names_the_value_of_a_column_that_is_a_list() -> None:
    rule = Rule(lambda cells: cells.label < 0, "class {text!r} of {known}")
    cells = Cells(label=np.array([0, -1]), text=["a", "b"], known=("a", "c"))
    assert rule.problem(cells, 1) == "class 'b' of ('a', 'c')"
