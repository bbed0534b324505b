"""Columns of vectors, and images that numbers make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.traces.building.table.tables import a_large_table, build, built, refused, rows, write_parquet
from traces.building.table.encoders import vectors
from traces.files import open_folder

VALUES = np.arange(24, dtype=np.float64).reshape(4, 2, 3) ** 2
KEYS: dict[str, Any] = {"who": ["x", "y", "x", "y"], "kind": [0, 1, 1, 0]}

FLAT = VALUES.reshape(4, 6)
TYPES = {
    "list": pa.array(FLAT.tolist(), pa.list_(pa.float64())),
    "large list": pa.array(FLAT.tolist(), pa.large_list(pa.float16())),
    "fixed list": pa.array(FLAT.tolist(), pa.list_(pa.uint16(), 6)),
    "nested": pa.array(VALUES.tolist(), pa.list_(pa.list_(pa.int32()))),
    "nested, fixed": pa.array(VALUES.tolist(), pa.list_(pa.list_(pa.float32(), 3), 2)),
    "nested, fixed outside": pa.array(VALUES.tolist(), pa.list_(pa.large_list(pa.float32()), 2)),
    "nested, in part": pa.array(VALUES.tolist() * 2, pa.list_(pa.list_(pa.float32()))).slice(4),
}


@pytest.mark.parametrize("kind", list(TYPES))
def test_lists_of_every_type_are_vectors_or_images(tmp_path: Path, kind: str) -> None:
    folder = built(write_parquet(tmp_path, {**KEYS, "v": TYPES[kind]}, row_group_size=3), test_share=0)
    wanted = VALUES if kind.startswith("nested") else FLAT
    assert folder.features.values.dtype == np.float32
    assert folder.features.values.tolist() == wanted.tolist()
    axis = (0, 1, 2) if kind.startswith("nested") else 0  # an image of two dimensions has one channel
    assert folder.facts.mean == pytest.approx(np.atleast_1d(wanted.mean(axis=axis)), rel=1e-9)
    assert folder.facts.deviation == pytest.approx(np.atleast_1d(wanted.std(axis=axis)), rel=1e-9)


def test_vectors_and_numbers_stand_side_by_side_in_the_order_of_the_columns(tmp_path: Path) -> None:
    truth = pa.array([[True, False]] * 4, pa.list_(pa.bool_()))
    columns = {**KEYS, "a": [1.5, 2.5, 3.5, 4.5], "v": TYPES["nested"], "b": truth, "c": [7, 8, 9, 10]}
    folder = built(write_parquet(tmp_path, columns), features=["c", "v", "b", "a"], test_share=0)
    assert folder.features.values[1].tolist() == [8, *VALUES[1].ravel().tolist(), 1, 0, 2.5]
    assert folder.facts.origin.endswith("features c, v (6 values), b (2 values), a")


def test_columns_with_one_beginning_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    numbers = [10, 9, 0, 2, 11, 1]
    columns = {**KEYS, **{f"p_{number}": np.arange(4) + 100 * number for number in numbers}, "q": [0] * 4}
    table = write_parquet(tmp_path, columns)
    folder = built(table, features=["p_*"], shape=[2, 3], test_share=0)
    assert folder.features.values[1].tolist() == [[1, 101, 201], [901, 1001, 1101]]
    wanted = np.add.outer(np.arange(4), 100 * np.array(numbers))
    assert folder.facts.mean == pytest.approx([wanted.mean()])
    assert folder.facts.deviation == pytest.approx([wanted.std()])
    message = refused(table, features=["p_*", "p_9"])
    assert message == "table.parquet: features: column 'p_9' is named twice, by p_*, p_9"
    assert refused(table, features=["r_*"]).startswith("table.parquet: features: no column begins with 'r_'")


def test_channels_come_first_and_each_is_standardised(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).normal(5, 2, (40, 3, 4, 5)).astype(np.float32)
    pixels[0, 1, 2, 3] = np.nan
    columns = {"who": [0] * 40, "kind": [0, 1] * 20, "v": pa.array(list(pixels.reshape(40, 60)))}
    table = write_parquet(tmp_path, columns)
    folder = built(table, shape=[3, 4, 5], missing="mean", test_share=0)
    assert folder.facts.shape == (3, 4, 5)
    assert folder.facts.mean == pytest.approx(np.nanmean(pixels.astype(float), axis=(0, 2, 3)), rel=1e-12)
    assert folder.facts.deviation == pytest.approx(np.nanstd(pixels.astype(float), axis=(0, 2, 3)), rel=1e-12)
    filled = np.nanmean(pixels.astype(float), axis=0)[1, 2, 3]  # of its place in the image
    assert folder.features.values[0, 1, 2, 3] == pytest.approx(filled)
    assert refused(table, shape=[3, 4, 5]) == (
        "table.parquet, row 1: v[33] is missing; give --missing mean or --missing zero to fill it"
    )


LISTS: dict[str, Any] = {
    "short": ([[1.0, 2.0], [3.0]], "v = a list of 1: must have 2 values, as the first row has"),
    "empty": ([[1.0, 2.0], []], "v = a list of 0: must have 2 values, as the first row has"),
    "missing": (
        [[1.0, 2.0], None],
        "v is missing; a vector is not filled: leave out such rows with --skip-bad",
    ),
    "null inside": ([[1.0, 2.0], [3.0, None]], "v[1] is missing; give --missing mean or --missing zero to"),
    "ragged": (
        [[[1.0], [2.0]], [[3.0], [4.0, 5.0]]],
        "v = a list with a list of 2: must have 2 x 1 values, as the first row has",
    ),
    "inner missing": (
        [[[1.0], [2.0]], [[3.0], None]],
        "v = a list with a list of nothing: must have 2 x 1 values, as the first row has",
    ),
    "outer short": (
        [[[1.0], [2.0]], [[3.0]]],
        "v = a list of 1: must have 2 x 1 values, as the first row has",
    ),
}


@pytest.mark.parametrize("what", list(LISTS))
def test_a_vector_that_does_not_fit_is_named_with_its_row_or_left_out(tmp_path: Path, what: str) -> None:
    values, problem = LISTS[what]
    table = write_parquet(tmp_path, {"who": ["x"] * 3, "kind": [0, 1, 2], "v": [*values, values[0]]})
    assert refused(table).startswith(f"table.parquet, row 2: {problem}")
    result = build(table, tmp_path / "out", skip_bad=1, test_share=0)
    assert result.left_out == 1
    folder = open_folder(tmp_path / "out")
    assert rows(folder, "label", "sample") == [(0, 0), (2, 2)]
    assert folder.features.values[[0, 2]].tolist() == [values[0], values[0]]
    whole = values[0] if np.ndim(values[0]) == 1 else [np.mean(values[0])]
    assert folder.facts.mean == pytest.approx(whole)


@pytest.mark.parametrize(
    ("values", "settings", "problem"),
    [
        (
            [[1.0, 2.0, 3.0]],
            {"shape": [2, 2]},
            "table.parquet: shape 2,2: comes to 4 values, and a row has 3 features; name their",
        ),
        ([["a"]], {}, "table.parquet: column 'v' is list<element: string>; a feature is a number, or a list"),
        (
            pa.array([[]], pa.list_(pa.int8())),
            {},
            "table.parquet: column 'v': none of its first 1 rows has a vector, whose length would be",
        ),
        (
            [[0.0] * 16385],
            {},
            "table.parquet, row 1: column 'v' has vectors of 16385 values; from 1 to 16384 are supported",
        ),
        (
            pa.array([None], pa.list_(pa.int8(), 2**20)),
            {},
            "table.parquet: column 'v' has vectors of 1048576 values; from 1 to 16384 are supported",
        ),
        (
            [[[[1.0]] * 9] * 9],
            {"features": ["v"]},
            "table.parquet: column 'v': 9 x 9 x 1 has the channels last",
        ),
        ([[[[[1.0]]]]], {}, "table.parquet: column 'v': an image has 2 or 3 dimensions, not 4"),
        ([[1.0]], {"one_hot": ["v"]}, "table.parquet: one_hot: column 'v' is list<element: double>; it"),
        (
            [[1.0]],
            {"grey": True},
            "table.parquet: grey: is for a column of encoded images, and there is none",
        ),
    ],
)
def test_columns_that_are_no_vectors_are_refused(
    tmp_path: Path, values: Any, settings: dict[str, Any], problem: str
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "v": values})
    assert refused(table, **settings).startswith(problem)


def test_a_build_of_vectors_is_resumed_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = a_large_table(600, 6)
    lists = pa.array(list(np.stack([columns.pop(f"x{number}") for number in range(6)], axis=1)))
    root = write_parquet(tmp_path, {**columns, "v": lists}, row_group_size=170)
    monkeypatch.setattr(vectors, "VALUES", 300)
    monkeypatch.setattr("traces.building.writing.RECORD_EVERY_S", 0.0)
    build(root, tmp_path / "whole", step="day", shape=[2, 3])
    taken, calls = vectors.vectors_in, [0]

    def fail_later(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt
        return taken(*arguments)

    monkeypatch.setattr("traces.building.table.encoders.features.vectors_in", fail_later)
    with pytest.raises(KeyboardInterrupt):
        build(root, tmp_path / "out", step="day", shape=[2, 3])
    build(root, tmp_path / "out", step="day", shape=[2, 3])
    assert calls[0] < 2 * 12  # what was written is not encoded again
    for name in ("trace.toml", "features.npy", "arrivals.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
