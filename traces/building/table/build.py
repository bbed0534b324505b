"""The builder `table`: a trace folder of any table of features, from CSV or Parquet.

Two passes over the files. The first one reads the columns that say who has a row, when, and its class, and
decides which rows are used. The second one streams the features, in the order of the files. Besides these
columns only a batch of rows is in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.storage.checkpoints import delete_folder
from traces.building.base import Builder, Built, Request, Watch
from traces.building.names import refuse_names
from traces.building.table.bad_rows import BadRows
from traces.building.table.features import Numbers, chosen_features, is_image
from traces.building.table.images import Images
from traces.building.table.keys import read_keys, refuse_types
from traces.building.table.moments import Moments
from traces.building.table.reading.shards import Shards, find_shards
from traces.building.table.rows import TRAIN, UsedRows, columns_of, refuse_test_only, use_rows
from traces.building.table.settings import TableSettings
from traces.building.table.writing import FeatureWriter
from traces.building.workspace import Workspace, workspace
from traces.files.arrivals import write_arrival_pieces
from traces.files.facts import ARRIVALS, FEATURES, TraceFacts
from traces.ordering import sizes_of

COARSE = 2.0**16
"""Above this ratio of mean to deviation, standardised numbers of 32 bits have fewer than 8 bits left."""

FILLED_ROWS_BYTES = 2**23
MOST_ORIGIN = 2000


class Table(Builder):
    """A table of features, as CSV or Parquet: one row for each sample, with its client, class and time.

    A file, or a folder of shards. Texts become columns of zeros and ones on request; images, as the bytes in
    Hugging Face's Parquet shards, are decoded. Rows of `features.npy` are in the order of the files, and hold
    the values as they are; `trace.toml` has the mean and deviation to standardise them with.
    """

    needs = "a .csv, .csv.gz or .parquet, or a folder of such files with the same columns"

    Settings = TableSettings
    settings: TableSettings

    def build(self, request: Request) -> Built:
        settings = self.settings
        shards = find_shards(request.root, most_cells=settings.most_cells, skips_bad=settings.skip_bad > 0)
        refuse_types(shards, settings)
        names = chosen_features(shards, settings)
        options = settings.model_dump(mode="json", exclude={"most_cells"})
        plan = {"kind": "table", "settings": options, "files": shards.digest()}
        with workspace(request.out, plan, fresh=request.fresh) as space:
            try:
                return _built(settings, shards, names, request, space)
            except InputError:  # the same command will not succeed: nothing is kept for it
                delete_folder(space.path)
                raise


def _built(
    settings: TableSettings,
    shards: Shards,
    names: tuple[str, ...],
    request: Request,
    space: Workspace,
) -> Built:
    # Step 1: who has which row, when, and its class.
    root = request.root
    bad = BadRows(settings.skip_bad)
    keys = read_keys(shards, settings, bad)
    pa.default_memory_pool().release_unused()
    rows = use_rows(keys, settings, bad.mask(keys.num_rows), root)
    refuse_names(() if isinstance(rows.clients, np.ndarray) else rows.clients, rows.classes)
    # Step 2: the features, row by row.
    encoder: Images | Numbers
    statistics: _OfImages | _OfNumbers
    shape: tuple[int, ...]
    dtype: np.dtype
    if is_image(shards.kinds[names[0]]) and names[0] not in settings.one_hot:
        encoder = Images(shards, names[0], settings.size, bad)
        shape, dtype, statistics = (3, settings.size, settings.size), np.dtype(np.uint8), _OfImages()
    else:
        encoder = Numbers(shards, names, keys.categories, settings.missing, bad)
        shape, dtype, statistics = (len(encoder.names),), np.dtype("<f4"), _OfNumbers(encoder)
    del keys
    path = space.path / FEATURES
    progress = space.progress if path.exists() else {}
    done = int(progress.get("written", 0))
    with FeatureWriter(path, dtype, (len(rows), *shape), done, space.record) as writer:
        _write_features(shards, encoder, rows, statistics, writer, progress, request.watch)
        written = writer.finish()
        pa.default_memory_pool().release_unused()
        # Step 3: missing numbers become the mean, which is known now.
        if isinstance(statistics, _OfNumbers) and statistics.has_missing:
            _fill(path, statistics, root)
            written = None
        # Step 4: the arrivals, and the facts.
        good = np.ones(len(rows), dtype=np.bool_)
        good[_left_out(bad, rows)] = False
        if not good.any():
            raise DataFileError(root, f"no row of it is good: {len(bad)} have features that cannot be used")
        refuse_test_only(rows.client, rows.split, rows.clients, root, good)
        write_arrival_pieces(space.path / ARRIVALS, columns_of(rows, good))
    mean, deviation = statistics.finish()
    facts = TraceFacts(
        version=1,
        shape=shape,
        mean=tuple(mean.tolist()),
        deviation=tuple(deviation.tolist()),
        classes=rows.classes,
        origin=_origin(settings, root, getattr(encoder, "names", names)),
    )
    space.finish(facts, {} if written is None else {FEATURES: written})
    num_train = int(((rows.split == TRAIN) & good).sum())
    return Built(
        clients=int((sizes_of(rows.client, len(rows.clients), good) > 0).sum()),
        train=num_train,
        test=int(good.sum()) - num_train,
        classes=len(rows.classes),
        shape=shape,
        when=rows.when,
        first=int(rows.at.min(where=good, initial=np.iinfo(rows.at.dtype).max)),  # some row is good
        last=int(rows.at.max(where=good, initial=np.iinfo(rows.at.dtype).min)),
        left_out=len(bad),
        num_bytes=len(rows) * int(np.prod(shape)) * dtype.itemsize,
        notes=_notes(rows, bad, statistics, settings),
        play=_play(rows),
    )


def _write_features(
    shards: Shards,
    encoder: Images | Numbers,
    rows: UsedRows,
    statistics: _OfImages | _OfNumbers,
    writer: FeatureWriter,
    progress: Mapping[str, Any],
    watch: Watch,
) -> None:
    """Stream the features into `writer`, from where an earlier attempt came to according to `progress`."""
    bad = encoder.bad
    start, done = int(progress.get("read", 0)), int(progress.get("written", 0))
    if progress:
        statistics.restore(progress["statistics"])
        bad.rows.update(progress["bad"])
    total = len(rows.keep)
    malformed = (lambda: True) if bad.most else None  # they have been counted
    for batch in shards.batches(encoder.types, encoder.rows, start, malformed):
        keep = rows.keep[start : start + batch.num_rows]
        num_bad = len(bad.rows)
        block = encoder.encode(batch, start, keep)
        weight = rows.weight[done : done + len(block)]
        if len(bad.rows) > num_bad:
            weight = np.where(bad.mask(total)[start : start + batch.num_rows][keep], 0, weight)
        statistics.add(block, weight)
        start += batch.num_rows
        done += len(block)
        writer.write(
            block,
            {
                "read": start,
                "written": done,
                "statistics": statistics.as_json(),
                "bad": bad.numbers().tolist(),
            },
        )
        watch.progress(start, total)


def _left_out(bad: BadRows, rows: UsedRows) -> Ints:
    """The bad rows among `rows`, numbered as there."""
    numbers = bad.numbers()
    if len(numbers) == 0:
        return numbers
    before = np.concatenate(([0], np.cumsum(np.add.reduceat(rows.keep, numbers, dtype=np.int64))))[:-1]
    left_out: Ints = (before + np.count_nonzero(rows.keep[: numbers[0]]))[rows.keep[numbers]]
    return left_out


class _OfNumbers:
    """Mean and deviation of the numbers; other columns, of zeros and ones, are left as they are."""

    def __init__(self, encoder: Numbers) -> None:
        self.encoder = encoder
        self.moments = Moments(len(encoder.names))
        self.has_missing = False

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        self.has_missing |= bool(np.isnan(block).any())
        self.moments.add(block, weight)

    def as_json(self) -> dict[str, Any]:
        return {"missing": self.has_missing, **self.moments.as_json()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.has_missing = bool(state["missing"])
        self.moments.restore(state)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        is_number = self.encoder.is_number
        return np.where(is_number, self.moments.mean, 0.0), np.where(is_number, self.moments.deviation(), 1.0)


class _OfImages:
    """Mean and deviation of each channel, from sums of whole numbers."""

    def __init__(self) -> None:
        self.count, self.sum, self.squares = 0, [0, 0, 0], [0, 0, 0]

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        values = np.repeat(block, weight.astype(np.int64), axis=0).astype(np.int64)
        self.count += values[:, 0].size
        self.sum = [old + int(new) for old, new in zip(self.sum, values.sum(axis=(0, 2, 3)), strict=True)]
        values *= values
        self.squares = [
            old + int(new) for old, new in zip(self.squares, values.sum(axis=(0, 2, 3)), strict=True)
        ]

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "sum": self.sum, "squares": self.squares}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.count, self.sum, self.squares = int(state["count"]), list(state["sum"]), list(state["squares"])

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        count = max(self.count, 1)
        mean = np.array([value / count for value in self.sum])
        variance = np.array(
            [
                (count * square - value**2) / count**2
                for value, square in zip(self.sum, self.squares, strict=True)
            ]
        )
        return mean / 255, np.where(variance > 0, np.sqrt(variance), 255.0) / 255


def _fill(path: Path, statistics: _OfNumbers, root: Path) -> None:
    """Replace NaN in the features by the mean of its column; a second time it changes nothing."""
    moments, names = statistics.moments, statistics.encoder.names
    values = np.lib.format.open_memmap(path, mode="r+")
    means = moments.mean.astype(np.float32)
    step = max(1, FILLED_ROWS_BYTES // (4 * len(names)))
    for first in range(0, len(values), step):
        block = values[first : first + step]
        row, column = np.nonzero(np.isnan(block))
        if len(row):
            unknown = column[moments.count[column] == 0]
            if len(unknown):
                raise DataFileError(
                    root,
                    f"feature {names[int(unknown[0])]!r} has no value in the rows that means are taken of; "
                    f"leave it out, raise retain, or give --missing zero",
                )
            block[row, column] = means[column]
    values.flush()


def _origin(settings: TableSettings, root: Path, names: tuple[str, ...]) -> str:
    columns = [f"{key} {name}" for key, name in settings.columns_of_keys().items()]
    text = f"{root.name}: {', '.join(columns)}; features {', '.join(names)}"
    return text if len(text) <= MOST_ORIGIN else f"{text[:MOST_ORIGIN]}, ..."


def _notes(
    rows: UsedRows, bad: BadRows, statistics: _OfImages | _OfNumbers, settings: TableSettings
) -> tuple[str, ...]:
    notes = []
    if len(bad):
        first = f"; the first: {bad.first}" if bad.first else ""
        notes.append(f"{len(bad)} bad rows were left out{first}")
    unused = len(rows.keep) - len(rows) - len(bad)
    if unused > 0:
        notes.append(f"{unused} rows were left out by since, until, classes, min_samples, limit or count")
    if isinstance(statistics, _OfNumbers):
        mean, deviation = statistics.finish()
        coarse = np.flatnonzero(np.abs(mean) > COARSE * deviation)
        constant = np.flatnonzero((statistics.moments.squares == 0) & statistics.encoder.is_number)
        names = statistics.encoder.names
        coarse = np.setdiff1d(coarse, constant)
        if len(coarse):
            shown = ", ".join(names[column] for column in coarse[:5])
            notes.append(
                f"{shown}: vary little about a large mean, and lose digits as numbers of 32 bits; subtract a "
                f"constant first"
            )
        if len(constant):
            notes.append(
                f"{', '.join(names[column] for column in constant[:5])}: constant in the training rows"
            )
    if rows.when == "step" and settings.step is None:
        notes.append("all rows are owned at the start: play it with trace.retain_rounds of all rounds")
    return tuple(notes)


def _play(rows: UsedRows) -> dict[str, object]:
    """Settings that fit: of ranks, data steps such that a client of median size has about fifty."""
    if rows.when != "order":
        return {}
    return {"step_width": max(1, int(np.median(sizes_of(rows.client, len(rows.clients)))) // 50)}
