"""Columns of tables: batches of their rows, their names, and texts as dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.errors import DataFileError
from emulator.storage.reading.bounds import MOST_COLUMNS

TEXT = pa.dictionary(pa.int32(), pa.string())
"""How columns of texts are read: each text once in a batch."""

NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
"""Cells of a CSV that stand for a missing number."""


Types: TypeAlias = "Mapping[str, pa.DataType]"
"""The columns that are read, with the types as which they are."""


class Batch(NamedTuple):
    """Some rows of a file: `first` is the number of the first one in its file, from 0 on."""

    path: Path
    first: int
    columns: Mapping[str, pa.Array[Any]]
    num_rows: int


def twice_in(names: Sequence[str]) -> frozenset[str]:
    """The names that occur more than once."""
    return frozenset(name for name, times in Counter(names).items() if times > 1)


def refuse_twice(path: Path, names: Iterable[str], twice: Collection[str]) -> None:
    """Raise DataFileError if one of the columns that are used occurs `twice` in the table."""
    used = next((name for name in names if name in twice), None)
    if used is not None:
        raise DataFileError(path, f"a column name occurs twice: {used!r}; rename one, or use neither")


def refuse_columns(path: Path, names: Sequence[str], *, unnamed_first: bool = False) -> None:
    """Raise DataFileError for too many columns, and for one without a name, which the first one may be."""
    if len(names) > MOST_COLUMNS:
        raise DataFileError(path, f"has {len(names)} columns; a table has at most {MOST_COLUMNS}")
    least = 2 if unnamed_first else 1
    blank = next((at for at, name in enumerate(names, 1) if at >= least and not name.strip()), None)
    if blank is not None:
        raise DataFileError(path, f"column {blank} has no name; give it one in the header, or leave it out")


def kinds_of(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types of columns; that of a dictionary of texts or numbers is that of its values, of a view a text.

    Other dictionaries are not decoded: one long value may be meant many times.
    """
    return {field.name: _values(field.type) for field in schema}


def _values(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):  # of which Arrow finds no distinct ones
        return pa.string()
    if not isinstance(kind, pa.DictionaryType):
        return kind
    values: pa.DataType = kind.value_type
    return values if is_text(values) or pa.types.is_primitive(values) else kind


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def as_text(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """A column, as a dictionary without other texts than its own if `kind` is one, else without one."""
    if not isinstance(column, pa.DictionaryArray):
        return column.dictionary_encode() if pa.types.is_dictionary(kind) else column
    if not pa.types.is_dictionary(kind):
        return column.dictionary_decode()
    if len(column.dictionary) <= len(column) and column.indices.type == pa.int32():
        return column
    # The dictionary of a row group comes with each of its batches: only what these rows use of it is kept.
    encoded = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, column.dictionary.take(encoded.dictionary))


def text_bytes(column: pa.Array[Any]) -> int:
    """The bytes of the distinct texts of a column; 0 of others."""
    if not isinstance(column, pa.DictionaryArray) or not len(column.dictionary):
        return 0
    return int(pc.sum(pc.binary_length(cast(Any, column.dictionary))).as_py() or 0)


def without(column: pa.Array[Any], texts: Collection[str]) -> pa.Array[Any]:
    """A column of texts as a dictionary, in which these texts, but for blanks around them, are missing."""
    if not isinstance(column, pa.DictionaryArray):
        return column
    dictionary: Any = pc.utf8_trim_whitespace(pc.cast(cast(Any, column.dictionary), pa.string()))
    is_missing: Any = pc.is_in(dictionary, value_set=pa.array(list(texts), pa.string()))
    if not pc.any(is_missing).as_py():
        return column
    is_kept: Any = pc.invert(is_missing.take(column.indices))
    return pa.DictionaryArray.from_arrays(
        pc.if_else(is_kept, column.indices, pa.scalar(None, column.indices.type)), column.dictionary
    )


def missing(column: pa.Array[Any]) -> np.ndarray:
    """(rows,) whether each value of a column is null."""
    return np.asarray(pc.is_null(column))
