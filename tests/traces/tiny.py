"""Traces, images and idx files small enough to be worked out by hand."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.seeding import RandomStreams
from traces.arrivals import Arrivals, TestOn, num_noise_starts
from traces.images import ImageSet
from traces.onsets import Onsets
from traces.sources import TraceContext
from traces.tables.sorted import SortedTable
from traces.trace import Trace


def write_trace_folder(
    folder: Path,
    columns: Mapping[str, Sequence[object] | np.ndarray],
    features: np.ndarray | None = None,
    facts: str = "version = 1\n",
) -> Path:
    """A trace folder as anybody may write one: these columns, features (by default a byte per sample)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table({name: pa.array(values) for name, values in columns.items()}), folder / "arrivals.parquet"
    )
    if features is None:
        number = int(np.max(np.asarray(columns["sample"]))) + 1
        features = np.arange(number * 4, dtype=np.uint8).reshape(number, 2, 2)
    np.save(folder / "features.npy", features)
    (folder / "trace.toml").write_text(facts)
    return folder


def daily_rows(clients: int, days: int, per_day: int = 8, labels: int = 2) -> dict[str, np.ndarray]:
    """Columns of a trace folder: so many new samples of each client, of its labels in turn, on each day."""
    day, client, number = np.indices((days, clients, per_day)).reshape(3, -1)
    return {
        "client": client,
        "label": (client + number) % labels,
        "sample": np.arange(len(client)),
        "time": np.datetime64("2015-01-01") + day,
    }


Row = tuple[int, int, int, int]
"""(client, split, arrival, label)."""


def some_images(num_labels: int = 3, per_label: int = 4, shape: tuple[int, ...] = (2, 2)) -> ImageSet:
    """`per_label` images of every label; the first half of them is train. Pixel values name the image."""
    labels = np.repeat(np.arange(num_labels), per_label)
    images = np.arange(len(labels))
    pixels = np.zeros((len(labels), *shape), np.uint8)
    pixels += images.astype(np.uint8).reshape(-1, *([1] * len(shape)))
    is_train = images % per_label < per_label // 2
    return ImageSet(
        pixels, 1 / 255, labels, num_labels, train=np.flatnonzero(is_train), test=np.flatnonzero(~is_train)
    )


def trace_of(
    rows: Sequence[Row],
    *,
    retain_steps: int = 2,
    rounds_per_step: int = 1,
    noise: float = 0.0,
    num_clients: int | None = None,
    test_retain_steps: int | None = None,
    test_on: TestOn = "present",
    test_then_train: bool = True,
    concepts: Sequence[Sequence[int]] | None = None,
    test_concepts: Sequence[Sequence[int]] | None = None,
    moves: Onsets | None = None,
    images: ImageSet | None = None,
    scratch: Path | None = None,
) -> Trace:
    """A trace of these rows; a row's image is its label's first, or in the test split its label's last."""
    client, split, arrival, label = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    images = images or some_images(num_labels=max(int(label.max()) + 1, 2))
    of_split = [images.by_label("train"), images.by_label("test")]
    image: Ints = np.array([of_split[s][0][of_split[s][1][k]] for s, k in zip(split, label, strict=True)])
    rank = np.argsort(np.lexsort((label, arrival, split, client)))  # independent of the order of the rows
    starts = RandomStreams(0).generator("starts").integers(0, num_noise_starts(images), size=len(rows))
    arrivals = Arrivals(
        client.astype(np.int32),
        split.astype(np.int8),
        arrival.astype(np.int32),
        label.astype(np.int16),
        image.astype(np.int32),
        starts[rank].astype(np.int32),
    )
    return Trace(
        images,
        SortedTable(arrivals, num_clients or int(client.max()) + 1, scratch),
        retain_steps=retain_steps,
        rounds_per_step=rounds_per_step,
        noise=noise,
        generator=RandomStreams(0).generator("noise"),
        test_retain_steps=test_retain_steps,
        test_on=test_on,
        test_then_train=test_then_train,
        concepts=None if concepts is None else np.array(concepts),
        test_concepts=None if test_concepts is None else np.array(test_concepts),
        moves=moves,
    )


def idx_bytes(array: np.ndarray) -> bytes:
    """`array` of unsigned bytes in the idx format."""
    sizes = b"".join(length.to_bytes(4, "big") for length in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def write_idx(path: Path, array: np.ndarray) -> Path:
    content = idx_bytes(array)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_idx_folder(folder: Path, num_labels: int = 3, per_label: int = 4, suffix: str = "") -> Path:
    """Write the four files: `per_label` 2x2 images of every label for train, and as many for test."""
    folder.mkdir()
    labels = np.arange(num_labels * per_label) % num_labels
    for name, first in (("train", 0), ("t10k", 100)):
        pixels = np.zeros((len(labels), 2, 2), np.uint8) + (first + np.arange(len(labels)))[:, None, None]
        write_idx(folder / f"{name}-images-idx3-ubyte{suffix}", pixels)
        write_idx(folder / f"{name}-labels-idx1-ubyte{suffix}", labels)
    return folder


def context(rounds: int = 10, seed: int = 0, locate: Callable[[str], Path] = Path) -> TraceContext:
    return TraceContext(rounds, RandomStreams(seed), locate)
