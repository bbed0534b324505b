"""From when until when clients hold the rows of a trace, as its table answers at each data step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import SPLITS, STEPS_AHEAD
from traces.tables.base import CHUNK_ROWS, NEVER, rows_of_ranges
from traces.tables.sorted import first_from
from traces.trace import Trace

TEST = SPLITS.index("test")

MOST_RANGES = 2**22
"""Most ranges, of a client at a data step, that are looked at together."""


@dataclass(frozen=True)
class HeldRows:
    """Rows that clients hold at some data step, as columns of shape (n,), by client, split and `step`.

    Attributes:
        client: The client.
        split: Index into SPLITS.
        step: The data step from which on it holds the row; what it holds from the start has one <= 0.
        arrival: The data step at which the sample first arrived.
        expiry: The data step from which on it holds the row no longer. Of a row that it holds at the last
            step, the one that the row carries, if it carries one, and otherwise `NEVER`.
        row: The row of the table.
    """

    client: Ints
    split: Ints
    step: Ints
    arrival: Ints
    expiry: Ints
    row: Ints

    def __len__(self) -> int:
        return len(self.row)


def held_rows(trace: Trace, num_steps: int) -> Iterator[HeldRows]:
    """Yield the rows that clients hold at data steps 0 to `num_steps` - 1, a few clients at a time.

    A sample that is held on while the table moves it, since others of its client change, is one row.
    """
    table, clients = trace.table, trace.num_clients
    chunk = max(1, min(MOST_RANGES // num_steps, CHUNK_ROWS * clients // max(1, len(table))))
    for first in range(0, clients, chunk):
        ids = np.arange(first, min(first + chunk, clients))
        parts = [_held(trace, ids, split, num_steps) for split in range(len(SPLITS))]
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in HeldRows.__dataclass_fields__
        }
        order = np.lexsort((columns["split"], columns["client"]))  # stable: rows of a slot stay as they are
        table.drop_pages()
        yield HeldRows(**{name: column[order] for name, column in columns.items()})


def _held(trace: Trace, ids: Ints, split: int, num_steps: int) -> HeldRows:
    """The rows of one split that the clients `ids` hold, by client and row."""
    ranges = [trace.held(ids, SPLITS[split], step) for step in range(num_steps)]
    first, last = (np.stack([getattr(held, name) for held in ranges]) for name in ("first", "last"))
    # Neither end of a client's range goes back: new at a step is what lies behind the range before.
    before = np.vstack([first[:1], last[:-1]])
    begin = np.maximum(first, before).ravel()
    end = np.maximum(begin, last.ravel())
    sizes = end - begin
    cell = np.repeat(np.arange(len(sizes)), sizes)
    since, client = np.divmod(cell, len(ids))
    row = rows_of_ranges(begin, end)
    # The first step whose range begins behind a row is that from which on it is held no longer.
    columns = np.ascontiguousarray(first.T).ravel()
    low = client * num_steps
    until = first_from(columns, low, low + num_steps, row + 1, num_steps.bit_length()) - low
    until = np.where(until < num_steps, until, _expiry(trace, row, split))
    arrival = trace.table.arrival(row) - (STEPS_AHEAD[trace.test_on] if split == TEST else 0)
    moved = (since > 0) & (arrival < since)
    step = np.where(since > 0, np.where(moved, arrival, since), np.minimum(arrival, 0))
    kept = ~np.isin(row, _left_behind(last, since[moved], client[moved]))
    order = np.flatnonzero(kept)[np.lexsort((row[kept], client[kept]))]
    return HeldRows(
        client=ids[client[order]],
        split=np.full(len(order), split),
        step=step[order],
        arrival=trace.table.born(row[order]),
        expiry=until[order],
        row=row[order],
    )


def _expiry(trace: Trace, row: Ints, split: int) -> Ints:
    """(n,) the expiry that rows of `split` carry; `NEVER` if they carry none, or are tested on just once."""
    if trace.table.expires and not (split == TEST and trace.test_on == "next"):
        return trace.table.expiry(row)
    return np.full(len(row), NEVER)


def _left_behind(last: Ints, since: Ints, client: Ints) -> Ints:
    """The rows in whose place clients hold other rows of the same samples, of which `since` and `client` are.

    Where a client's samples begin to change, all that it holds moves to other rows (`ChangedTable`): what it
    had before, and had not yet expired, are the newest rows of its range then. `last` (steps, clients) are
    the ends of the ranges.
    """
    width = last.shape[1]
    cell, counts = np.unique(since * width + client, return_counts=True)
    end = last.ravel()[cell - width]  # of the step before
    return rows_of_ranges(end - counts, end)
