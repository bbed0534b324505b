"""Targets, tokens and all classes of a table or an array: what is written, said and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from emulator.errors import EmulatorError
from emulator.ports import Tokens
from emulator.seeding import RandomStreams
from tests.traces.building.table.tables import TINY, build, built, refused, rows, write, write_parquet
from traces.building.table.frame import write_frame
from traces.building.table.settings import TableSettings
from traces.exporting.parquet import export_parquet
from traces.files import TARGETS, TraceFolder, open_folder
from traces.files.checking import check_folder
from traces.sources.base import TraceContext
from traces.sources.file import File, FileSettings

FRAME = {"who": [0, 1, 0, 1], "kind": [2, 0, 0, 2]}
IDS = np.array([[0, 3, 1], [2, 2, 0], [1, 0, 0], [3, 1, 2]])


def framed(folder: Path, features: Any = IDS, columns: Any = FRAME, **given: Any) -> TraceFolder:
    arguments = {name: given.pop(name) for name in ("targets", "class_names") if name in given}
    settings = TableSettings.model_validate({"client": "who", "label": "kind", "test_share": 0, **given})
    write_frame(folder / "out", features, pd.DataFrame(columns), settings, **arguments)
    assert check_folder(folder / "out").violations == []
    return open_folder(folder / "out")


def test_columns_of_numbers_are_targets_in_the_order_of_samples_and_no_features(tmp_path: Path) -> None:
    folder = built(write(tmp_path, TINY), target=["b", "day"], test_share=0)
    assert folder.features.numbers is not None
    assert folder.features.numbers.tolist() == [[10, 3], [20, 1], [30, 1], [40, 2]]
    assert folder.features.values.tolist() == [[1], [2], [3], [4]]
    assert set(folder.facts.files) == {"arrivals.parquet", "features.npy", TARGETS}


def test_without_a_label_there_is_one_class_and_rows_that_are_left_out_have_no_target(tmp_path: Path) -> None:
    given: dict[str, Any] = {"target": ["b"], "features": ["a"], "label": None, "test_share": 0}
    folder = built(write(tmp_path, TINY), step="day", since=2, **given)
    assert folder.rows.classes == ("all",)
    assert folder.features.numbers is not None
    assert folder.features.numbers.tolist() == [[10], [40]]
    assert rows(folder, "client", "label", "sample") == [("ann", 0, 0), ("bob", 0, 1)]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"y": [1.0, None, 2.0]}, "table.parquet, row 2: y is missing"),
        ({"y": [1.0, 2.0, float("inf")]}, "row 3: y = inf: must be a finite number of 32 bits"),
        ({"y": [1.0, 1e300, 2.0]}, "row 2: y = 1e+300: must be a finite number of 32 bits"),
        ({"y": ["a", "b", "c"]}, "column 'y' is string; it must hold numbers"),
        ({"y": [[1.0, 2.0], [1.0], [1.0, 2.0]]}, "row 2: y = a list of 1: must have 2 values"),
        ({"y": [[1.0], [2.0], [float("nan")]]}, "row 3: y = nan: must be a finite number of 32 bits"),
        ({"z": [1, 2, 3]}, "unknown column 'y'"),
    ],
)
def test_a_target_that_is_missing_or_no_number_is_refused_with_its_row(
    tmp_path: Path, columns: Any, problem: str
) -> None:
    given = {"who": ["a", "b", "a"], "kind": [0, 1, 0], "x": [1.0, 2.0, 3.0], **columns}
    assert problem in refused(write_parquet(tmp_path, given), target=["y"], features=["x"])


def test_bad_targets_may_be_left_out(tmp_path: Path) -> None:
    given = {"who": ["a", "b", "a"], "kind": [0, 1, 0], "x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, None]}
    folder = built(write_parquet(tmp_path, given), target=["y"], features=["x"], skip_bad=1, test_share=0)
    assert folder.features.numbers is not None
    assert folder.features.numbers.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"target": ["kind"]}, "column 'kind' is named twice"),
        ({"num_classes": 3, "classes": 2}, "classes and num_classes exclude each other"),
        ({"num_classes": 3, "label": None, "target": ["a"]}, "num_classes = 3: only with label"),
        ({"tokens": {"vocabulary": 3, "padding": 3}}, "padding = 3: must be below vocabulary = 3"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        TableSettings.model_validate({"client": "who", "label": "kind", **settings})


@pytest.mark.parametrize(
    ("targets", "stored", "dtype"),
    [
        ([1, 2.5, 3, -4], [[1], [2.5], [3], [-4]], np.float32),
        (np.array([[1, 0]] * 4, np.uint8), [[1, 0]] * 4, np.uint8),
        (np.array([True, False, True, True]), [[1], [0], [1], [1]], np.uint8),
    ],
)
def test_an_array_has_targets(tmp_path: Path, targets: Any, stored: Any, dtype: Any) -> None:
    numbers = framed(tmp_path, targets=targets).features.numbers
    assert numbers is not None
    assert numbers.dtype == dtype
    assert numbers.tolist() == stored


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ([1, 2, 3], r"targets: are int64 of shape \(3,\); must be numbers of shape \(4,\) or \(4, targets\)"),
        (np.zeros((4, 1, 1)), r"targets: are float64 of shape \(4, 1, 1\)"),
        ([1, None, 2, 3], r"targets: are object of shape \(4,\)"),
        ([1, 2, np.nan, 3], "targets, row 2: target = nan: must be a finite number of 32 bits"),
    ],
)
def test_an_array_of_targets_is_checked(tmp_path: Path, targets: Any, problem: str) -> None:
    with pytest.raises(EmulatorError, match=problem):
        framed(tmp_path, targets=targets)
    assert list(tmp_path.iterdir()) == []


def test_a_row_needs_a_class_or_something_else_that_is_told(tmp_path: Path) -> None:
    missing = "label is missing, the column of the class; only with targets or tokens may it be"
    assert refused(write(tmp_path, TINY), label=None, features=["a"]) == missing
    with pytest.raises(EmulatorError, match=missing):
        framed(tmp_path, label=None)
    assert framed(tmp_path, label=None, targets=[1, 2, 3, 4]).rows.classes == ("all",)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_ids_of_tokens_stay_as_they_are(tmp_path: Path, dtype: Any) -> None:
    folder = framed(tmp_path, IDS.astype(dtype), tokens={"vocabulary": 4, "padding": 0}, label=None)
    assert (folder.facts.mean, folder.facts.deviation) == (None, None)
    assert folder.features.tokens == Tokens(4, 0)
    assert folder.features.features(np.arange(4)).tolist() == IDS.tolist()


@pytest.mark.parametrize(
    ("features", "problem"),
    [
        (IDS + 1, "sample 0: has 1 value.s. that are no ids of 4 tokens, .* such as 4.0"),
        (IDS / 2, "sample 0: has 2 value.s. that are no ids of 4 tokens, .* such as 1.5"),
        (np.array([[0], [0], [2**24 + 1], [0]]), "row 2: 16777217 at 0 of its features: a whole"),
        (np.zeros((4, 2, 2), np.uint8), r"samples of shape \(2, 2\) are no texts"),
    ],
)  # fmt: skip
def test_what_is_no_id_ends_the_build(tmp_path: Path, features: Any, problem: str) -> None:
    with pytest.raises(EmulatorError, match=problem):
        framed(tmp_path, features, tokens={"vocabulary": 4})
    assert list(tmp_path.iterdir()) == []


def test_output_i_is_class_i_whether_it_occurs_or_not(tmp_path: Path) -> None:
    folder = framed(tmp_path, num_classes=5)
    assert folder.rows.classes == ("0", "1", "2", "3", "4")
    assert dict(rows(folder, "sample", "label")) == {0: 2, 1: 0, 2: 0, 3: 2}


def test_with_classes_only_the_commonest_are_left_and_numbered_anew(tmp_path: Path) -> None:
    columns = {"who": [0, 1, 0, 1], "kind": [2, 0, 2, 2]}
    folder = framed(tmp_path, columns=columns, class_names=["z", "y", "x"], classes=1)
    assert folder.rows.classes == ("x",)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_has_all_classes_too_and_says_what_it_renumbers(tmp_path: Path, kind: str) -> None:
    table = pd.DataFrame({"who": ["a", "b"] * 3, "kind": [2, 5, 2, 5, 5, 2], "x": range(6)})
    root = tmp_path / f"table.{kind}"
    table.to_csv(root, index=False) if kind == "csv" else table.to_parquet(root)
    notes = build(root, tmp_path / "renumbered").notes
    assert "labels are renumbered by what occurs: 2 is class 0 of 2; --num-classes keeps all numbers" in notes
    notes = build(root, tmp_path / "kept", num_classes=6).notes
    assert not any("renumbered" in note for note in notes)
    assert {label for (label,) in rows(open_folder(tmp_path / "kept"), "label")} == {2, 5}
    problem = "row 2: kind = 5: there are 5 classes, 0 to 4; give all of them, or leave out rows without one"
    assert refused(root, num_classes=5) == f"table.{kind}, {problem}"


def test_tokens_and_targets_are_exported_and_built_again(tmp_path: Path) -> None:
    given = {"tokens": {"vocabulary": 4, "padding": 0}, "targets": [[1, 2.5], [3, 4], [5, 6], [7, 8]]}
    first = framed(tmp_path, test_share=0.25, columns={"who": [0, 0, 0, 0], "kind": [0, 0, 0, 0]}, **given)
    settings = FileSettings(folder=str(first.path), rounds_per_step=1)
    trace = File(settings).build(TraceContext(1, RandomStreams(0), Path))
    export_parquet(trace, 1, tmp_path / "t.parquet", "a test")
    about = pq.read_schema(tmp_path / "t.parquet").metadata[b"driftscale"].decode()
    assert '"tokens": {"vocabulary": 4, "padding": 0}' in about
    again = built(
        tmp_path / "t.parquet", client="client", label="label", split="split", features=["features"],
        target=["targets"], tokens=given["tokens"],
    )  # fmt: skip
    assert again.features.tokens == first.features.tokens
    for name in ("values", "numbers"):
        stored = [getattr(folder.features, name) for folder in (first, again)]
        assert sorted(stored[0].tolist()) == sorted(stored[1].tolist())
