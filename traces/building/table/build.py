"""The builder `table`: a trace folder of any table of features, from CSV, Parquet or Arrow.

Two passes over the files. The first one reads the columns that say who has a row, when, and its class, and
decides which rows are used. The second one streams the features, in the order of the files. Besides these
columns only a batch of rows is in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.errors import DataFileError, InputError
from emulator.storage.reading.files import OR_A_FOLDER
from emulator.storage.reading.shards import Shards
from emulator.storage.table_paths import format_of
from traces.building.bad_rows import BadRows
from traces.building.base import KEEPS_ALL, Builder, Built, Request, Watch
from traces.building.folder import Told, write_folder
from traces.building.names import refuse_names
from traces.building.remarks import STANDARDISED, TAKEN_IDS, renumbered, taken_features
from traces.building.rows import Rows
from traces.building.sums import Sums
from traces.building.table.choosing import refuse_test_only, use_rows
from traces.building.table.class_names import class_names, numbered
from traces.building.table.encoders.encoding import Encoder
from traces.building.table.encoders.features import Numbers, chosen_features, is_image
from traces.building.table.encoders.images import Images
from traces.building.table.file_clients import shards_of
from traces.building.table.keys import read_keys, refuse_types
from traces.building.table.settings import TableSettings
from traces.building.table.targets import refuse_unlabelled
from traces.building.workspace import Workspace, workspace
from traces.building.writing import Block, Made, Values
from traces.files.facts import TokenFacts
from traces.files.features import ids_below
from traces.ordering import sizes_of

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
        refuse_unlabelled(settings)
        shards, clients, notes = shards_of(request.root, settings)
        refuse_types(shards, settings)
        columns = chosen_features(shards, settings)
        first = columns.names[0]
        own = None if settings.num_classes is None else tuple(map(str, range(settings.num_classes)))
        names = None if settings.label is None or own else class_names(shards, settings.label)
        notes += [taken_features(columns.names)] if settings.features is None else []
        options = settings.model_dump(mode="json", exclude={"most_cells"})
        plan = {"kind": "table", "settings": options, "files": shards.digest()}
        if clients is not None:
            plan["client of a file"] = list(clients.values())

        def read(bad: BadRows) -> tuple[Rows, Encoder]:
            rows, categories = read_keys(shards, settings, bad, clients, names)
            rows = replace(rows, notes=(*notes, *rows.notes))
            rows = numbered(rows, settings.label, own, request.root) if own else rows
            if is_image(shards.kinds[first]) and first not in settings.one_hot:
                return rows, Images(shards, first, settings, bad)
            return rows, Numbers(shards, columns, categories, settings.missing, bad)

        # After an InputError the same command will not succeed: nothing is kept for it.
        with workspace(request.out, plan, fresh=request.fresh, nothing_after=InputError) as space:
            return write_trace(settings, shards, read, request, space, version=1 if names is None else 2)


def write_trace(
    settings: TableSettings,
    shards: Shards,
    read: Callable[[BadRows], tuple[Rows, Encoder]],
    request: Request,
    space: Workspace,
    version: Literal[1, 2] = 1,
    objective: Mapping[str, Any] | None = None,
) -> Built:
    """Write a trace folder of a table in `space`, from where an earlier attempt came to.

    Args:
        settings: which rows are used.
        shards: the table.
        read: reads the columns that are no features, counts bad rows, and says how features are written.
        request: the table, for messages, and where to report.
        space: the workspace, which is completed.
        version: the format that the trace folder needs at least.
        objective: what the trace states that models are trained on; None: labels.

    Raises:
        DataFileError: a row breaks a rule, and may not be left out.
    """
    root, bad = request.root, BadRows(settings.skip_bad)
    rows, encoder = read(bad)
    pa.default_memory_pool().release_unused()
    rows, keep, weight = use_rows(rows, settings, bad.mask(len(rows)), root)
    refuse_names(() if isinstance(rows.clients, np.ndarray) else rows.clients, rows.classes)
    tokens = settings.tokens
    if tokens is not None and len(encoder.shape) != 1:
        raise DataFileError(
            root, f"samples of shape {encoder.shape} are no texts: tokens are sequences of ids"
        )
    values = TableValues(shards, encoder, rows, keep, weight, root, tokens)

    def tell(good: Bools, sums: Any) -> Told:
        notes = [*filter(None, [bad.remark()])]
        unused = len(keep) - len(rows) - len(bad)
        if unused > 0:
            notes.append(f"{unused} rows were left out by since, until, classes, min_samples, limit or count")
        notes += renumbered(rows.classes, "; --num-classes keeps all numbers" if objective is None else "")
        notes += [*encoder.notes(sums), STANDARDISED] if tokens is None else [TAKEN_IDS]
        play: Mapping[str, object] = {}
        if rows.when == "order":  # data steps such that a client of median size has about fifty
            play = {"step_width": max(1, int(np.median(sizes_of(rows.client, len(rows.clients)))) // 50)}
        elif rows.when == "step" and settings.step is None:
            play = KEEPS_ALL
            notes.append("all rows are owned at the start; retain_rounds = 'all' keeps them to the end")
        num_bytes = len(rows) * math.prod(encoder.shape) * encoder.dtype.itemsize
        origin, needed = _origin(settings, root, encoder.shown), version if rows.expiry is None else 2
        built = {"left_out": len(bad), "num_bytes": num_bytes, "play": play}
        facts = {"origin": origin, "version": needed, "tokens": tokens, "objective": objective}
        return Told(facts, built, _remedy(settings), notes=tuple(notes))

    return write_folder(space, rows, values, request, tell)


@dataclass
class TableValues(Values):
    """The features of the rows of a table to `keep` (rows of the table,), read in its order.

    `weight` (n,) is how often each of these rows counts in mean and deviation. Those of `tokens`
    are their ids, of which another one ends the build.
    """

    shards: Shards
    encoder: Encoder
    rows: Rows
    keep: Bools
    weight: np.ndarray
    root: Path
    tokens: TokenFacts | None = None

    def __post_init__(self) -> None:
        self.shape, self.dtype, self.total = self.encoder.shape, self.encoder.dtype, len(self.keep)
        self._bad = self.encoder.bad

    def blocks(self, done: int) -> Iterator[Block]:
        """Read batches of rows behind the first `done` ones of the table."""
        types, first = self.encoder.types, int(np.count_nonzero(self.keep[:done]))
        malformed = (lambda: True) if self._bad.most else None  # they have been counted
        for batch in self.shards.batches(types, self.encoder.rows, done, malformed, na_in=types):
            keep = self.keep[done : done + batch.num_rows]
            rows = np.arange(first, first + int(np.count_nonzero(keep)))
            yield Block((batch, done, keep, rows), batch.num_rows)
            done, first = done + batch.num_rows, first + len(rows)

    def make(self, block: Block) -> Made:
        """Encode a batch; bad rows count in no mean."""
        batch, start, keep, rows = block.content
        values = self.encoder.encode(batch, start, keep)
        if self.tokens is not None:
            numbers = np.arange(start, start + batch.num_rows)[keep]
            ids_below(self.tokens.vocabulary).refuse(self.root, values, numbers)
        weight = self.weight[rows]
        if self._bad.rows:
            numbers = np.arange(start, start + batch.num_rows)[keep]
            weight = np.where(np.isin(numbers, self._bad.numbers()), 0, weight)
        return Made(rows, values, self.encoder.sums(values, weight))

    def take_bad(self, bad: None, watch: Watch) -> None:
        """Nothing: bad rows are counted as they are met."""

    def bad_as_json(self) -> dict[str, Any]:
        return self._bad.as_json()

    def restore_bad(self, state: Mapping[str, Any]) -> None:
        self._bad.restore(state)

    def no_sums(self) -> Sums:
        return self.encoder.no_sums()

    def finish(self, path: Path, sums: Any) -> tuple[np.ndarray, np.ndarray]:
        pa.default_memory_pool().release_unused()
        return self.encoder.finish(path, sums, self.root)

    def good(self) -> Bools:
        """(n,) whether each row is in the trace: its features can be used."""
        good = ~self._bad.mask(self.total)[self.keep]
        if not good.any():
            raise DataFileError(
                self.root, f"no row of it is good: {len(self._bad)} have features that cannot be used"
            )
        refuse_test_only(self.rows, self.root, good)
        return good


def _origin(settings: TableSettings, root: Path, names: tuple[str, ...]) -> str:
    columns = [f"{key} {name}" for key, name in settings.columns_of_keys().items()]
    if settings.client_from is not None:
        columns.insert(0, f"client_from {settings.client_from}")
    text = f"{root.name}: {', '.join(columns)}; features {', '.join(names)}"
    return text if len(text) <= MOST_ORIGIN else f"{text[:MOST_ORIGIN]}, ..."


def _remedy(settings: TableSettings) -> str | None:
    """What gives clients without test samples some; None if they are not wanted."""
    if settings.split is not None:
        return f"give them rows with test in column {settings.split!r}, or leave --split away"
    if settings.test_share == 0:
        return None
    return (
        f"raise --test-share ({settings.test_share:g}), leave small clients out with --min-samples, or say "
        f"with --split which rows are for tests"
    )
