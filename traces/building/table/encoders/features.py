"""The features of a table: which columns they are, and their values as rows of float32."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from traces.building.bad_rows import BadRows
from traces.building.sums import Moments
from traces.building.table.encoders.encoding import NUMBERS, Encoder, fill_missing
from traces.building.table.encoders.feature_columns import (
    FeatureColumns,
    expanded,
    feature_columns,
    refuse_image_settings,
    refuse_nested_one_hot,
)
from traces.building.table.encoders.vectors import batch_rows, is_vector, misfit, named_values, vectors_in
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
    _refuse_idle_na(shards, settings)
    keys = set(settings.columns_of_keys().values())
    names = settings.features
    if names is None:
        names = tuple(name for name in shards.kinds if name not in keys)
    path = shards.files[0]
    names = expanded(names, tuple(shards.kinds), frozenset(keys), str(path))
    for name in names:
        shards.refuse_unknown("features", name)
    for name in settings.one_hot:
        shards.refuse_unknown("one_hot", name)
        if name not in names:
            raise DataFileError(
                path, f"one_hot: column {name!r} is not among the features {', '.join(names)}"
            )
    if not names:
        raise DataFileError(
            path, f"has no feature: all its columns are something else: {', '.join(shards.kinds)}"
        )
    images = [name for name in names if is_image(shards.kinds[name])]
    if images and len(names) > 1:
        raise DataFileError(
            path,
            f"column {images[0]!r} holds images, and must be the only feature: give --features {images[0]}",
        )
    if not images:
        # A named column of a CSV of which bad rows are left out may have a text among its first numbers.
        named = settings.features is not None and shards.is_csv and settings.skip_bad > 0
        _refuse_others(shards, [name for name in names if name not in settings.one_hot], texts_too=named)
    refuse_image_settings(shards, settings, is_image=bool(images))
    refuse_nested_one_hot(shards, settings.one_hot)
    return feature_columns(shards, settings, names)


def _refuse_idle_na(shards: Shards, settings: TableSettings) -> None:
    """Raise DataFileError if texts stand for missing values, and there are no texts."""
    if settings.na and not (shards.is_csv or settings.one_hot or settings.na_everywhere):
        raise DataFileError(
            shards.files[0],
            f"--na: is about texts, and its features are none; numbers of {shards.format} are missing where "
            f"they are null or NaN: leave it out",
        )


def _refuse_others(shards: Shards, plain: list[str], *, texts_too: bool) -> None:
    """Raise DataFileError if one of these features, which are not `one_hot`, is not a column of numbers.

    With `texts_too`, texts are read as numbers.
    """
    path = shards.files[0]
    texts = [name for name in plain if is_text(shards.kinds[name])]
    if texts and not texts_too:
        found = _first_texts(shards, texts[:MOST_SHOWN])
        shown = ", ".join(f"{name} ({found[name]})" if name in found else name for name in texts)
        na = ", or give --na for texts that stand for a missing number" if shards.is_csv else ""
        raise DataFileError(
            path,
            f"features of text: {shown}; name the numbers with --features (and --skip-bad, to leave out rows "
            f"with a text among numbers), or make columns of the values with --one-hot{na}",
        )
    for name in plain:
        kind = shards.kinds[name]
        if name not in texts and not _is_numeric(kind) and not is_vector(kind):
            lists = ", or a list of as many numbers in every row" if pa.types.is_nested(kind) else ""
            raise DataFileError(path, f"column {name!r} is {kind}; a feature is a number{lists}")


def _first_texts(shards: Shards, names: Sequence[str]) -> dict[str, str]:
    """The first value of each of these columns that is no number, and its row; not of columns without one."""
    found: dict[str, str] = {}
    for batch in shards.batches(dict.fromkeys(names, TEXT), 2**16, malformed=lambda: True, na_in=names):
        for name in [name for name in names if name not in found]:
            column: Any = batch.columns[name]
            texts = column.dictionary.to_pylist()
            bad = [
                number
                for number, text in enumerate(texts)
                if text not in NO_VALUE and not re.match(_NUMBERS[shards.dialect.decimal], text)
            ]
            rows = np.flatnonzero(np.isin(np.asarray(column.indices.fill_null(-1)), bad))
            if len(rows):
                value = texts[column.indices[int(rows[0])].as_py()]
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


class Numbers(Encoder):
    """Encodes feature columns: a number is one float32, a vector or `one_hot` text as many as it has values.

    Attributes:
        names: The names of the encoded columns, (F,).
        shown: The same, with one name for all values of a vector.
        is_number: Whether each encoded column is a number, and so is standardised, (F,).
    """

    def __init__(
        self,
        shards: Shards,
        columns: FeatureColumns,
        categories: Mapping[str, tuple[str, ...]],
        missing: Missing,
        bad: BadRows,
    ) -> None:
        self.missing = missing
        self.bad = bad
        self._dialect = shards.dialect
        self._no_value = (*NO_VALUE, *shards.na)
        self._columns: list[tuple[str, int, dict[str, int] | None]] = []
        self._vectors = columns.vectors
        encoded: list[str] = []
        shown: list[str] = []
        is_number: list[bool] = []
        for name in columns.names:
            values, shape = categories.get(name), self._vectors.get(name)
            self._columns.append((name, len(encoded), None if values is None else _places(values)))
            own = [name] if values is None else [f"{name}={value}" for value in values]
            shown += own if shape is None else [f"{name} ({math.prod(shape)} values)"]
            own = own if shape is None else list(named_values(name, shape))
            encoded += own
            is_number += [values is None] * len(own)
        if not 0 < len(encoded) <= MOST_FEATURES:
            raise DataFileError(
                shards.files[0], f"comes to {len(encoded)} features; from 1 to {MOST_FEATURES} are supported"
            )
        self.names = tuple(encoded)
        self.shown = tuple(shown)
        self.is_number = np.array(is_number, dtype=np.bool_)
        self.types = {name: self._read_as(shards, name, places) for name, _, places in self._columns}
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
        unnumbered: list[tuple[str, Bools]] = []
        for name, first, places in self._columns:
            column = batch.columns[name]
            if name in self._vectors:
                self._set_vectors(block, name, column, first, batch, start, keep)
            elif places is None:
                with np.errstate(over="ignore"):
                    block[:, first] = self._numbers(name, column, unnumbered)
            else:
                self._set(block, name, column, first, places, batch, start, keep)
        for name, wrong in unnumbered:
            self.bad.refuse(batch, start, wrong & keep, partial(self._no_number, name, batch.columns[name]))
            block[wrong] = 0
        if not (np.abs(block) <= LARGEST).all():
            self._mend(block, batch, start, keep)
        return block if keep.all() else block[keep]

    def _read_as(self, shards: Shards, name: str, places: Mapping[str, int] | None) -> pa.DataType:
        kind = shards.kinds[name]
        if places is not None:
            return TEXT if shards.is_csv or is_text(kind) else kind
        if not shards.is_csv:
            return kind
        if self.bad.most:  # read as texts, so that the rows with a text that is no number can be told
            return pa.string()
        return kind if pa.types.is_boolean(kind) else pa.float32()

    def _numbers(self, name: str, column: Any, unnumbered: list[tuple[str, Bools]]) -> np.ndarray:
        """(rows,) a column as numbers; missing ones are NaN. Texts that are none go to `unnumbered`."""
        if is_text(column.type):
            texts: Any = pc.utf8_trim_whitespace(column)
            texts = pc.if_else(pc.is_in(texts, pa.array(self._no_value)), pa.scalar(None, pa.string()), texts)
            is_number: Any = pc.match_substring_regex(texts, _NUMBERS[self._dialect.decimal]).fill_null(True)
            unnumbered.append((name, ~np.asarray(is_number)))
            if self._dialect.decimal != ".":
                texts = pc.replace_substring(texts, self._dialect.decimal, ".")
            column = pc.cast(pc.if_else(is_number, texts, pa.scalar("0")), pa.float32())
        return _as_numbers(column)

    def _set_vectors(
        self,
        block: Floats32,
        name: str,
        column: pa.Array[Any],
        first: int,
        batch: Batch,
        start: int,
        keep: Bools,
    ) -> None:
        """Set the values of vectors in `block` (rows, F), whose columns begin at `first`."""
        shape = self._vectors[name]
        values, fits = vectors_in(column, shape)
        if not fits.all():
            self.bad.refuse(batch, start, ~fits & keep, partial(misfit, name, column, shape))
        size = math.prod(shape)
        with np.errstate(over="ignore"):
            block[fits, first : first + size] = _as_numbers(values).reshape(-1, size)

    def _no_number(self, name: str, texts: pa.Array[Any], row: int) -> str:
        return f"{name} = {texts[row].as_py()!r}: must be {self._dialect.number}"

    def _set(
        self,
        block: Floats32,
        name: str,
        column: pa.Array[Any],
        first: int,
        places: Mapping[str, int],
        batch: Batch,
        start: int,
        keep: Bools,
    ) -> None:
        """Set the ones of a `one_hot` feature in `block` (rows, F), whose columns begin at `first`."""
        if not isinstance(column, pa.DictionaryArray):
            column = pc.cast(column, pa.string()).dictionary_encode()
        texts = pc.utf8_trim_whitespace(pc.cast(column.dictionary, pa.string())).to_pylist()
        place = np.array([places.get(text or "", -1) for text in texts] + [-1], dtype=np.int64)
        codes = place[np.asarray(column.indices.fill_null(-1)).astype(np.int64)]
        if self.missing == "refuse":
            self.bad.refuse(batch, start, (codes < 0) & keep, lambda row: _missing(name))
        known = np.flatnonzero(codes >= 0)
        block[known, first + codes[known]] = 1

    def _mend(self, block: Floats32, batch: Batch, start: int, keep: Bools) -> None:
        """Refuse or fill what is not finite in `block` (rows, F), or larger than a mean may be."""
        absent = np.isnan(block)
        wrong = ~(np.abs(block) <= LARGEST) if self.missing == "refuse" else np.abs(block) > LARGEST

        def problem(row: int) -> str:
            column = int(np.flatnonzero(wrong[row])[0])
            name = self.names[column]
            if absent[row, column]:
                return _missing(name)
            return f"{name} is not finite: infinity, or a number beyond {LARGEST:g}"

        self.bad.refuse(batch, start, wrong.any(axis=1) & keep, problem)
        block[wrong.any(axis=1)] = 0
        if self.missing == "zero":
            block[absent] = 0


def _as_numbers(column: Any) -> np.ndarray:
    """(rows,) a column of numbers; missing ones are NaN."""
    if column.null_count or not pa.types.is_primitive(column.type) or pa.types.is_boolean(column.type):
        column = pc.cast(pc.cast(column, pa.float64(), safe=False), pa.float32(), safe=False)
        column = column.to_numpy(zero_copy_only=False)
    return np.asarray(column)


def _places(values: tuple[str, ...]) -> dict[str, int]:
    return {value: place for place, value in enumerate(values)}


def _missing(name: str) -> str:
    return f"{name} is missing; give --missing mean or --missing zero to fill it"


def _is_numeric(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )
