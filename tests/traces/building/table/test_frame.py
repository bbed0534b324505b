"""Trace folders of an array and a frame in memory: the same as of the table in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from emulator.errors import EmulatorError, InputError
from tests.traces.building.table.tables import build, rows
from traces.building import Built, workspace
from traces.building.table.encoders.samples import Samples
from traces.building.table.frame import write_frame
from traces.building.table.settings import TableSettings
from traces.files import ARRIVALS, FEATURES, TraceFolder, open_folder

FEW: Mapping[str, Any] = {"who": ["ann", "bob", "ann", "bob"], "kind": [1, 0, 0, 1]}
SAMPLES = np.arange(8.0).reshape(4, 2)


def write(out: Path, features: Any, frame: Any, *, class_names: Any = None, **settings: Any) -> Built:
    chosen = TableSettings.model_validate({"label": "kind", "client": "who", **settings})
    return write_frame(out, features, pd.DataFrame(frame), chosen, class_names=class_names)


def written(tmp_path: Path, features: Any, frame: Any, **settings: Any) -> TraceFolder:
    write(tmp_path / "out", features, frame, **settings)
    return open_folder(tmp_path / "out")


def a_frame(num: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.to_timedelta(rng.integers(0, 50, num), unit="D")
    return pd.DataFrame(
        {
            "who": rng.choice(["ann", "bob", "cleo"], num),
            "kind": rng.choice(["up", "down", "left"], num),
            "seen": (pd.Timestamp("2024-01-01", tz="UTC") + days).astype("datetime64[us, UTC]"),
            "day": rng.integers(0, 9, num),
            "often": rng.integers(0, 4, num),
        }
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"client": "who", "time": "seen", "since": "2024-01-08", "retain": 20},
        {"client": "who", "step": "day", "count": "often", "limit": 200},
        {"client": "who", "order": "day", "min_samples": 60, "classes": 2},
        {"partition": {"kind": "dirichlet", "alpha": 1.0}, "clients": 4, "seed": 3, "in_file_order": True},
    ],
)
def test_the_folder_is_that_of_the_same_table_in_a_file(tmp_path: Path, settings: dict[str, Any]) -> None:
    frame = a_frame()
    features = np.random.default_rng(1).normal(2, 3, (len(frame), 5)).astype(np.float32)
    names = [f"x{number}" for number in range(5)]
    table = tmp_path / "table.parquet"
    pd.concat([frame, pd.DataFrame(features, columns=names)], axis=1).to_parquet(table)
    built = build(
        table, tmp_path / "of-file", **{"client": None, "label": "kind", "features": names, **settings}
    )
    given = write(tmp_path / "of-frame", features, frame, **{"client": None, **settings})
    for name in (ARRIVALS, FEATURES):
        assert (tmp_path / "of-frame" / name).read_bytes() == (tmp_path / "of-file" / name).read_bytes()
    facts = [open_folder(tmp_path / name).facts for name in ("of-file", "of-frame")]
    assert facts[0].model_copy(update={"origin": ""}) == facts[1].model_copy(update={"origin": ""})
    assert built == given


def test_rows_are_those_of_the_array_whatever_the_index_is(tmp_path: Path) -> None:
    frame = pd.DataFrame(FEW, index=[3, 3, 0, 1])
    folder = written(tmp_path, SAMPLES, frame, test_share=0)
    assert folder.features.values.tolist() == SAMPLES.tolist()
    assert rows(folder, "client", "label", "sample") == [
        *(("ann", 1, 0), ("ann", 0, 2), ("bob", 0, 1), ("bob", 1, 3)),
    ]


@pytest.mark.parametrize(
    ("labels", "class_names", "classes", "labels_in_file"),
    [
        (pd.Categorical(["up", "down", "down", "up"], ["up", "down", "left"]), None, ("up", "down"), [0, 1]),
        (pd.Categorical([7, 10, 10, 7], [10, 7]), None, ("7", "10"), [0, 1]),
        (["up", "down", "down", "up"], None, ("down", "up"), [1, 0]),
        (np.array([2, 0, 0, 2]), ["z", "y", "x"], ("z", "y", "x"), [2, 0]),
        (pd.array([2, 0, 0, 2], "Int64"), ("z", "y", "x"), ("z", "y", "x"), [2, 0]),
        (pd.array([True, False, False, True], "boolean"), None, ("false", "true"), [1, 0]),
    ],
)
def test_classes_are_in_the_order_of_categories_numbers_or_names(
    tmp_path: Path, labels: Any, class_names: Any, classes: tuple[str, ...], labels_in_file: list[int]
) -> None:
    folder = written(tmp_path, SAMPLES, {**FEW, "kind": labels}, class_names=class_names, test_share=0)
    assert folder.facts.classes == classes
    assert [label for (label,) in rows(folder, "label")][:2] == labels_in_file


def test_a_build_that_fails_leaves_nothing_and_what_a_killed_one_leaves_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Samples, "encode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write(out, SAMPLES, FEW)
        assert list(tmp_path.iterdir()) == []
        patched.setattr(workspace, "delete_folder", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            write(out, SAMPLES + 1, FEW)
        assert [path.name for path in tmp_path.iterdir()] == ["out.building"]
    write(out, SAMPLES, FEW)
    write(tmp_path / "other", SAMPLES, FEW)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["other", "out"]
    for path in out.iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists already"):
        write(tmp_path / "out", SAMPLES, FEW)
    assert list((tmp_path / "out").iterdir()) == []


def test_bad_rows_may_be_left_out_and_are_counted(tmp_path: Path) -> None:
    features = np.arange(16.0).reshape(8, 2)
    features[5, 1] = np.inf
    who = ["ann", "bob", None, "ann", "bob", "ann", "ann", "bob"]
    built = write(tmp_path / "out", features, {"who": who, "kind": [0, 1] * 4}, skip_bad=2, test_share=0)
    assert (built.left_out, built.train) == (2, 6)
    said = "2 bad rows were left out; 1 of them: who is missing; the first: frame, row 2: who is missing"
    assert said in built.notes[0]
    folder = open_folder(tmp_path / "out")
    assert sorted(sample for (sample,) in rows(folder, "sample")) == [0, 1, 2, 3, 5, 6]
    assert folder.facts.mean == pytest.approx(np.delete(features, [2, 5], axis=0).mean(axis=0))


@pytest.mark.parametrize(
    ("change", "settings", "problem"),
    [
        ({"who": ["ann", None, "ann", "bob"]}, {}, "frame, row 1: who is missing: the client of the row"),
        ({"who": ["ann", 3, "ann", "bob"]}, {}, "frame: column 'who' cannot be read ("),
        ({"who": [0.5, 1, 2, 3]}, {}, "frame: client: column 'who' is double; it must hold texts"),
        ({"kind": [0.5, 1, 2, 3]}, {}, "frame, row 0: label: column 'kind' holds 0.5, a regression target"),
        ({"kind": [[0, 1]] * 4}, {}, "frame: label: column 'kind' is list<item: int64>, a sequence"),
        ({}, {"class_names": ["only"]}, "frame, row 0: kind = 1: there are 1 classes, 0 to 0; give all"),
        (
            {"kind": [0, 0, -1, 0]},
            {"class_names": ["a", "b"]},
            "frame, row 2: kind = -1: there are 2 classes, 0 to 1",
        ),
        ({"kind": list("abab")}, {"class_names": ["a"]}, "frame: class_names: column 'kind' is "),
        ({}, {"class_names": ["a", "a"]}, "class_names: has 'a' twice"),
        ({}, {"class_names": "ab"}, "class_names = 'ab': must be a list of texts"),
        (
            {"at": [1, 2, 3, 4]},
            {"time": "at"},
            "frame, row 0: at = 1: too small for a Unix time; give --unix s",
        ),
        ({"at": [1.0, 2, None, 4]}, {"order": "at"}, "frame, row 2: at is missing"),
        (
            {"use": ["train", "tset", "train", "train"]},
            {"split": "use"},
            "frame, row 1: use = 'tset': must be",
        ),
        ({"use": ["train", "test"] * 2}, {"split": "use"}, "frame: client bob has rows for tests only"),
        ({}, {"client": "whom"}, "frame: client: unknown column 'whom'; choices: kind, who"),
        ({}, {"most_cells": 30}, "frame: has 4 rows or more x 2 columns (a row counts as 10 cells or more)"),
        ({" ": [1, 2, 3, 4]}, {}, "frame: column 3 has no name"),
    ],
)
def test_what_is_wrong_with_a_frame_is_one_line_with_its_row_from_0_on(
    tmp_path: Path, change: dict[str, Any], settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(EmulatorError) as error:
        write(tmp_path / "out", SAMPLES, {**FEW, **change}, **settings)
    assert str(error.value).startswith(problem)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []
