"""Names of classes in the metadata of a schema, as Hugging Face's `datasets` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.traces.building.table.tables import build, built, refused, rows
from traces.building.table import class_names
from traces.files import open_folder

NAMES = ["walks", "runs", "bikes", "sits"]


def written(
    folder: Path, labels: Any, content: bytes | Mapping[str, Any] | None, name: str = "t.parquet"
) -> Path:
    """A table with these labels, whose schema has that content under the key `huggingface`."""
    if isinstance(content, Mapping):
        content = json.dumps({"info": {"features": {"kind": content, "a": {"_type": "Value"}}}}).encode()
    table = pa.table({"who": ["x"] * len(labels), "kind": labels, "a": range(len(labels))})
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(
        table.replace_schema_metadata(None if content is None else {b"huggingface": content}), path
    )
    return path


def a_class_label(names: Any) -> dict[str, Any]:
    return {"names": names, "_type": "ClassLabel"}


def test_whole_numbers_are_classes_of_these_names_in_their_order(tmp_path: Path) -> None:
    folder = built(written(tmp_path, [3, 0, 1, 3], a_class_label(NAMES)), test_share=0)
    assert folder.facts.version == 2
    assert folder.facts.classes == ("walks", "runs", "sits")  # those that occur
    assert sorted(rows(folder, "sample", "label")) == [(0, 2), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize(
    ("labels", "content"),
    [
        ([3, 0], None),
        ([3, 0], {"_type": "Value", "dtype": "int64"}),
        ([3, 0], {"_type": "ClassLabel", "num_classes": 4}),
        (["3", "0"], a_class_label(NAMES)),  # texts are names already
        ([3, 0], b"{}"),
    ],
)
def test_a_table_without_names_of_classes_is_built_as_ever(tmp_path: Path, labels: Any, content: Any) -> None:
    folder = built(written(tmp_path, labels, content))
    assert (folder.facts.version, folder.facts.classes) == (1, ("0", "3"))


@pytest.mark.parametrize(
    ("labels", "content", "problem"),
    [
        (
            [0, 4],
            a_class_label(NAMES),
            "t.parquet, row 2: kind = 4: must be from 0 to 3, as there are 4 class names",
        ),
        (
            [0, -1],
            a_class_label(NAMES),
            "t.parquet, row 2: kind = -1: must be a class, and -1 is none; leave out such rows with --skip",
        ),
        ([0], b"{", "t.parquet: its metadata of Hugging Face is damaged (Expecting property name"),
        ([0], b"\xff", "t.parquet: its metadata of Hugging Face is damaged ('utf-8' codec can't decode"),
        (
            [0],
            b"[1]",
            "t.parquet: its metadata of Hugging Face is damaged (where 'info' is looked up there is",
        ),
        (
            [0],
            b"[" * 10**5,
            "t.parquet: its metadata of Hugging Face is damaged (nested deeper than 32); write",
        ),
        (
            [0],
            a_class_label("up"),
            "t.parquet: its metadata of Hugging Face is damaged (names of classes are no",
        ),
        (
            [0],
            a_class_label([]),
            "t.parquet: its metadata of Hugging Face is damaged (names of classes are no",
        ),
        (
            [0],
            a_class_label([1]),
            "t.parquet: its metadata of Hugging Face is damaged (names of classes are no",
        ),
        ([0], a_class_label(["a", "a"]), "t.parquet: its metadata of Hugging Face is damaged (it names two "),
        (
            [0],
            a_class_label([str(number) for number in range(2**15 + 1)]),
            "t.parquet: its metadata of Hugging",
        ),
        ([0], a_class_label([" ", "b"]), "class ' ': is no name: it is blank, or has control characters"),
        ([0], a_class_label(["\ud800"]), "t.parquet: its metadata of Hugging Face is damaged ('utf-8' codec"),
    ],
)
def test_labels_without_a_name_and_damaged_metadata_are_refused(
    tmp_path: Path, labels: Any, content: Any, problem: str
) -> None:
    assert refused(written(tmp_path, labels, content)).startswith(problem)


def test_rows_without_a_class_can_be_left_out(tmp_path: Path) -> None:
    build(written(tmp_path, [-1, 2, 9, 0], a_class_label(NAMES)), tmp_path / "out", skip_bad=2, test_share=0)
    folder = open_folder(tmp_path / "out")
    assert folder.facts.classes == ("walks", "bikes")
    # The bad rows found with the labels have no features: the others are the rows 0 and 1 of these.
    assert sorted(rows(folder, "sample", "label")) == [(0, 1), (1, 0)]


def test_metadata_is_read_up_to_a_bound_and_is_that_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "t", [0], a_class_label(NAMES), "a.parquet")
    written(tmp_path / "t", [0], a_class_label(NAMES[::-1]), "b.parquet")
    assert refused(tmp_path / "t") == (
        "t/b.parquet: label: column 'kind' has other class names than in a.parquet: sits, bikes, runs, "
        "walks, there walks, runs, bikes, sits"
    )
    monkeypatch.setattr(class_names, "MOST_BYTES", 100)
    assert refused(tmp_path / "t").startswith(
        "t/a.parquet: has 127 bytes of metadata of Hugging Face; at most"
    )
