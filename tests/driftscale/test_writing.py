"""`driftscale.write_trace`: its arguments, and its errors in words of Python."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftscale
from emulator.errors import EmulatorError
from traces.building.table.settings import TableSettings

COLUMNS = {"who": [0, 1, 0, 1], "kind": [0, 1, 1, 0], "at": [1, 2, 3, 4]}
SAMPLES = np.zeros((4, 3), np.uint8)


def test_the_arguments_are_settings_of_the_builder_with_their_defaults() -> None:
    arguments = dict(inspect.signature(driftscale.write_trace).parameters)
    assert list(arguments)[:4] == ["folder", "features", "frame", "label"]
    settings = {name: arguments[name].default for name in list(arguments)[4:]}
    others = {"class_names", "fresh", "targets", "vocabulary"}
    assert {name for name in settings if name not in TableSettings.model_fields} == others
    for name in settings.keys() - {*others, "test_share", "most_cells"}:
        assert settings[name] == TableSettings.model_fields[name].default, name


def test_another_text_of_a_split_is_refused_with_the_argument_that_says_what_it_is(tmp_path: Path) -> None:
    given: dict[str, Any] = {"label": "kind", "client": "who", "split": "use"}
    columns = {**COLUMNS, "use": ["train", "train", "val", "val"]}
    with pytest.raises(EmulatorError, match="'val': must be train or test; splits='val=test' says what"):
        driftscale.write_trace(tmp_path / "out", SAMPLES, columns, **given)
    folder = driftscale.write_trace(tmp_path / "out", SAMPLES, columns, **given, splits="val=test")
    assert "2 training and 2 test samples" in repr(folder)


def test_columns_by_name_make_a_frame_and_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    folder = driftscale.write_trace(
        tmp_path / "out", SAMPLES, COLUMNS, label="kind", client="who", order="at", seed=np.int64(3)
    )
    assert folder.arrivals.sort_values("sample").client.tolist() == COLUMNS["who"]
    assert folder.settings == {"source": "file", "folder": str(tmp_path / "out"), "step_width": 1}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"client": None},
            "write_trace: needs either client, a column, or partition, for data without clients",
        ),
        ({"test_share": 2}, "write_trace: test_share = 2: input should be less than or equal to 1"),
        ({"label": 3}, "write_trace: label = 3: must be a text"),
        ({"client": None, "partition": "idd"}, "write_trace: partition = 'idd': unknown partition 'idd'"),
        (
            {"time": "at"},
            "give unix=s if it is one, time_format= for dates such as 20240131, or step= or order=",
        ),
        ({"most_cells": 9}, "raise most_cells= if"),
        ({"frame": [1, 2]}, "frame: is a list; must be a pandas frame, or columns by name"),
        ({"frame": {"who": [1], "kind": [1, 2]}}, "frame: All arrays must be of the same length"),
        ({"frame": {"who": [1], "kind": [1]}}, "features: 4 samples, but the frame has 1 rows; row i of the"),
        ({"frame": {"who": [], "kind": []}, "features": SAMPLES[:0]}, "frame: has no rows"),
        ({"folder": 3}, "folder: 3 is not a path"),
    ],
)
def test_bad_input_is_one_line_in_words_of_python(
    tmp_path: Path, arguments: dict[str, Any], problem: str
) -> None:
    given = {
        "folder": tmp_path / "out",
        "features": SAMPLES,
        "frame": COLUMNS,
        "label": "kind",
        "client": "who",
    }
    with pytest.raises(EmulatorError) as error:
        driftscale.write_trace(**{**given, **arguments})
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
    assert "--" not in str(error.value)
    assert error.value.__suppress_context__
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_or_is_being_built_is_named_as_the_argument(tmp_path: Path) -> None:
    given = {"features": SAMPLES, "frame": COLUMNS, "label": "kind", "client": "who"}
    driftscale.write_trace(tmp_path / "out", **given)  # type: ignore[arg-type]
    with pytest.raises(
        EmulatorError, match=r"^folder=.*/out: exists already; delete it, or take another name"
    ):
        driftscale.write_trace(tmp_path / "out", **given)  # type: ignore[arg-type]


def test_nothing_is_left_of_a_folder_that_cannot_be_opened_and_the_same_call_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"features": SAMPLES, "frame": COLUMNS, "label": "kind", "client": "who"}

    def unreadable(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path / "trace.toml"))

    with monkeypatch.context() as once:
        once.setattr("traces.files.open_folder", unreadable)
        with pytest.raises(OSError, match=r"Input/output error: .*trace\.toml"):
            driftscale.write_trace(tmp_path / "out", **given)
    assert list(tmp_path.iterdir()) == []
    driftscale.write_trace(tmp_path / "out", **given)


def test_tokens_and_targets_are_written_as_they_are_and_output_i_is_class_i(tmp_path: Path) -> None:
    columns = {**COLUMNS, "price": [1.5, 2.5, 3.5, 4.5]}
    given: dict[str, Any] = {"client": "who", "test_share": 0, "tokens": 0, "vocabulary": 2}
    folder = driftscale.write_trace(
        tmp_path / "out", SAMPLES, columns, label="kind", num_classes=4, targets="price", **given
    )
    assert folder.facts["tokens"] == {"vocabulary": 2, "padding": 0}
    assert not {"mean", "deviation", "scale"} & set(folder.facts)
    assert folder.classes == ("0", "1", "2", "3")
    assert np.load(folder.path / "targets.npy").tolist() == [[1.5], [2.5], [3.5], [4.5]]
    assert "features are ids of tokens, and stay as they are" in folder.notes
    whole = driftscale.write_trace(tmp_path / "b", SAMPLES, columns, targets=["price", "at"], **given)
    assert (whole.classes, np.load(whole.path / "targets.npy").shape) == (("all",), (4, 2))
    numbers = np.arange(4)
    array = driftscale.write_trace(
        tmp_path / "c", SAMPLES, columns, targets=numbers, **{**given, "tokens": True}
    )
    assert array.facts["tokens"] == {"vocabulary": 2}


def test_what_is_standardised_or_renumbered_is_said(tmp_path: Path) -> None:
    columns = {**COLUMNS, "kind": [3, 7, 7, 3]}
    folder = driftscale.write_trace(tmp_path / "out", SAMPLES, columns, label="kind", client="who")
    said = repr(folder)
    assert "labels are renumbered by what occurs: 3 is class 0 of 2; num_classes= keeps all numbers" in said
    assert "features are standardised over the training rows; ids of tokens are not, with tokens=" in said


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tokens": True}, "tokens=True, vocabulary=None: samples of tokens need both, others neither"),
        ({"vocabulary": 3}, "tokens=None, vocabulary=3: samples of tokens need both, others neither"),
        ({"tokens": 3, "vocabulary": 3}, "padding = 3: must be below vocabulary = 3"),
        ({"label": None}, "label is missing, the column of the class; only with targets or tokens"),
        ({"num_classes": 2, "class_names": ["a", "b"]}, "class_names: only with label, whose classes they"),
        ({"targets": "price"}, "unknown column 'price'"),
    ],
)
def test_tokens_targets_and_classes_that_do_not_fit_are_one_line(
    tmp_path: Path, given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(EmulatorError) as error:
        driftscale.write_trace(
            tmp_path / "out", SAMPLES, COLUMNS, **{"client": "who", "label": "kind", **given}
        )
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
