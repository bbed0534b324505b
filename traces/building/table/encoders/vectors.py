"""Columns of vectors: lists of numbers of one length, or lists of such lists, as images are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import Bools
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Shards, missing
from traces.building.rules import Cells
from traces.building.table.key_columns import is_number

MOST_VALUES = 2**14
"""Most values of a vector."""

VALUES = 2**16
"""Values of a batch of vectors that are read: fewer than of numbers, as rows of a hostile file are longer."""

FEWEST_ROWS = 8

_TRIED = 100
"""First rows of which one must have a vector."""

Shape = tuple[int, ...]


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type has lists of numbers, or of lists of numbers.

    >>> is_vector(pa.list_(pa.float32())), is_vector(pa.list_(pa.string())), is_vector(pa.float32())
    (True, False, False)
    """
    leaf: Any = kind
    while _is_list(leaf):
        leaf = leaf.value_type
    return leaf is not kind and is_number(leaf)


def vector_shapes(shards: Shards, names: Iterable[str]) -> Mapping[str, Shape]:
    """The shapes of the vectors in those of these columns that have vectors: as of the first one.

    Raises DataFileError if there is none among the first rows, or if it has too many values.
    """
    return {name: _shape_of(shards, name) for name in names if is_vector(shards.kinds[name])}


def batch_rows(num_values: int) -> int:
    """Rows of that many values to read at once."""
    return max(FEWEST_ROWS, VALUES // num_values)


def vectors_in(name: str, column: pa.Array[Any], shape: Shape) -> tuple[pa.Array[Any], Cells]:
    """The values of a column of vectors, whose offsets have been validated.

    Returns:
        The values one after the other, of the rows that have the shape; and what the rules of vectors look
        at, of which `fits` (rows,) says which rows these are.
    """
    fits = _fits(column, shape)
    values = column if fits.all() else column.filter(pa.array(fits))
    for _ in shape:
        values = _inner(values)
    found = partial(_other, column, shape)
    return values, Cells(name=name, is_missing=missing(column), fits=fits, size=_product(shape), found=found)


def _other(column: pa.Array[Any], shape: Shape, row: int) -> str:
    """The list in a row of a column that does not have the shape."""
    piece: pa.Array[Any] = column.slice(row, 1)
    for depth, size in enumerate(shape):
        lengths = _lengths(piece)
        other = lengths[lengths != size]
        if len(other):
            found = "nothing" if other[0] < 0 else str(other[0])
            return f"{'a list with ' * (depth > 0)}a list of {found}"
        piece = _inner(piece)
    raise AssertionError(f"row {row} fits")


def named_values(name: str, shape: Shape) -> Iterator[str]:
    """The names of the values of a vector.

    >>> list(named_values("x", (2,))), list(named_values("x", (1, 2)))
    (['x[0]', 'x[1]'], ['x[0,0]', 'x[0,1]'])
    """
    for index in np.ndindex(shape):
        yield f"{name}[{','.join(map(str, index))}]"


def _shape_of(shards: Shards, name: str) -> Shape:
    kind: Any = shards.kinds[name]
    fixed: list[int] = []
    while pa.types.is_fixed_size_list(kind):
        fixed.append(int(kind.list_size))
        kind = kind.value_type
    if fixed and not _is_list(kind):
        return _checked(shards.files[0], name, tuple(fixed), None)
    tried = 0
    batches = shards.batches({name: shards.kinds[name]}, 1)
    rows = ((batch, row) for batch in batches for row in range(batch.num_rows))
    for batch, row in islice(rows, _TRIED):
        tried += 1
        shape = _found(batch.columns[name].slice(row, 1))
        if shape is not None:
            return _checked(batch.path, name, shape, batch.first + row + 1)
    raise DataFileError(
        shards.files[0],
        f"column {name!r}: none of its first {tried} rows has a vector, whose length would be that of all",
    )


def _found(row: pa.Array[Any]) -> Shape | None:
    """The shape of one row of vectors; None if it has none: a list is missing or empty, or lengths differ."""
    shape: list[int] = []
    while _is_list(row.type):
        lengths = _lengths(row)
        if len(lengths) == 0 or lengths[0] < 1 or (lengths != lengths[0]).any():
            return None
        shape.append(int(lengths[0]))
        row = _inner(row)
    return tuple(shape)


def _checked(path: Path, name: str, shape: Shape, row: int | None) -> Shape:
    if not 0 < math.prod(shape) <= MOST_VALUES:
        raise DataFileError(
            path,
            f"column {name!r} has vectors of {_product(shape)} values; from 1 to {MOST_VALUES} are supported",
            row,
        )
    return shape


def _fits(column: pa.Array[Any], shape: Shape) -> Bools:
    """(rows,) whether each row has the shape."""
    fits: Bools = _lengths(column) == shape[0]
    if len(shape) > 1 and fits.any():
        kept = column if fits.all() else column.filter(pa.array(fits))
        fits[fits] = _fits(_inner(kept), shape[1:]).reshape(-1, shape[0]).all(axis=1)
    return fits


def _lengths(column: pa.Array[Any]) -> np.ndarray:
    """(rows,) the length of each list; -1 for one that is missing."""
    return np.asarray(pc.list_value_length(column).fill_null(-1))


def _inner(column: Any) -> pa.Array[Any]:
    """The elements of all lists, without those behind a missing one."""
    inner: pa.Array[Any] = column.flatten()
    return inner


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _product(shape: Shape) -> str:
    return " x ".join(map(str, shape))
