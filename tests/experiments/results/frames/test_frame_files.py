"""Files of frames: they are read back as they were, and are the same bytes each time."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import ForeignFileError
from experiments.results.frames.frame_files import as_csv, as_parquet, write_frames


def a_frame() -> pd.DataFrame:
    arms = pd.Categorical(["b", "a", "b"], categories=["b", "a"], ordered=True)
    return pd.DataFrame(
        {
            "arm": arms,
            "visit": pd.array([0, 1, 2], dtype="int64"),
            "device": pd.array([7, None, 9], dtype="Int64"),
            "end_s": [0.1, 1 / 3, None],
            "models": [[3, 5], [], [4]],
            "silhouettes": [{2: 0.5, 3: None}, None, {}],
            "crashed": [True, False, False],
        }
    )


def test_csv_is_read_back_exactly() -> None:
    content = as_csv(a_frame())
    assert content.decode().split("\n") == [
        "arm,visit,device,end_s,models,silhouettes,crashed",
        "b,0,7,0.1,3 5,2=0.5 3=,True",
        "a,1,,0.3333333333333333,,,False",
        "b,2,9,,4,,False",
        "",
    ]
    read = pd.read_csv(io.BytesIO(content))
    assert read["end_s"].tolist()[:2] == [0.1, 1 / 3]


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_a_run_directory_of_one_arm_is_written(write: Callable[[pd.DataFrame], bytes]) -> None:
    """The categories of its arm are mapped one to one, which gives a categorical, not booleans."""
    assert write(a_frame().iloc[[0, 2]].assign(arm=pd.Categorical(["b", "b"])))


def test_parquet_keeps_types_and_the_order_of_arms() -> None:
    table = pq.read_table(pa.BufferReader(as_parquet(a_frame())))
    kind = table.schema.field("arm").type
    assert pa.types.is_dictionary(kind)
    assert kind.ordered
    assert table["arm"].chunk(0).dictionary.to_pylist() == ["b", "a"]
    assert table["models"].to_pylist() == [[3, 5], [], [4]]
    assert table.schema.field("models").type == pa.list_(pa.int64())
    assert table["silhouettes"].to_pylist() == [[(2, 0.5), (3, None)], None, []]
    assert table.column_names == list(a_frame().columns)
    assert table["device"].to_pylist() == [7, None, 9]
    assert table.schema.field("visit").type == pa.int64()
    pd.testing.assert_series_equal(table.to_pandas()["arm"], a_frame()["arm"])


def test_a_column_of_numbers_and_texts_has_the_same_texts_in_both_formats() -> None:
    targets = pd.DataFrame({"target": pd.Series([0.5, "reference", None], dtype=object)})
    table = pq.read_table(pa.BufferReader(as_parquet(targets)))
    assert table["target"].to_pylist() == ["0.5", "reference", None]
    assert as_csv(targets) == b'target\n0.5\nreference\n""\n'


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_same_frame_gives_the_same_bytes(tmp_path: Path, kind: str) -> None:
    frames = {"rounds": a_frame(), "visits": a_frame().head(0)}
    paths = write_frames(frames, kind, tmp_path, "export")
    assert [path.name for path in paths] == [f"rounds.{kind}", f"visits.{kind}"]
    first = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write_frames(frames, kind, tmp_path, "export")] == first
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == sorted(p.name for p in paths)


def test_a_link_is_refused_before_any_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "visits.csv").symlink_to(tmp_path / "other")
    with pytest.raises(ForeignFileError, match="is a link"):
        write_frames({"rounds": a_frame(), "visits": a_frame()}, "csv", tmp_path, "export")
    assert not (tmp_path / "export" / "rounds.csv").exists()
