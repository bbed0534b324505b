"""Which samples change, if a share of them does: exactly that share, and the same ones each time."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Bools, Floats
from emulator.seeding import RandomStreams, StreamKeys, uniforms
from traces.arrivals import SPLITS
from traces.changes.rows import RowColumns
from traces.tables.base import Table

ROUNDING = 1e-9
"""Added before rounding down, so that 0.1 x 30 is 3."""


class Samples:
    """The distinct samples of some rows: each has a client, a split, a step of first arrival, and a number.

    The number is its place among the samples of its *cell*, those of the same client, split and step. Random
    numbers are keyed by these, so that they do not depend on how long the run is, nor on other clients.
    """

    def __init__(self, rows: RowColumns, table: Table, streams: RandomStreams) -> None:
        """Find the samples.

        Args:
            rows: the rows; all samples of a cell are among them if one is.
            table: the table that has the samples, in order of (client, split, arrival).
            streams: the random streams of the run.
        """
        self._streams = streams
        origin, first_row, self.of_row = np.unique(rows.origin, return_index=True, return_inverse=True)
        slot, born = rows.slot[first_row], rows.born[first_row]
        begins = np.ones(len(origin), dtype=np.bool_)
        begins[1:] = (slot[1:] != slot[:-1]) | (born[1:] != born[:-1])
        cell_start = np.flatnonzero(begins)
        self._cell = np.cumsum(begins) - 1
        self._cell_start = cell_start
        self._size = np.diff(np.append(cell_start, len(origin)))
        # How many samples of the slot arrived before those of a cell.
        client, split = slot[cell_start] // len(SPLITS), slot[cell_start] % len(SPLITS)
        start = np.zeros(len(cell_start), dtype=np.int64)
        for number in range(len(SPLITS)):
            some = split == number
            start[some] = table.ranges(client[some], number, table.first_step, table.last_step + 1)[0]
        self._before = origin[cell_start] - start
        number = np.arange(len(origin)) - cell_start[self._cell]
        self._key = (slot // len(SPLITS), slot % len(SPLITS), born - table.first_step, number)

    def keys(self, purpose: str, *key: int) -> StreamKeys:
        """(samples, 2) the key of a random stream for each sample."""
        return self._streams.keys(purpose, *key, *self._key)

    def chosen(self, share: Floats, *key: int) -> Bools:
        """(rows,) whether each row's sample is among the share (rows,) that changes.

        Of the first n samples that a client receives of a split, int(share x n) are, chosen at random within
        each data step. `key` names the draw: with the same one, more are chosen of a larger share, never
        others.

        Args:
            share: the share, for each row.
            key: names the draw.
        """
        ranks = np.lexsort((uniforms(self.keys("changed samples", *key))[:, 0], self._cell))
        rank = np.empty(len(ranks), dtype=np.int64)
        rank[ranks] = np.arange(len(ranks)) - np.repeat(self._cell_start, self._size)
        cell = self._cell[self.of_row]
        until, before = (
            np.floor(share * count + ROUNDING)
            for count in (self._before[cell] + self._size[cell], self._before[cell])
        )
        chosen: Bools = rank[self.of_row] < until - before
        return chosen
