"""The workload table: building a trace of a table of 64 floats, from Parquet and from CSV.

The reference of Parquet is writing as many bytes as the features have, plainly, and bringing them to the
disk; that of CSV is pyarrow's bare reader, which writes nothing. `table-dialect` is finding the separator and
the decimal comma of a CSV as wide as MNIST. Peak memory is that of a process of its own,
`probes/table.py`. `table-5m` is the same with five million rows, and without CSV.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Measured, Say, interleaved, timed
from benchmarks.memory import BYTES_PER_MB, MOST_REPEATS, in_a_process
from emulator.seeding import RandomStreams
from emulator.storage.reading.csv_file import sample_of
from emulator.storage.reading.dialects import Dialect, find_dialect
from emulator.storage.table_paths import Given
from traces.building import Request
from traces.building.table.build import Table
from traces.building.table.settings import TableSettings

SETTINGS = TableSettings(client="client", label="label", step="step", most_cells=2**30)
STEPS, LABELS = 60, 10
AT_ONCE = 2**18
PLAINLY = "writing as many bytes, plainly, and fsync"
WIDE_ROWS, WIDE_COLUMNS = 1000, 785
BARELY = "pyarrow's streaming CSV reader, which writes nothing"


@dataclass(frozen=True)
class TableSizes:
    """Rows of the Parquet file and of the CSV, floats in each, and clients. 0 rows: it is not measured."""

    parquet_rows: int = 500_000
    csv_rows: int = 100_000
    floats: int = 64
    clients: int = 10_000


def measure_table(repeats: int, say: Say) -> list[Figure]:
    return table_figures(TableSizes(), repeats, say)


def measure_large_table(repeats: int, say: Say) -> list[Figure]:
    return table_figures(TableSizes(parquet_rows=5_000_000, csv_rows=0), min(repeats, MOST_REPEATS), say)


def table_figures(sizes: TableSizes, repeats: int, say: Say) -> list[Figure]:
    """Megabytes of features a second, from Parquet and from CSV, and private memory at the peak."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        say(f"writing a table of {sizes.parquet_rows:,} rows")
        parquet = write_table(folder / "table.parquet", sizes.parquet_rows, sizes)
        num_bytes = sizes.parquet_rows * sizes.floats * 4
        contenders = {
            "parquet": a_build(parquet, folder / "out"),
            "plain": timed(lambda: write_plainly(folder / "plain", num_bytes)),
        }
        if sizes.csv_rows:
            csv = folder / "table.csv"
            pyarrow.csv.write_csv(pq.read_table(parquet).slice(0, sizes.csv_rows), csv)
            contenders |= {"csv": a_build(csv, folder / "out"), "bare": timed(lambda: read_barely(csv))}
        seconds = interleaved(contenders, repeats, warm_up=False, say=say)
        peak_mb = [
            in_a_process("table", str(parquet), str(folder / "out"))["peak_bytes"] / BYTES_PER_MB
            for _ in range(min(repeats, MOST_REPEATS))
        ]
        wide = write_wide(folder / "wide.csv")
        dialect_ms = np.array([1000 * timed(lambda: dialect_of(wide))() for _ in range(repeats)])
    rows = f"{sizes.parquet_rows:,} rows x {sizes.floats} floats"
    figures = [
        figure(
            "table-parquet",
            f"features of a trace built of a Parquet file, {rows}",
            num_bytes / BYTES_PER_MB / seconds["parquet"],
            "MB/s",
            better="higher",
            threads=2,
            against=Reference(num_bytes / BYTES_PER_MB / seconds["plain"], PLAINLY),
            target=Target("ratio", 0.5),
        ),
        figure(
            "table-memory",
            "private memory at the peak of that build, beyond that of the loaded libraries",
            np.array(peak_mb),
            "MB",
            better="lower",
            target=Target("value", 500.0),
        ),
        figure(
            "table-dialect",
            f"finding ';' and the decimal comma of a CSV, {WIDE_ROWS:,} rows x {WIDE_COLUMNS} columns",
            dialect_ms,
            "ms",
            better="lower",
            target=Target("value", 50.0),
        ),
    ]
    if sizes.csv_rows:
        csv_mb = sizes.csv_rows * sizes.floats * 4 / BYTES_PER_MB
        figures.append(
            figure(
                "table-csv",
                f"features of a trace built of a CSV, {sizes.csv_rows:,} rows x {sizes.floats} floats",
                csv_mb / seconds["csv"],
                "MB/s",
                better="higher",
                threads=2,
                against=Reference(csv_mb / seconds["bare"], BARELY),
                target=Target("ratio", 0.7),
            )
        )
    return figures


def write_table(path: Path, num_rows: int, sizes: TableSizes) -> Path:
    """Write a Parquet file with the columns client, label, step and x0, x1, ...; returns `path`."""
    generator = RandomStreams(0).generator("bench")
    normal = generator.standard_normal(AT_ONCE, dtype=np.float32)
    writer = None
    for first in range(0, num_rows, AT_ONCE):
        rows = min(AT_ONCE, num_rows - first)
        columns: dict[str, np.ndarray] = {
            "client": generator.integers(0, sizes.clients, rows, dtype=np.int32),
            "label": generator.integers(0, LABELS, rows, dtype=np.int16),
            "step": generator.integers(0, STEPS, rows, dtype=np.int32),
        }
        for number in range(sizes.floats):
            columns[f"x{number}"] = np.roll(normal, 997 * number + first)[:rows]
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return path


def write_wide(path: Path) -> Path:
    """Write a CSV with semicolons and decimal commas; returns `path`.

    Each row has a cell in quotes, and a date with points, which no number is.
    """
    generator = RandomStreams(0).generator("bench")
    lines = [";".join(f"x{number}" for number in range(WIDE_COLUMNS))]
    lines += [
        ";".join(['"a; b, c"', "01.02.2020", *(f"{value:.4f}".replace(".", ",") for value in row)])
        for row in generator.random((WIDE_ROWS // 50, WIDE_COLUMNS - 2))
    ] * 50
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def dialect_of(path: Path) -> Dialect:
    """The dialect of a CSV, found as a build does."""
    sample = sample_of(path)
    return find_dialect(lambda: [sample], Given())


def a_build(root: Path, out: Path) -> Measured:
    """A function that builds `out` and returns the seconds; what an earlier build left is deleted before."""

    def measured() -> float:
        shutil.rmtree(out, ignore_errors=True)
        return timed(lambda: Table(SETTINGS).build(Request(root, out)))()

    return measured


def write_plainly(path: Path, num_bytes: int) -> None:
    """Write that many bytes into a new file, and bring them to the disk."""
    piece = bytes(range(256)) * 2**14
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        for first in range(0, num_bytes, len(piece)):
            file.write(piece[: min(len(piece), num_bytes - first)])
        file.flush()
        os.fsync(file.fileno())


def read_barely(path: Path) -> None:
    """Read all of a CSV as pyarrow infers its types, batch by batch."""
    with pyarrow.csv.open_csv(path) as reader:
        for _ in reader:
            pass
