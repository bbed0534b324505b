"""The table of a trace whose rows carry the data step from which on they are held no longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import Arrivals
from traces.ordering import rows_in_order
from traces.tables.base import TRAIN, News
from traces.tables.columns import Columns
from traces.tables.sorted import SortedTable, are_in_order, first_from


class ExpiringTable(SortedTable):
    """Arrivals in any order, each held from its arrival until before its `expiry`, and no longer.

    Rows are in the order (client, split, arrival, expiry). Within a client and split they must expire in the
    order in which they arrive, so that what is held is one range. `retain_steps`, which all queries take, is
    an upper bound: a sample is held neither for more steps nor beyond its expiry.
    """

    def __init__(self, arrivals: Arrivals, expiry: Ints, num_clients: int, scratch: Path | None) -> None:
        """Sort the rows, unless they are in order.

        Args:
            arrivals: the columns of the rows.
            expiry: (rows,) the data step from which on a row is held no longer, after its arrival; `NEVER` if
                it is held to the end.
            num_clients: the number of clients.
            scratch: folder for the file of a large table; None: the system's temporary folder.
        """
        columns = (arrivals.client, arrivals.split, arrivals.arrival, expiry)
        if not are_in_order(*columns):
            order = rows_in_order(*columns)
            arrivals, expiry = arrivals.take(order), expiry[order]
        super().__init__(arrivals, num_clients, scratch)
        self._expiry = Columns({"expiry": (expiry.dtype, len(expiry))}, scratch, {"expiry": expiry})

    @property
    def expires(self) -> bool:
        return True

    def expiry(self, rows: Ints) -> Ints:
        return self._expiry["expiry"].take(rows).astype(np.int64)

    def seal(self) -> None:
        super().seal()
        self._expiry.seal()

    def drop_pages(self) -> None:
        super().drop_pages()
        self._expiry.drop_pages()

    def held(self, ids: Ints, split: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        return self._unexpired(*super().held(ids, split, step, retain_steps), step)

    def arrived(self, ids: Ints, since: int, until: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        return self._unexpired(*super().arrived(ids, since, until, step, retain_steps), step)

    def news(self, before: int | None, step: int, retain_steps: int) -> Iterator[News]:
        clients = np.arange(self.num_clients)
        first, last = self.held(clients, TRAIN, step, retain_steps)
        if before is None:
            yield from self.news_of(clients, first, last, 1)
            return
        old_first, old_last = self.held(clients, TRAIN, before, retain_steps)
        # Neither end of a client's range goes back; what lies between the two ranges came and went.
        yield from self.news_of(clients, old_first, np.clip(first, old_first, old_last), -1)
        yield from self.news_of(clients, old_last, np.maximum(first, old_last), 0)
        yield from self.news_of(clients, np.clip(old_last, first, last), last, 1)

    def _unexpired(self, first: Ints, last: Ints, step: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last of the rows of ranges [first, last), (n,), that expire after `step`."""
        return first_from(self._expiry["expiry"], first, last, step + 1, self._passes), last
