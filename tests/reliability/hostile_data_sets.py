"""Data sets of a few kilobytes or megabytes that come to billions of cells, texts, pixels or columns.

Each is written below a folder, and returns the arguments of `driftscale traces build` that read it.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MIB = 2**20
TABLE = ("--client", "c", "--label", "k")
HEAD = b"c,k,x\n"


def _table(path: Path, *options: str) -> list[str]:
    return ["table", "--root", str(path), *TABLE, *options]


def _gzip(path: Path, head: bytes, piece: bytes, times: int) -> Path:
    """A gzip file of several members: its pieces are compressed once."""
    path.write_bytes(gzip.compress(head) + gzip.compress(piece) * times)
    return path


def csv_rows(folder: Path) -> list[str]:
    return _table(_gzip(folder / "t.csv.gz", HEAD, b"ann,up,1\n" * 10**6, 40))


def csv_text(folder: Path) -> list[str]:
    return _table(_gzip(folder / "t.csv.gz", HEAD, b"a" * 10_000 + b",up,1\n", 230_000))


def csv_line(folder: Path) -> list[str]:
    return _table(_gzip(folder / "t.csv.gz", HEAD, bytes(MIB), 4000))


def csv_columns(folder: Path) -> list[str]:
    path = folder / "t.csv"
    path.write_bytes(b",".join(b"%x" % number for number in range(10**6)) + b"\n" + b"1," * 10**6 + b"1\n")
    return _table(path)


def csv_short_columns(folder: Path) -> list[str]:
    path = folder / "t.csv"
    path.write_bytes(b",".join(b"%x" % number for number in range(170_000)) + b"\n")
    return _table(path)


def csv_names(folder: Path) -> list[str]:
    path = folder / "t.csv"
    path.write_text("c,k,x\n" + "".join(f"client-{number},up,1\n" for number in range(6 * 10**6)))
    return _table(path)


def csv_long_names(folder: Path) -> list[str]:
    path = folder / "t.csv.gz"
    path.write_bytes(
        gzip.compress(HEAD)
        + b"".join(gzip.compress(b"%d" % number + b"a" * 900_000 + b",up,1\n", 1) for number in range(400))
    )
    return _table(path)


def zip_as_csv(folder: Path) -> list[str]:
    path = folder / "t.csv.gz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("t.csv", HEAD + b"ann,up,1\n" * 10**6)
    return _table(path)


def zip_as_parquet(folder: Path) -> list[str]:
    zip_as_csv(folder)
    return _table((folder / "t.csv.gz").rename(folder / "t.parquet"))


def csv_in_a_zip(folder: Path) -> list[str]:
    with (
        zipfile.ZipFile(folder / "t.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("t.csv", "w", force_zip64=True) as file,
    ):
        file.write(HEAD)
        for _ in range(3000):
            file.write(b"ann,up,1\n" * (MIB // 9))
    return _table(folder / "t.csv.zip")


def zip_contents(folder: Path) -> list[str]:
    """A zip of half a million files."""
    with zipfile.ZipFile(folder / "t.csv.zip", "w") as archive:
        for number in range(500_000):
            archive.writestr(f"{number}.csv", b"")
    return _table(folder / "t.csv.zip")


def arrow_batch(folder: Path) -> list[str]:
    """A compressed batch that states terabytes."""
    columns = {"c": np.zeros(1000, np.int64), "k": np.zeros(1000, np.int64), "x": np.zeros(1000)}
    table = pa.table(columns)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    path = folder / "t.arrow"
    with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(struct.pack("<q", 8000), struct.pack("<q", 2**42)))
    return _table(path)


def arrow_rows(folder: Path) -> list[str]:
    """Rows of columns without values, which need no bytes at all."""
    path = folder / "t.arrow"
    size = 1_000_003  # a number that is nowhere else in the file
    table = pa.table({"k": pa.nulls(size), "x": pa.nulls(size)})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(struct.pack("<q", size), struct.pack("<q", 2**40)))
    return ["table", "--root", str(path), "--label", "k", "--partition", "iid", "--clients", "2"]


def tar_as_csv(folder: Path) -> list[str]:
    path = folder / "t.csv.gz"
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("t.csv")
        member.size = 16 * MIB
        file.addfile(member, io.BytesIO(bytes(member.size)))
    return _table(path)


def parquet_rows(folder: Path) -> list[str]:
    def pieces() -> Iterator[pa.Table]:
        whole = pa.table(
            {
                "c": np.zeros(MIB, np.int64),
                "k": pa.array(["up"] * MIB).dictionary_encode(),
                "x": np.ones(MIB),
            }
        )
        for _ in range(36):
            yield whole

    return _table(_parquet(folder / "t.parquet", pieces()))


def parquet_dictionary(folder: Path) -> list[str]:
    """A dictionary of two million names, of which each batch of rows uses some: it comes with every batch."""
    names = pa.array([f"client-{number}" for number in range(2 * 10**6)])
    codes = pa.array(np.arange(20 * 10**6, dtype=np.int32) // 10**6)
    table = pa.table(
        {
            "c": pa.DictionaryArray.from_arrays(codes, names),
            "k": np.zeros(len(codes), np.int8),
            "x": np.ones(len(codes)),
        }
    )
    path = folder / "t.parquet"
    pq.write_table(table, path, row_group_size=len(codes), dictionary_pagesize_limit=2**30)
    return _table(path)


def parquet_nested(folder: Path) -> list[str]:
    kind: pa.DataType = pa.int64()
    for depth in range(90):
        kind = pa.list_(kind) if depth % 2 else pa.struct({"bytes": kind})
    columns = {"c": ["a"] * 3, "k": [0] * 3, "x": pa.nulls(3, kind)}
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return _table(folder / "t.parquet")


def parquet_columns(folder: Path, number: int = 10**6) -> list[str]:
    schema = pa.schema([pa.field(f"{name:x}", pa.int8()) for name in range(number)])
    with pq.ParquetWriter(folder / "t.parquet", schema):
        pass
    return _table(folder / "t.parquet")


def parquet_leaves(folder: Path) -> list[str]:
    """One column of 20,000 fields."""
    kind = pa.struct([pa.field(f"{name:x}", pa.int8()) for name in range(20_000)])
    columns = {"c": ["a"] * 3, "k": [0] * 3, "x": pa.nulls(3, kind)}
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return _table(folder / "t.parquet")


def parquet_vectors(folder: Path) -> list[str]:
    """A vector of two values, and 64 of 16 million."""
    wide = np.zeros(16 * MIB, np.uint8)
    first = pa.table({"c": [0, 0], "k": [0, 0], "x": [[1, 2], [3, 4]]})
    schema = first.schema.set(2, pa.field("x", pa.list_(pa.uint8())))
    path = folder / "t.parquet"
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        writer.write_table(first.cast(schema))
        lists = pa.ListArray.from_arrays(pa.array([0, len(wide)], pa.int32()), pa.array(wide))
        row = pa.table([pa.array([0]), pa.array([0]), lists], schema=schema)
        writer.write_table(pa.concat_tables([row] * 64).combine_chunks())  # in one row group
    return _table(path, "--skip-bad", "1000")


def parquet_images(folder: Path) -> list[str]:
    """A hundred images of 200 MB, stored once."""
    return _table(_images(folder / "t.parquet", bytes(200 * MIB)), "--skip-bad", "1000")


def parquet_large_images(folder: Path) -> list[str]:
    """Images of more bytes than an image has."""
    return _table(_images(folder / "t.parquet", bytes(300 * MIB)))


def png_in_a_table(folder: Path) -> list[str]:
    return _table(_images(folder / "t.parquet", png(20_000, 20_000)))


def large_png_in_a_table(folder: Path) -> list[str]:
    """Images that are just not refused: 169 million pixels with transparency each."""
    return _table(_images(folder / "t.parquet", png(13_000, 13_000, alpha=True), 2))


def pngs_in_a_folder(folder: Path) -> list[str]:
    path = folder / "data/ann/up/a.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(png(60_000, 60_000, whole=False))
    return ["folder", "--root", str(folder / "data")]


def times_of_a_folder(folder: Path) -> list[str]:
    """Nine million rows of times for one image."""
    path = folder / "data/ann/up/a.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(png(8, 8))
    times = folder / "times.csv"
    times.write_bytes(b"path,time\n" + b"a,2015-01-01\n" * (9 * 10**6))
    return ["folder", "--root", str(folder / "data"), "--times", str(times)]


def idx_labels(folder: Path) -> list[str]:
    """Two billion labels, of one image each."""
    root = folder / "idx"
    root.mkdir()
    for split in ("train", "t10k"):
        number = 2**31 - 64
        images = struct.pack(">IIII", 0x803, number, 1, 1)
        _gzip(root / f"{split}-images-idx3-ubyte.gz", images, bytes(MIB), 2047)
        _gzip(root / f"{split}-labels-idx1-ubyte.gz", struct.pack(">II", 0x801, number), bytes(MIB), 2047)
    return ["idx", "--root", str(root), "--partition", "iid", "--clients", "2"]


def idx_images(folder: Path) -> list[str]:
    """A hundred images of 16 million pixels."""
    root = folder / "idx"
    root.mkdir()
    for split in ("train", "t10k"):
        head = struct.pack(">IIII", 0x803, 100, 4096, 4096)
        _gzip(root / f"{split}-images-idx3-ubyte.gz", head, bytes(16 * MIB), 100)
        labels = struct.pack(">II", 0x801, 100) + bytes(100)
        (root / f"{split}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    return ["idx", "--root", str(root), "--partition", "iid", "--clients", "2", "--size", "8"]


def waymo_rows(folder: Path) -> list[str]:
    return _waymo(folder, png(8, 8), rows=20 * 10**6)


def waymo_crops(folder: Path) -> list[str]:
    return _waymo(folder, png(8, 8), rows=5000)


def waymo_images(folder: Path) -> list[str]:
    return _waymo(folder, bytes(300 * MIB), rows=3)


def _waymo(folder: Path, image: bytes, rows: int) -> list[str]:
    """One segment with a frame, in which there are that many equal objects."""
    key = {"key.segment_context_name": "s", "key.frame_timestamp_micros": 1, "key.camera_name": 1}
    component = "[CameraBoxComponent]"
    box = {f"{component}.box.{what}.{axis}": 4.0 for what in ("center", "size") for axis in "xy"}
    for name, more, number in (
        ("camera_image", {"[CameraImageComponent].image": image}, 1),
        ("camera_box", {**box, f"{component}.type": 1}, rows),
    ):
        path = folder / "waymo/training" / name / "s.parquet"
        path.parent.mkdir(parents=True)
        row = pa.Table.from_pylist([{**key, **more}])
        least = min(number, MIB)
        whole = row.take(pa.array(np.zeros(least, np.int64)))
        _parquet(path, (whole for _ in range(number // least)))
    return ["waymo", "--root", str(folder / "waymo")]


def _images(path: Path, content: bytes, number: int = 100) -> Path:
    cells = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(number, np.int32)), pa.array([content], pa.binary())
    )
    table = pa.table({"c": ["a"] * number, "k": [0] * number, "x": cells})
    pq.write_table(table, path, compression="ZSTD", store_schema=False)
    return path


def _parquet(path: Path, parts: Iterator[pa.Table]) -> Path:
    writer: Any = None
    for part in parts:
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()
    return path


def png(width: int, height: int, *, alpha: bool = False, whole: bool = True) -> bytes:
    """A PNG of zeros, made without its pixels; unless `whole`, only the first of them are there."""
    row = bytes(1 + width * (4 if alpha else 3))
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(row) for _ in range(height if whole else 2)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 6 if alpha else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


DataSet = Callable[[Path], list[str]]

IN_SUITE: Mapping[str, DataSet] = {
    "csv-short-columns": csv_short_columns,
    "parquet-nested": parquet_nested,
    "arrow-batch": arrow_batch,
    "waymo-crops": waymo_crops,
    "idx-labels": idx_labels,
}
"""A few that take little time, in every run of the tests."""

HOSTILE: Mapping[str, DataSet] = {
    **IN_SUITE,
    "csv-rows": csv_rows,
    "csv-text": csv_text,
    "csv-line": csv_line,
    "csv-columns": csv_columns,
    "csv-names": csv_names,
    "csv-long-names": csv_long_names,
    "csv-in-a-zip": csv_in_a_zip,
    "zip-contents": zip_contents,
    "arrow-rows": arrow_rows,
    "zip-as-csv": zip_as_csv,
    "zip-as-parquet": zip_as_parquet,
    "tar-as-csv": tar_as_csv,
    "parquet-rows": parquet_rows,
    "parquet-dictionary": parquet_dictionary,
    "parquet-columns": parquet_columns,
    "parquet-leaves": parquet_leaves,
    "parquet-vectors": parquet_vectors,
    "parquet-images": parquet_images,
    "parquet-large-images": parquet_large_images,
    "png-in-a-table": png_in_a_table,
    "large-png-in-a-table": large_png_in_a_table,
    "pngs-in-a-folder": pngs_in_a_folder,
    "times-of-a-folder": times_of_a_folder,
    "idx-images": idx_images,
    "waymo-rows": waymo_rows,
    "waymo-images": waymo_images,
}


def damage(folder: Path, draw: random.Random) -> None:
    """Change a few bytes of one file below `folder`, or cut it off."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = draw.choice(files)
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 3, 30))):
        content[draw.randrange(min(len(content), draw.choice((100, 10**9))))] = draw.randrange(256)
    path.write_bytes(content[: draw.choice((len(content), draw.randrange(1, len(content) + 1)))])
