"""The builder `table`: a trace folder of any table of features, from CSV, Parquet or Arrow.

Two passes over the files. The first one reads the columns that say who has a row, when, and its class, and
decides which rows are used. The second one streams the features, in the order of the files. Besides these
columns only a batch of rows is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.storage.checkpoints import delete_folder
from emulator.storage.reading.files import OR_A_FOLDER
from emulator.storage.reading.shards import Shards
from emulator.storage.table_paths import format_of
from traces.building.bad_rows import BadRows
from traces.building.base import KEEPS_ALL, Builder, Built, Request, Watch
from traces.building.names import refuse_names
from traces.building.remarks import on_clients, same_but_for_spaces, taken_features
from traces.building.table.class_names import class_names
from traces.building.table.encoders.encoding import Encoder, Encoding, Statistics
from traces.building.table.encoders.feature_columns import FeatureColumns
from traces.building.table.encoders.features import Numbers, chosen_features, is_image
from traces.building.table.encoders.images import Images
from traces.building.table.encoders.statistics import OfImages, OfNumbers, fill_missing
from traces.building.table.file_clients import shards_of
from traces.building.table.keys import Keys, read_keys, refuse_types
from traces.building.table.rows import TEST, TRAIN, UsedRows, columns_of, refuse_test_only, use_rows
from traces.building.table.settings import TableSettings
from traces.building.table.writing import FeatureWriter
from traces.building.workspace import Workspace, workspace
from traces.files.arrivals import write_arrival_pieces
from traces.files.facts import ARRIVALS, FEATURES, TraceFacts
from traces.ordering import sizes_of

COARSE = 2.0**16
"""Above this ratio of mean to deviation, standardised numbers of 32 bits have fewer than 8 bits left."""

MOST_ORIGIN = 2000


class Table(Builder):
    """A table of features, as CSV, Parquet or Arrow: a row for each sample, with client, class and time.

    A file, or a folder of shards. Texts become columns of zeros and ones on request; images, as the bytes in
    Hugging Face's Parquet shards, are decoded. Rows of `features.npy` are in the order of the files, and hold
    the values as they are; `trace.toml` has the mean and deviation to standardise them with.
    """

    needs = (
        "a .csv, .tsv, .txt (also .csv.gz, .csv.zip, .tsv.gz), .parquet, .arrow or .feather, or a folder of "
        "such files with the same columns"
    )

    Settings = TableSettings
    settings: TableSettings

    @classmethod
    def refuse_root(cls, root: Path) -> None:
        if not root.is_dir():
            format_of(root, OR_A_FOLDER)

    def build(self, request: Request) -> Built:
        settings = self.settings
        shards, clients = shards_of(request.root, settings)
        refuse_types(shards, settings)
        columns = chosen_features(shards, settings)
        names = class_names(shards, settings.label)
        owners = None if clients is None else clients.of
        remarks = [clients.note] if clients is not None and clients.note is not None else []
        remarks += [taken_features(columns.names)] if settings.features is None else []
        options = settings.model_dump(mode="json", exclude={"most_cells"})
        plan = {"kind": "table", "settings": options, "files": shards.digest()}
        if clients is not None:
            plan["client of a file"] = clients.digest()
        with workspace(request.out, plan, fresh=request.fresh) as space:
            try:
                return write_trace(
                    settings,
                    shards,
                    lambda bad: read_keys(shards, settings, bad, owners, names),
                    lambda keys, bad: _encoding(settings, shards, columns, keys, bad),
                    request,
                    space,
                    remarks,
                    version=1 if names is None else 2,
                )
            except InputError:  # the same command will not succeed: nothing is kept for it
                delete_folder(space.path)
                raise


def _encoding(
    settings: TableSettings, shards: Shards, columns: FeatureColumns, keys: Keys, bad: BadRows
) -> Encoding:
    """How the feature `columns` are written: images, or numbers."""
    name = columns.names[0]
    if is_image(shards.kinds[name]) and name not in settings.one_hot:
        images = Images(shards, name, settings, bad)
        return Encoding(images, OfImages(images.shape), images.shape, np.dtype(np.uint8), images.shown)
    numbers = Numbers(shards, columns, keys.categories, settings.missing, bad)
    shape = columns.shape or (len(numbers.names),)
    return Encoding(numbers, OfNumbers(numbers, shape), shape, np.dtype("<f4"), numbers.shown)


def write_trace(
    settings: TableSettings,
    shards: Shards,
    read: Callable[[BadRows], Keys],
    encode: Callable[[Keys, BadRows], Encoding],
    request: Request,
    space: Workspace,
    remarks: Sequence[str] = (),
    version: Literal[1, 2] = 1,
) -> Built:
    """Write a trace folder in `space`, from where an earlier attempt came to.

    Args:
        settings: which columns are what, and which rows are used.
        shards: the rows.
        read: reads the columns that are no features, and counts bad rows.
        encode: says how features are written, given these columns.
        request: the table, for messages, and where to report.
        space: the workspace, which is completed.
        remarks: what the user may not have meant, of what is known by now.
        version: the format that the trace folder needs at least.

    Raises:
        DataFileError: a row breaks a rule, and may not be left out.
    """
    # Step 1: who has which row, when, and its class.
    root = request.root
    bad = BadRows(settings.skip_bad)
    keys = read(bad)
    pa.default_memory_pool().release_unused()
    rows = use_rows(keys, settings, bad.mask(keys.num_rows), root)
    refuse_names(() if isinstance(rows.clients, np.ndarray) else rows.clients, rows.classes)
    # Step 2: the features, row by row.
    encoder, statistics, shape, dtype, names = encode(keys, bad)
    notes = keys.notes
    del keys
    path = space.path / FEATURES
    progress = space.progress if path.exists() else {}
    done = int(progress.get("written", 0))
    with FeatureWriter(path, dtype, (len(rows), *shape), done, space.record) as writer:
        _write_features(shards, encoder, rows, statistics, writer, progress, request.watch)
        written = writer.finish()
        pa.default_memory_pool().release_unused()
        # Step 3: missing numbers become the mean, which is known now.
        if isinstance(statistics, OfNumbers) and statistics.has_missing:
            fill_missing(path, statistics, root)
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
        version=version if rows.expiry is None else 2,
        shape=shape,
        mean=tuple(mean.tolist()),
        deviation=tuple(deviation.tolist()),
        classes=rows.classes,
        origin=_origin(settings, root, names),
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
        notes=(
            *shards.notes,
            *remarks,
            *notes,
            *_remarks(settings, rows, good),
            *_notes(rows, bad, statistics, settings),
        ),
        play=_play(rows, settings),
    )


def _write_features(
    shards: Shards,
    encoder: Encoder,
    rows: UsedRows,
    statistics: Statistics,
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
        bad.causes = dict(progress["causes"])
    total = len(rows.keep)
    malformed = (lambda: True) if bad.most else None  # they have been counted
    for batch in shards.batches(encoder.types, encoder.rows, start, malformed, na_in=encoder.types):
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
                "causes": dict(bad.causes),
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


def _origin(settings: TableSettings, root: Path, names: tuple[str, ...]) -> str:
    columns = [f"{key} {name}" for key, name in settings.columns_of_keys().items()]
    if settings.client_from is not None:
        columns.insert(0, f"client_from {settings.client_from}")
    text = f"{root.name}: {', '.join(columns)}; features {', '.join(names)}"
    return text if len(text) <= MOST_ORIGIN else f"{text[:MOST_ORIGIN]}, ..."


def _remarks(settings: TableSettings, rows: UsedRows, good: np.ndarray) -> tuple[str, ...]:
    """What the user may not have meant, of the rows that are used."""
    has_rows, has_tests = (
        sizes_of(rows.client, len(rows.clients), where) > 0 for where in (good, good & (rows.split == TEST))
    )
    remedy: str | None = (
        f"raise --test-share ({settings.test_share:g}), leave small clients out with --min-samples, or say "
        f"with --split which rows are for tests"
    )
    if settings.split is not None:
        remedy = f"give them rows with test in column {settings.split!r}, or leave --split away"
    elif settings.test_share == 0:
        remedy = None
    untested = int((has_rows & ~has_tests).sum())
    return (*same_but_for_spaces(rows.classes), *on_clients(int(has_rows.sum()), untested, remedy))


def _notes(rows: UsedRows, bad: BadRows, statistics: Statistics, settings: TableSettings) -> tuple[str, ...]:
    remark = bad.remark()
    notes = [] if remark is None else [remark]
    unused = len(rows.keep) - len(rows) - len(bad)
    if unused > 0:
        notes.append(f"{unused} rows were left out by since, until, classes, min_samples, limit or count")
    if isinstance(statistics, OfNumbers):
        mean, deviation = statistics.finish()
        coarse = np.flatnonzero(np.abs(mean) > COARSE * deviation)
        constant, names = statistics.constant(), statistics.names
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
        notes.append("all rows are owned at the start; retain_rounds = 'all' keeps them to the end")
    return tuple(notes)


def _play(rows: UsedRows, settings: TableSettings) -> dict[str, object]:
    """Settings that fit: of ranks, data steps such that a client of median size has about fifty."""
    if rows.when == "step" and settings.step is None:
        return {**KEEPS_ALL}
    if rows.when != "order":
        return {}
    return {"step_width": max(1, int(np.median(sizes_of(rows.client, len(rows.clients)))) // 50)}
