"""The features of a table: which columns they are, and their values as rows of float32."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools, Floats32
from emulator.errors import DataFileError
from emulator.numbers import LARGEST
from emulator.storage.reading.columns import NO_VALUE, is_text
from emulator.storage.reading.shards import TEXT, Batch, Shards
from traces.building import rules
from traces.building.bad_rows import BadRows
from traces.building.sums import Moments
from traces.building.table.encoders.encoding import NUMBERS, Encoder, fill_missing
from traces.building.table.encoders.feature_columns import FeatureColumns, expanded, feature_columns
from traces.building.table.encoders.vectors import batch_rows, is_vector, named_values, vectors_in
from traces.building.table.key_columns import coded, is_number
from traces.building.table.settings import Missing, TableSettings
from traces.files.features import channels

VALUES = 2**20
"""Values of a batch of features: four megabytes, which caches hold."""

FEWEST_ROWS = 64

MOST_FEATURES = 2**14

MOST_SHOWN, MOST_LETTERS = 8, 50  # columns of texts of which a value is shown, and letters of it

_NUMBERS = {mark: rf"^[+-]?([0-9]+[{mark}]?[0-9]*|[{mark}][0-9]+)([eE][+-]?[0-9]+)?$" for mark in (".", ",")}
"""Patterns of numbers, by their decimal point."""


def chosen_features(shards: Shards, settings: TableSettings) -> FeatureColumns:
    """The feature columns, checked: numbers, vectors, `one_hot` features, or one column of images.

    Raises:
        DataFileError: there is none, or one is neither; the message names all texts.
        UnknownNameError: one does not exist.
    """
    path = shards.files[0]
    if settings.na and not (shards.is_csv or settings.one_hot or settings.na_everywhere):
        raise DataFileError(
            path,
            f"--na: is about texts, and its features are none; numbers of {shards.format} are missing where "
            f"they are null or NaN: leave it out",
        )
    keys = set(settings.columns_of_keys().values())
    names = settings.features
    if names is None:
        names = tuple(name for name in shards.kinds if name not in keys)
    names = expanded(names, tuple(shards.kinds), keys, str(path))
    for problem in _problems(shards, settings, names):
        raise DataFileError(path, problem)
    return feature_columns(shards, settings, names)


def _problems(shards: Shards, settings: TableSettings, names: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with these features; UnknownNameError for one that does not exist."""
    for name in names:
        shards.refuse_unknown("features", name)
    for name in settings.one_hot:
        shards.refuse_unknown("one_hot", name)
        if name not in names:
            yield f"one_hot: column {name!r} is not among the features {', '.join(names)}"
    if not names:
        yield f"has no feature: all its columns are something else: {', '.join(shards.kinds)}"
    images = [name for name in names if is_image(shards.kinds[name])]
    if images and len(names) > 1:
        yield f"column {images[0]!r} holds images, and must be the only feature: give --features {images[0]}"
    if images and settings.shape is not None:
        yield "shape: is for numbers; encoded images become --size"
    if not images:
        yield from _problems_of_numbers(shards, settings, names)
    for name in settings.one_hot:
        if pa.types.is_nested(shards.kinds[name]):
            yield f"one_hot: column {name!r} is {shards.kinds[name]}; it must hold texts or numbers"


