"""The workload trace-folder: opening a trace of five million samples of 64 floats, and reading it.

Its rows are in the order of a table, as builders write them. The reference reads the same file with pyarrow
and sorts it with numpy. Each repeat is a process of its own, `probes/opening.py`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.measure import Say, interleaved, timed
from benchmarks.memory import BYTES_PER_MB, in_a_process
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS
from traces.files import ARRIVALS, FEATURES, TraceFacts, file_facts, write_arrivals, write_facts
from traces.files.features import write_header

STEPS = 60
OWNED = 4
LABELS = 10
SORTING = "pyarrow's reader and numpy's lexsort"


@dataclass(frozen=True)
class FolderSizes:
    """Numbers of samples, of floats in each, and of clients."""

    samples: int = 5_000_000
    floats: int = 64
    clients: int = 20_000


def measure_trace_folder(repeats: int, say: Say) -> list[Figure]:
    return trace_folder_figures(FolderSizes(), repeats, say)


def trace_folder_figures(sizes: FolderSizes, repeats: int, say: Say) -> list[Figure]:
    """Seconds and private memory to open a trace folder, and private memory to read all its features."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, small = Path(scratch) / "trace", Path(scratch) / "small"
        say(f"writing a trace of {sizes.samples:,} samples")
        write_folder(folder, sizes)
        write_folder(small, FolderSizes(samples=1000, floats=sizes.floats, clients=10))
        probes: list[dict[str, float]] = []

        def ours() -> float:
            probes.append(in_a_process("opening", str(folder), str(small)))
            return probes[-1]["seconds"]

        samples = interleaved(
            {"open": ours, "sort": timed(lambda: read_and_sort(folder / ARRIVALS))},
            repeats,
            warm_up=False,
            say=say,
        )
        features_mb = (folder / FEATURES).stat().st_size / BYTES_PER_MB
    peaks = {
        key: np.array([probe[key] for probe in probes]) / BYTES_PER_MB for key in ("peak_bytes", "read_bytes")
    }
    return [
        figure(
            "trace-folder-open",
            f"opening a trace of {sizes.samples:,} samples, with the check of the order of its rows",
            samples["open"],
            "s",
            better="lower",
            against=Reference(samples["sort"], SORTING),
            target=Target("value", 1.0),
        ),
        figure(
            "trace-folder-memory",
            "private memory at the peak of opening it",
            peaks["peak_bytes"],
            "MB",
            better="lower",
            target=Target("value", 150.0),
        ),
        figure(
            "trace-folder-read",
            f"private memory at the peak of reading all its features, {features_mb:,.0f} MB, once",
            peaks["read_bytes"],
            "MB",
            better="lower",
            target=Target("value", 50.0),
        ),
    ]


def write_folder(folder: Path, sizes: FolderSizes, *, in_order: bool = True) -> None:
    """Write a trace folder whose rows are in order, or in a random one.

    All its features are 0, and take no room on the disk.
    """
    folder.mkdir()
    generator = RandomStreams(0).generator("bench")
    rows = sizes.samples
    client = np.sort(generator.integers(0, sizes.clients, rows, dtype=np.int32))
    split = (generator.random(rows) < 0.2).astype(np.int8)
    step = generator.integers(-OWNED, STEPS, rows, dtype=np.int32)
    order = np.lexsort((step, split, client)) if in_order else generator.permutation(rows)
    names = pa.array([f"client {number:06d}" for number in range(sizes.clients)])
    columns: dict[str, Any] = {
        "client": pa.DictionaryArray.from_arrays(cast(Any, pa.array(client[order])), names),
        "label": generator.integers(0, LABELS, rows, dtype=np.int16),
        "sample": np.arange(rows, dtype=np.int32),
        "step": step[order],
        "split": pa.DictionaryArray.from_arrays(cast(Any, pa.array(split[order])), pa.array(list(SPLITS))),
    }
    write_arrivals(folder / ARRIVALS, columns)
    with (folder / FEATURES).open("wb") as file:
        start = write_header(file, np.dtype("<f4"), (rows, sizes.floats))
        file.truncate(start + rows * sizes.floats * 4)
    facts = {name: file_facts(folder / name) for name in (ARRIVALS, FEATURES)}
    write_facts(folder, TraceFacts(version=1, files=facts))


def read_and_sort(path: Path) -> None:
    """Read all columns of `arrivals.parquet`, and sort its rows."""
    table = pq.read_table(path)
    client, split = (
        np.asarray(cast(Any, table.column(name).combine_chunks()).indices) for name in ("client", "split")
    )
    np.lexsort((np.asarray(table.column("step")), split, client))
