"""The column `expiry` of `arrivals.parquet`: until when a client holds a sample. It is of version 2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emulator.arrays import NO_IDS, Ints
from emulator.errors import DataFileError
from emulator.storage.parquet_columns import OUT_OF_RANGE, ParquetColumns, microseconds_of
from traces.ordering import pieces, rows_in_order
from traces.tables.sorted import are_in_order

EXPIRY = "expiry"

VERSION = 2
"""The version of the format in which a folder may have the column."""

LEAST_STEP, MOST_STEP = 1 - 2**31, 2**31 - 2
"""The least and the largest step or rank of an expiry; one more stands for none."""


def never(expiry: np.ndarray) -> int:
    """The value of an expiry of that type that stands for none: the sample is held to the end."""
    return int(np.iinfo(expiry.dtype).max)


def type_rule(table: ParquetColumns, when: str | None) -> str | None:
    """What is wrong with the type of the column, beside the column `when`; None if it is right."""
    kind = table.kind(EXPIRY)
    if pa.types.is_null(kind):
        return None
    if when == "time":
        return None if table.is_time(EXPIRY) else "; it must hold dates or timestamps, as 'time' does"
    if when is not None and not pa.types.is_integer(kind):
        return f"; it must hold whole numbers, as {when!r} does"
    return None


def read_expiry(table: ParquetColumns, when: str) -> np.ndarray:
    """Read the column in the unit of the column `when`.

    Returns:
        (rows,) microseconds as int64, or steps or ranks as int32; `never` where the column is null.

    Raises:
        DataFileError: a value is out of range; the message has the row.
    """
    expiry = np.empty(table.num_rows, np.int64 if when == "time" else np.int32)
    for first, values, outside, text in _pieces(table, when):
        if outside.any():
            row = int(outside.argmax())
            raise DataFileError(table.path, out_of_range(text[row], when), row=first + row + 1)
        expiry[first : first + len(values)] = values
    return expiry


def rows_out_of_range(table: ParquetColumns, when: str) -> Iterator[tuple[int, str]]:
    """The rows, from 0, whose expiry is out of range, each with what is wrong."""
    for first, _, outside, text in _pieces(table, when):
        for row in np.flatnonzero(outside).tolist():
            yield first + row, out_of_range(text[row], when)


def out_of_range(value: int, when: str) -> str:
    if when == "time":
        return f"{EXPIRY} {OUT_OF_RANGE}"
    return f"{EXPIRY} = {value}: must be from {LEAST_STEP} to {MOST_STEP}, or null for never"


def never_held(at: np.ndarray, expiry: np.ndarray) -> Ints:
    """The rows that expire before they arrive, or as they do; `at` and `expiry` are (rows,)."""
    found = [piece.start + np.flatnonzero(expiry[piece] <= at[piece]) for piece in pieces(len(at))]
    return np.concatenate([np.zeros(0, np.int64), *found])


def not_after(at: int, expiry: int, when: str) -> str:
    return f"{EXPIRY} = {shown(expiry, when)}: must be after the arrival, {when} = {shown(at, when)}"


def out_of_turn(
    client: np.ndarray,
    split: np.ndarray | None,
    at: np.ndarray,
    expiry: np.ndarray,
    count: np.ndarray | None = None,
) -> tuple[Ints, Ints]:
    """Rows (n,) that expire before a row of their client and split that arrives earlier, and (n,) that row.

    Rows that arrive together may expire in any order. Without `split` (rows,), which is drawn then, all rows
    of a client are taken together; rows of which `count` (rows,) is 0 are left out.
    """
    whose = (client,) if split is None else (client, split)
    if are_in_order(*whose, at, expiry) and are_in_order(*whose, expiry):
        return NO_IDS, NO_IDS
    order = rows_in_order(*whose, at, expiry)
    if count is not None:
        order = order[count[order] > 0]
    later, earlier = order[1:], order[:-1]
    falls = expiry[later] < expiry[earlier]
    for column in whose:
        falls &= column[later] == column[earlier]
    return later[falls].astype(np.int64), earlier[falls].astype(np.int64)


def before_its_turn(client: str, at: tuple[int, int], expiry: tuple[int, int], row: int, when: str) -> str:
    """What is wrong with a row and an earlier one, `row`, whose arrivals are `at` and expiries `expiry`."""
    these, those = (shown(value, when) for value in expiry)
    return (
        f"{EXPIRY} = {these}: client {client} must hold the samples of a split in the order in which they "
        f"arrive, but row {row}, {when} = {shown(at[1], when)} and earlier than {shown(at[0], when)} here, "
        f"expires later, at {those}"
    )


def refuse_version(path: Path, version: int) -> None:
    """Raise DataFileError if a folder of that version must not have the column; `path` is its arrivals."""
    if version < VERSION:
        raise DataFileError(
            path,
            f"column {EXPIRY!r} is of version {VERSION} of the format, and trace.toml has version = "
            f"{version}; set it to {VERSION}",
        )


def shown(value: int, when: str) -> str:
    """A step or a rank as it is, a time in ISO 8601; "never" for none."""
    if value >= (2**63 - 1 if when == "time" else MOST_STEP + 1):
        return "never"
    return str(np.datetime64(int(value), "us")).removesuffix(".000000") if when == "time" else str(value)


def _pieces(table: ParquetColumns, when: str) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """The first row of each piece, its values (k,), whether they are out of range, and these as written."""
    kind: Any = table.kind(EXPIRY)
    for first, piece in table.pieces(EXPIRY):
        missing = np.asarray(pc.is_null(piece))
        if pa.types.is_null(kind):
            written, outside = np.zeros(len(piece), np.int64), np.zeros(len(piece), np.bool_)
        elif when == "time":
            written, outside = microseconds_of(piece, kind)
        else:
            written = np.asarray(piece.fill_null(0))
            outside = (written < LEAST_STEP) | (written > MOST_STEP)
        outside &= ~missing
        none = 2**63 - 1 if when == "time" else MOST_STEP + 1
        yield first, np.where(missing | outside, none, written.astype(np.int64)), outside, written
