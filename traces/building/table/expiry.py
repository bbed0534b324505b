"""The column of a table that says until when a client holds a row, in the unit of the column of arrivals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError
from emulator.storage.reading.shards import Batch, Shards
from traces.building.bad_rows import BadRows
from traces.building.rows import Rows
from traces.building.rules import EXPIRY, Cells, keep
from traces.files.expiry import MOST_STEP, before_its_turn, out_of_turn
from traces.ordering import sizes_of
from traces.tables.sorted import first_from


def refuse_never_held(
    shards: Shards, at: np.ndarray, expiry: np.ndarray, names: tuple[str, str], bad: BadRows
) -> None:
    """Leave out rows that expire before they arrive, or as they do; `names` are those of both columns.

    Raises DataFileError if there are more than may be left out.
    """
    path = shards.files[0] if len(shards.files) == 1 else shards.files[0].parent
    cells = Cells(name=names[1], other=names[0], at=at, expiry=expiry)
    cells.since, cells.until = (lambda row: _shown(at[row])), (lambda row: _shown(expiry[row]))
    keep(EXPIRY, cells, bad, Batch(path, 0, {}, len(at)), 0, ~bad.mask(len(at)))


def expiring_ranks(at: np.ndarray, expiry: np.ndarray, client: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n,) the rank of the first row of its client that arrives when each row expires, or later.

    Args:
        at: (n,) by what the rows of a client are ordered.
        expiry: (n,) in the same unit.
        client: (n,) the client of each row.
        order: (n,) the rows by client, and by `at` within it.

    Returns:
        (n,) ranks; the greatest number of 32 bits where no row arrives then: it is held to the end.
    """
    size = sizes_of(client, int(client.max()) + 1)
    start = (np.cumsum(size) - size)[client]
    end = start + size[client]
    first: Any = first_from(at[order], start, end, expiry, int(size.max()).bit_length())
    return np.where(first < end, first - start, MOST_STEP + 1).astype(np.int32)


def refuse_out_of_turn(rows: Rows, keep: Bools, root: Path) -> None:
    """Raise DataFileError for a row that expires before one of its client and split that arrives earlier.

    `rows` are those of the table to `keep` (rows of the table,).
    """
    assert rows.expiry is not None
    later, earlier = out_of_turn(rows.client, rows.split, rows.at, rows.expiry)
    if len(later):
        first = int(np.argmin(later))
        pair: Ints = np.array([later[first], earlier[first]])
        row, other = (int(number) + 1 for number in np.flatnonzero(keep)[pair])
        at, expiry = (tuple(column[pair].tolist()) for column in (rows.at, rows.expiry))
        name = str(rows.clients[rows.client[later[first]]])
        raise DataFileError(root, before_its_turn(name, at, expiry, other, rows.when), row)


def _shown(value: Any) -> str:
    """A time, which has 64 bits, in ISO 8601; a number as it is."""
    if isinstance(value, np.int64):
        return str(np.datetime64(int(value), "us")).removesuffix(".000000")
    return str(value)
