"""Arrow files and streams, and Feather: read as Parquet is, and bounded before anything is decompressed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from emulator.storage.reading import arrow_file
from emulator.storage.reading.shards import find_shards
from tests.traces.building.table.tables import a_large_table, build, built, refused, write_parquet


def write_arrow(
    path: Path, table: pa.Table, *, is_stream: bool = False, rows: int = 1000, **options: Any
) -> Path:
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, rows)
    return path


def large_table() -> pa.Table:
    table = pa.table(dict(a_large_table(3000, 3)))
    names = pa.array([f"c{number}" for number in table.column("who").to_pylist()]).dictionary_encode()
    small = pa.DictionaryArray.from_arrays(names.indices.cast(pa.uint8()), names.dictionary)
    return table.set_column(0, "who", small)  # numbered as pandas numbers categories


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.arrow", {}),
        ("t.arrow", {"is_stream": True, "compression": "lz4"}),
        ("t.feather", {"compression": "zstd"}),
    ],
)
def test_arrow_gives_the_trace_of_the_parquet(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    table = large_table()
    columns = {column: table.column(column) for column in table.column_names}
    parquet = built(write_parquet(tmp_path, columns), step="day")
    arrow = built(write_arrow(tmp_path / name, table, **options), step="day")
    assert arrow.digests == parquet.digests


def test_feather_as_pyarrow_writes_it_is_read_and_version_1_refused(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(large_table(), str(tmp_path / "t.feather"))
    assert build(tmp_path / "t.feather", tmp_path / "out", step="day").shape == (3,)
    (tmp_path / "u.feather").write_bytes(b"FEA1 and so on FEA1")
    assert refused(tmp_path / "u.feather") == (
        "u.feather: is Feather version 1; write it again as version 2 (pyarrow.feather.write_feather, "
        "DataFrame.to_feather), or as Parquet"
    )


def test_dictionaries_that_grow_and_change_are_read(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    batches = [
        pa.record_batch(
            {
                "who": pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values)),
                "kind": codes,
                "x": [0.0] * len(codes),
            }
        )
        for codes, values in (([0, 1], names[:2]), ([2, 0], names), ([0, 1], ["c", "d"]))
    ]
    path = tmp_path / "t.arrow"
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(str(path), batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    folder = built(path, test_share=0, step=None)
    assert folder.rows.clients == ("a", "b", "c", "d")
    shards = find_shards(path)
    types = {"who": pa.dictionary(pa.int32(), pa.string())}
    read = [name for batch in shards.batches(types, 1) for name in batch.columns["who"].to_pylist()]
    assert read == ["a", "b", "c", "a", "c", "d"]


def test_metadata_of_the_schema_are_kept(tmp_path: Path) -> None:
    table = pa.table({"who": ["x"], "kind": [0], "a": [1.0]}).replace_schema_metadata({"huggingface": "{}"})
    assert find_shards(write_arrow(tmp_path / "t.arrow", table)).metadata == {b"huggingface": b"{}"}


SMALL = pa.table({"who": ["x", "y"], "kind": [0, 1], "a": [1.0, 2.0]})


@pytest.mark.parametrize(
    ("is_stream", "change", "message"),
    [
        (False, lambda content: content[:-20], "it is truncated: the end of an Arrow file is missing"),
        (True, lambda content: content[:-40], "it is truncated"),
        (False, lambda content: content[:-10] + b"\xff\xff\xff\x7fARROW1", "its footer is damaged"),
        (True, lambda content: b"who,kind,a\n", "it is no Arrow, or of a version before 0.15"),
        (True, lambda content: b"\xff" * 8 + content, "it is truncated, or its metadata are damaged"),
    ],
)
def test_a_damaged_file_is_refused(
    tmp_path: Path, is_stream: bool, change: Callable[[bytes], bytes], message: str
) -> None:
    path = write_arrow(tmp_path / "t.arrow", SMALL, is_stream=is_stream)
    path.write_bytes(change(path.read_bytes()))
    assert refused(path) == f"t.arrow: cannot be read as Arrow ({message})"


def test_a_file_without_rows_or_with_a_dialect_is_refused(tmp_path: Path) -> None:
    path = write_arrow(tmp_path / "t.arrow", SMALL.slice(0, 0))
    assert refused(path) == "t.arrow: has no rows"
    assert refused(path, decimal=",") == "t.arrow: --decimal ',': only of a CSV; it is Arrow, which has none"


TOO_LARGE = "has a batch, or dictionaries, of more than {:,} bytes when decompressed; write it in smaller"


def test_what_batches_and_dictionaries_unpack_to_is_bounded_before_they_are_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = np.zeros(10_000)
    table = pa.table({"who": np.zeros(10_000, np.int64), "kind": np.zeros(10_000, np.int64), "a": zeros})
    path = write_arrow(tmp_path / "t.arrow", table, rows=10_000, is_stream=True, compression="lz4")
    assert path.stat().st_size < 5000
    monkeypatch.setattr(arrow_file, "MOST_BATCH_BYTES", 240_000)  # 3 columns of 80,000 bytes
    assert build(path, tmp_path / "out").train > 0
    monkeypatch.setattr(arrow_file, "MOST_BATCH_BYTES", 239_999)
    assert refused(path).startswith(f"t.arrow: {TOO_LARGE.format(239_999)}")
    monkeypatch.undo()
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<q", 80_000), struct.pack("<q", 2**62)))
    assert path.read_bytes() != content
    held = pa.total_allocated_bytes()
    assert refused(path).startswith(f"t.arrow: {TOO_LARGE.format(2**29)}")
    assert pa.total_allocated_bytes() - held < 2**20

    names = pa.array([f"a name of {number:020d}" for number in range(100)])  # of 30 bytes, and 4 each
    codes = pa.array(np.zeros(5, np.int32))
    table = pa.table({"who": pa.DictionaryArray.from_arrays(codes, names), "kind": [0] * 5, "a": [0.0] * 5})
    path = write_arrow(tmp_path / "u.arrow", table)
    monkeypatch.setattr(arrow_file, "MOST_BATCH_BYTES", 3000)
    assert refused(path).startswith(f"u.arrow: {TOO_LARGE.format(3000)}")


def test_dictionaries_other_than_of_texts_and_numbers_are_not_decoded(tmp_path: Path) -> None:
    images = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([b"a long image"]))
    table = SMALL.drop_columns(["a"]).append_column("a", images)
    message = refused(write_arrow(tmp_path / "t.arrow", table))
    assert message.startswith("t.arrow: column 'a' is dictionary<values=binary, ")
    assert message.endswith("; a feature is a number")
