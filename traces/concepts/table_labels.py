"""Conversion of the label column of several tables to classes 0 .. L-1."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError
from emulator.storage.tables import TableFile

MAX_LABELS = 2**15
"""Most classes of a trace, which stores a label in 16 bits."""


def class_labels(tables: list[TableFile], name: str) -> tuple[Ints, list[Any]]:
    """(rows of all tables,) each label's rank among the distinct labels of all tables, and these in order.

    Numbers rank as numbers, texts as texts. DataFileError for a column of another kind than the first
    table's, or more than MAX_LABELS distinct values.

    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> tables = [TableFile(Path("a.csv"), pa.table({"y": labels})) for labels in (["no", "yes"], ["maybe"])]
    >>> class_labels(tables, "y")
    (array([1, 2, 0]), ['maybe', 'no', 'yes'])
    """
    columns = [table.values(name) for table in tables]
    kind = _kind(columns[0][0])
    for table, values in zip(tables, columns, strict=True):
        if _kind(values[0]) != kind:
            raise DataFileError(
                table.path,
                f"labels in column {name!r} are of kind {_kind(values[0])}, and in {tables[0].path} of kind "
                f"{kind}; the tables of all concepts have labels of one kind",
            )
    distinct = sorted(set().union(*columns))
    if len(distinct) > MAX_LABELS:
        raise DataFileError(
            tables[0].path,
            f"column {name!r} has {len(distinct)} distinct values in all tables together, and there can be "
            f"at most {MAX_LABELS} labels; trace.concepts.label names the column",
        )
    rank = {value: index for index, value in enumerate(distinct)}
    ranks = [rank[value] for values in columns for value in values]
    return np.array(ranks, dtype=np.int64), distinct


def _kind(value: Any) -> str:
    """'number' for whole and other numbers, which compare with each other; otherwise the type's name."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__