def _problems_of_numbers(shards: Shards, settings: TableSettings, names: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with features that are no images: one is no number or vector, and not `one_hot`."""
    plain = [name for name in names if name not in settings.one_hot]
    texts = [name for name in plain if is_text(shards.kinds[name])]
    # A named column of a CSV of which bad rows are left out may have a text among its first numbers.
    if texts and not (settings.features is not None and shards.is_csv and settings.skip_bad > 0):
        found = _first_texts(shards, texts[:MOST_SHOWN])
        shown = ", ".join(f"{name} ({found[name]})" if name in found else name for name in texts)
        na = ", or give --na for texts that stand for a missing number" if shards.is_csv else ""
        yield (
            f"features of text: {shown}; name the numbers with --features (and --skip-bad, to leave out rows "
            f"with a text among numbers), or make columns of the values with --one-hot{na}"
        )
    for name in plain:
        kind = shards.kinds[name]
        if not (is_text(kind) or pa.types.is_null(kind) or is_number(kind) or is_vector(kind)):
            lists = ", or a list of as many numbers in every row" if pa.types.is_nested(kind) else ""
            yield f"column {name!r} is {kind}; a feature is a number{lists}"
    for key in ("grey", "upright"):
        if getattr(settings, key):
            yield f"{key}: is for a column of encoded images, and there is none"


def _first_texts(shards: Shards, names: Sequence[str]) -> dict[str, str]:
    """The first value of each of these columns that is no number, and its row; not of columns without one."""
    found: dict[str, str] = {}
    as_number = re.compile(_NUMBERS[shards.dialect.decimal])
    for batch in shards.batches(dict.fromkeys(names, TEXT), 2**16, malformed=lambda: True, na_in=names):
        for name in set(names) - set(found):
            column: Any = batch.columns[name]
            texts = [*column.dictionary.to_pylist(), ""]
            is_bad = np.array([text not in NO_VALUE and not as_number.match(text) for text in texts])
            rows = np.flatnonzero(is_bad[np.asarray(column.indices.fill_null(-1))])
            if len(rows):
                value = column[int(rows[0])].as_py()
                found[name] = f"{value[:MOST_LETTERS]!r} in row {batch.first + int(rows[0]) + 1}"
        if len(found) == len(names):
            break
    return found


def is_image(kind: pa.DataType) -> bool:
    """Whether a column of this type holds encoded images: bytes, or a struct with such a field `bytes`."""
    if pa.types.is_struct(kind):
        fields: Any = kind
        return fields.get_field_index("bytes") >= 0 and is_image(fields.field("bytes").type)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


Categories = Mapping[str, tuple[str, ...]]


class Numbers(Encoder):
    """Encodes feature columns: a number is one float32, a vector or `one_hot` text as many as it has values.

    Attributes:
        names: The names of the encoded columns, (F,).
        shown: The same, with one name for all values of a vector.
        is_number: Whether each encoded column is a number, and so is standardised, (F,).
    """

    def __init__(
        self, shards: Shards, columns: FeatureColumns, categories: Categories, missing: Missing, bad: BadRows
    ) -> None:
        self.missing = missing
        self.bad = bad
        self._dialect = shards.dialect
        self._no_value = (*NO_VALUE, *shards.na)
        self._vectors = columns.vectors
        self._places = {name: {text: at for at, text in enumerate(own)} for name, own in categories.items()}
        self._first: dict[str, int] = {}  # where each column begins among the encoded ones
        encoded: list[str] = []
        shown: list[str] = []
        is_number: list[bool] = []
        for name in columns.names:
            values, shape = categories.get(name), self._vectors.get(name)
            self._first[name] = len(encoded)
            own = [name] if values is None else [f"{name}={value}" for value in values]
            own = own if shape is None else list(named_values(name, shape))
            shown += own if shape is None else [f"{name} ({len(own)} values)"]
            encoded += own
            is_number += [values is None] * len(own)
        if not 0 < len(encoded) <= MOST_FEATURES:
            raise DataFileError(
                shards.files[0], f"comes to {len(encoded)} features; from 1 to {MOST_FEATURES} are supported"
            )
        self.names = tuple(encoded)
        self.shown = tuple(shown)
        self.is_number = np.array(is_number, dtype=np.bool_)
        self.types = {name: self._read_as(shards, name) for name in columns.names}
        self.shape, self.dtype = columns.shape or (len(encoded),), NUMBERS
        self.rows = batch_rows(len(encoded)) if self._vectors else max(FEWEST_ROWS, VALUES // len(encoded))

    def standardised(self, moments: Moments) -> tuple[tuple[str, ...], Moments, Bools]:
        """Numbers, but not zeros and ones; of those that make an image, its channels."""
        if len(self.shape) == 1:
            return self.names, moments, self.is_number
        number = channels(self.shape)
        names = tuple(f"channel {place}" for place in range(1, number + 1))
        return names, moments.merged(number), np.ones(number, np.bool_)

    def finish(self, path: Path, sums: Moments, root: Path) -> tuple[np.ndarray, np.ndarray]:
        if self.missing == "mean":
            fill_missing(path, sums, self.names, root)
        return super().finish(path, sums, root)

    def encode(self, batch: Batch, start: int, keep: Bools) -> Floats32:
        """Encode a batch.

        Args:
            batch: the rows, of which the first is number `start` of the table.
            start: number of the first row.
            keep: (rows,) which rows are used; values of others are not looked at.

        Returns:
            (kept rows, F) the features; NaN where one is missing and is to become the mean. Bad rows, if they
            may be left out, are zero.

        Raises:
            DataFileError: a value is missing or not finite.
        """
        block = np.zeros((batch.num_rows, len(self.names)), dtype=np.float32)
        keeps = partial(rules.keep, bad=self.bad, batch=batch, start=start, among=keep)
        unnumbered: list[rules.Cells] = []
        for name, first in self._first.items():
            column, shape = batch.columns[name], self._vectors.get(name)
            if name in self._places:
                texts, codes = coded(column)
                places = np.array([self._places[name].get(text, -1) for text in texts.to_pylist()])[codes]
                if self.missing == "refuse":
                    keeps(rules.CATEGORIES, rules.Cells(name=name, is_missing=places < 0))
                known = np.flatnonzero(places >= 0)
                block[known, first + places[known]] = 1
            elif shape is None:
                if is_text(column.type):
                    column, fits = self._from_text(column)
                    unnumbered.append(rules.Cells(name=name, value=batch.columns[name], is_number=fits))
                with np.errstate(over="ignore"):
                    block[:, first] = _as_numbers(column)
            else:
                values, cells = vectors_in(name, column, shape)
                if not cells.fits.all():
                    keeps(rules.VECTORS, cells)
                with np.errstate(over="ignore"):
                    size = math.prod(shape)
                    block[cells.fits, first : first + size] = _as_numbers(values).reshape(-1, size)
        for cells in unnumbered:
            cells.number = self._dialect.number
            keeps(rules.WRITTEN_NUMBERS, cells)
            block[~cells.is_number] = 0
        if not (np.abs(block) <= LARGEST).all():
            cells = rules.Cells(
                name=lambda cell: self.names[cell[1]], value=block, is_needed=self.missing == "refuse"
            )
            block[~keeps(rules.FEATURES, cells)] = 0
            if self.missing == "zero":
                block[np.isnan(block)] = 0
        return block if keep.all() else block[keep]

    def _read_as(self, shards: Shards, name: str) -> pa.DataType:
        kind = shards.kinds[name]
        if name in self._places:
            return TEXT if shards.is_csv or is_text(kind) else kind
        if not shards.is_csv:
            return kind
        if self.bad.most:  # read as texts, so that the rows with a text that is no number can be told
            return pa.string()
        return kind if pa.types.is_boolean(kind) else pa.float32()

    def _from_text(self, column: Any) -> tuple[pa.Array[Any], Bools]:
        """The numbers (rows,) that texts are, null if they are missing, and whether they are none (rows,)."""
        texts: Any = pc.utf8_trim_whitespace(column)
        texts = pc.if_else(pc.is_in(texts, pa.array(self._no_value)), pa.scalar(None, pa.string()), texts)
        is_number: Any = pc.match_substring_regex(texts, _NUMBERS[self._dialect.decimal]).fill_null(True)
        if self._dialect.decimal != ".":
            texts = pc.replace_substring(texts, self._dialect.decimal, ".")
        numbers: Any = pc.cast(pc.if_else(is_number, texts, pa.scalar("0")), pa.float32())
        return numbers, np.asarray(is_number)


def _as_numbers(column: Any) -> np.ndarray:
    """(rows,) a column of numbers; missing ones are NaN."""
    if column.null_count or not pa.types.is_primitive(column.type) or pa.types.is_boolean(column.type):
        column = pc.cast(pc.cast(column, pa.float64(), safe=False), pa.float32(), safe=False)
        column = column.to_numpy(zero_copy_only=False)
    return np.asarray(column)
