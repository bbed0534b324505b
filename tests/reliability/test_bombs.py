"""Small files that expand to huge data are refused before they are expanded."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import DataFileError
from emulator.storage import tables
from emulator.storage.packed import MOST_ENTRIES, unpacked
from emulator.storage.runlog import read_log
from emulator.storage.tables import read_table
from traces.idx import read_idx

MIB = 2**20


def allocated(read: Callable[[], object], message: str) -> int:
    """Peak bytes allocated while `read` raises DataFileError with `message`."""
    pool = pa.default_memory_pool()
    held = pool.bytes_allocated()
    tracemalloc.start()
    with pytest.raises(DataFileError, match=message):
        read()
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Arrow has an allocator of its own, which tracemalloc does not see.
    return max(traced, pool.bytes_allocated() - held)


def a_bomb(path: Path, size: int, piece: bytes = bytes(MIB), head: bytes = b"") -> Path:
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(head)
        for _ in range(size // len(piece)):
            file.write(piece)
    return path


def test_gzipped_text_beyond_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 8 * MIB)
    path = a_bomb(tmp_path / "t.csv.gz", 64 * MIB)
    assert path.stat().st_size < MIB
    assert allocated(lambda: read_table(path), "more than 8,388,608 bytes of text") < 8 * MIB


def test_gzipped_cells_beyond_the_bound_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 10**6)
    path = a_bomb(tmp_path / "t.csv.gz", 32 * MIB, b",,,\n" * (MIB // 4), b"a,b,c,d\n")
    assert allocated(lambda: read_table(path), "x 4 columns; a table has at most 1,000,000 cells") < 16 * MIB


def test_a_line_of_columns_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a," * 10 * MIB + b"\n")
    assert allocated(lambda: read_table(path), r"has \d+ columns; a table has at most 16384") < 16 * MIB
    path.write_bytes(b"a" * 10 * MIB)
    assert allocated(lambda: read_table(path), "its first line has more than 1,048,576 bytes") < 64 * MIB


def test_a_text_that_is_meant_many_times_is_refused_before_it_is_written_out(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    text = pa.array(["x" * 2**18])
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, dtype=np.int32)), text)
    pq.write_table(pa.table({"a": column}), path, compression="GZIP", store_schema=False)
    assert path.stat().st_size < 100_000
    assert allocated(lambda: read_table(path), "come to more than 2,147,483,648 bytes") < 64 * MIB


def test_rows_that_are_run_lengths_are_refused_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.zeros(2_000_000), "b": np.zeros(2_000_000)}), path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(tables, "MOST_CELLS", 3_999_999)
    assert allocated(lambda: read_table(path), "2000000 lines or more x 2 columns") < MIB


def test_columns_of_a_parquet_file_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: np.arange(100_000.0) for name in "abcd"}), path)
    monkeypatch.setattr(tables, "MOST_BYTES", 2 * MIB + MIB // 2)
    path_size = path.stat().st_size
    monkeypatch.setattr(tables, "MOST_BYTES", max(path_size, 2 * MIB + MIB // 2))
    assert allocated(lambda: read_table(path), "its columns come to more than") < 16 * MIB


def test_a_file_that_is_larger_than_a_table_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("t.csv", "t.parquet"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(2**40)
        path = tmp_path / name
        assert allocated(lambda path=path: read_table(path), "a table has at most") < MIB


def test_an_array_of_a_log_is_unpacked_as_far_as_there_are_clients(tmp_path: Path) -> None:
    packed = {"dtype": "<i8", "zlib": base64.b64encode(zlib.compress(bytes(80 * MIB), 9)).decode()}
    lines = [{"kind": "run", "num_clients": 1000, "scored_clients": packed}]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert allocated(lambda: read_log(path), "it has more than 1000 entries") < 4 * MIB
    with pytest.raises(ValueError, match="it has more than 7 entries"):
        unpacked([0] * 8, np.int64, None, 7)
    assert MOST_ENTRIES * 8 <= 2**29


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert allocated(lambda: read_log(path), "longer than 33,554,432 bytes") < 128 * MIB
    with path.open("wb") as file:
        file.truncate(2**40)
    assert allocated(lambda: read_log(path), "a log has fewer") < MIB


def test_a_gzipped_image_set_is_read_as_far_as_its_header_says(tmp_path: Path) -> None:
    head = bytes.fromhex("00000803") + (3).to_bytes(4) + (4).to_bytes(4) * 2
    path = a_bomb(tmp_path / "x.gz", 64 * MIB, head=head)
    assert allocated(lambda: read_idx(path, 3), "the file has more") < 4 * MIB
