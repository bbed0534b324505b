"""The table of a trace whose data change: the rows of another table, and behind them those that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import DTYPES, SPLITS, Arrivals, arrivals_of, concatenated
from traces.tables.base import NEVER, TRAIN, News, Table, rows_of_ranges
from traces.tables.columns import Columns
from traces.tables.sorted import first_from

COLUMNS = ("label", "image", "noise_start")


@dataclass(frozen=True)
class ChangedRows:
    """The rows of some slots, a slot being a client's samples of one split: 2 * client + split.

    `slots` (k,) ascend, and `since` (k,) is the data step from which on a slot's rows are these, and no
    longer those of the table before. All other columns have shape (rows,), in the order of (slot, arrival,
    born): `number` is that of the slot among `slots`, `arrival` the data step at which the row arrives, and
    `born` that at which its sample arrived first, which is earlier if it is sent anew, and counts for its
    age. What a client holds is sent anew all at once: its rows of before have ended then.

    `operations` says what is done to the features of a row (0: nothing), and `sample` is a random number of
    its sample, the same whenever it is sent; both are None if no feature changes. `expiry` is that of the
    sample, also if it is sent anew; None unless the table before expires.
    """

    slots: Ints
    since: Ints
    number: Ints
    arrival: np.ndarray
    born: np.ndarray
    label: np.ndarray
    image: np.ndarray
    noise_start: np.ndarray
    operations: np.ndarray | None = None
    sample: np.ndarray | None = None
    expiry: np.ndarray | None = None


class ChangedTable(Table):
    """`table`, and behind its rows those of the slots whose samples change, from their first change on.

    What a client holds is one range of rows before the first change of its slot, in `table`, and one after
    it, here: from the arrival of what was last sent anew (its *reset*) on, by `born` within it, up to the
    present step. Nothing of the table before is copied but rows that change, and a table that is mapped stays
    mapped.

    `last_step` is that of the last arrivals, unless a later one is given.
    """

    def __init__(self, table: Table, rows: ChangedRows, scratch: Path | None, last_step: int = 0) -> None:
        last = int(rows.arrival.max(initial=last_step))
        super().__init__(table.columns, table.num_clients, table.first_step, max(table.last_step, last))
        self.table = table
        self._behind = len(table)
        self._slots, self._since_of = rows.slots, rows.since
        # By slot: the number of its rows here, and the step from which on they are its rows.
        self._number = np.full(2 * table.num_clients, -1)
        self._number[rows.slots] = np.arange(len(rows.slots))
        self._since = np.full(2 * table.num_clients, NEVER, dtype=np.int32)
        self._since[rows.slots] = rows.since
        sizes = np.bincount(rows.number, minlength=len(rows.slots))
        self._offsets = np.concatenate(([0], np.cumsum(sizes)))
        self._passes = int(sizes.max(initial=0)).bit_length()
        given = {name: getattr(rows, name) for name in ("label", "image", "noise_start", "arrival", "born")}
        if rows.operations is not None and rows.sample is not None:
            given |= {"operations": rows.operations, "sample": rows.sample}
        if rows.expiry is not None:
            given |= {"expiry": rows.expiry}
        layout = {name: (column.dtype, len(column)) for name, column in given.items()}
        self._rows = Columns(layout, scratch, given)
        self._names = tuple(given)
        # A reset begins where a row is sent anew that is the first of its slot and arrival.
        begins = np.ones(len(rows.number), dtype=np.bool_)
        begins[1:] = (rows.number[1:] != rows.number[:-1]) | (rows.arrival[1:] != rows.arrival[:-1])
        resets = np.flatnonzero(begins & (rows.born < rows.arrival))
        self._resets_at, self._reset_rows = rows.arrival[resets].astype(np.int64), resets
        counts = np.bincount(rows.number[resets], minlength=len(rows.slots))
        self._resets = np.concatenate(([0], np.cumsum(counts)))
        self._reset_passes = int(counts.max(initial=0)).bit_length()

    def __len__(self) -> int:
        return self._behind + len(self._rows["label"])

    @property
    def num_samples(self) -> int:
        return self.table.num_samples

    @property
    def replaces(self) -> bool:
        return self.table.last_step <= 0 and "operations" not in self._names

    def seal(self) -> None:
        self.table.seal()
        self._rows.seal()

    def drop_pages(self) -> None:
        self.table.drop_pages()
        self._rows.drop_pages()

    def take(self, name: str, rows: Ints) -> np.ndarray:
        behind = rows >= self._behind
        if not behind.any():
            return self.table.take(name, rows)
        here = self._rows[name].take(rows[behind] - self._behind)
        if behind.all():
            return here
        before = self.table.take(name, rows[~behind])
        values = np.empty(len(rows), dtype=np.promote_types(before.dtype, here.dtype))
        values[behind], values[~behind] = here, before
        return values

    def stored(self, name: str) -> np.ndarray:
        if name == "label":
            raise ValueError("labels that change are not stored in one place; take them row by row")
        return self.table.stored(name)

    def feature_changes(self, rows: Ints) -> tuple[Ints, Ints] | None:
        if "operations" not in self._names:
            return None
        operations, sample = np.zeros((2, len(rows)), dtype=np.int64)
        behind = rows >= self._behind
        operations[behind] = self._rows["operations"].take(rows[behind] - self._behind)
        sample[behind] = self._rows["sample"].take(rows[behind] - self._behind)
        return operations, sample

    def arrival(self, rows: Ints) -> Ints:
        return self._steps("arrival", rows, self.table.arrival)

    def born(self, rows: Ints) -> Ints:
        return self._steps("born", rows, self.table.born)

    @property
    def expires(self) -> bool:
        return "expiry" in self._names

    def expiry(self, rows: Ints) -> Ints:
        return self._steps("expiry", rows, self.table.expiry)

    def held(self, ids: Ints, split: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        first, last = self.table.held(ids, split, step, retain_steps)
        slot = ids * len(SPLITS) + split
        some = np.flatnonzero(self._since.take(slot) <= step)
        if len(some):
            number = self._number.take(slot[some])
            first[some], last[some] = self._held_here(number, step, retain_steps)
        return first, last

    def arrived(self, ids: Ints, since: int, until: int, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        first, last = self.table.arrived(ids, since, until, step, retain_steps)
        slot = ids * len(SPLITS) + TRAIN
        some = np.flatnonzero(self._since.take(slot) <= step)
        if len(some):
            number = self._number.take(slot[some])
            held, end = self._held_here(number, step, retain_steps)
            first[some] = np.maximum(held, self._first_from(number, since) + self._behind)
            last[some] = np.maximum(
                first[some], np.minimum(end, self._first_from(number, until) + self._behind)
            )
        return first, last

    def ranges(self, ids: Ints, split: int, since: int | Ints, until: int) -> tuple[Ints, Ints]:
        """Rows of each client that arrived in [since, until), of the table in force at the last of them."""
        first, last = self.table.ranges(ids, split, since, until)
        slot = ids * len(SPLITS) + split
        some = np.flatnonzero(self._since.take(slot) < until)
        if len(some):
            number = self._number.take(slot[some])
            after = since if isinstance(since, int) else since[some]
            last[some] = self._first_from(number, until) + self._behind
            first[some] = np.minimum(self._first_from(number, after) + self._behind, last[some])
        return first, last

    def training_rows(self, ids: Ints) -> tuple[Ints, Ints]:
        first, last = self.table.training_rows(ids)
        number = self._number.take(ids * len(SPLITS) + TRAIN)
        number = number[number >= 0]
        here = self._offsets[number] + self._behind, self._offsets[number + 1] + self._behind
        return np.concatenate([first, here[0]]), np.concatenate([last, here[1]])

    def news(self, before: int | None, step: int, retain_steps: int) -> Iterator[News]:
        in_force = self._since[TRAIN :: len(SPLITS)] <= step  # by client: whether its rows are here
        for client, label, sign in self.table.news(before, step, retain_steps):
            kept = ~in_force[client]
            yield News(client[kept], label[kept], sign)
        clients = np.flatnonzero(in_force)
        first, last = self.held(clients, TRAIN, step, retain_steps)
        if before is None:
            old_first = old_last = first
        else:
            old_first, old_last = self.held(clients, TRAIN, before, retain_steps)
        # Ranges of one table ascend. A client that comes to this one leaves all that it held in the other.
        yield from self.news_of(clients, old_first, np.clip(first, old_first, old_last), -1)
        yield from self.news_of(clients, np.clip(old_last, first, last), last, 1)

    def trained_at(self, step: int) -> Iterator[tuple[Ints, np.ndarray]]:
        for client, label in self.table.trained_at(step):
            kept = self._since[client * len(SPLITS) + TRAIN] > step
            yield client[kept], label[kept]
        number = np.flatnonzero((self._slots % len(SPLITS) == TRAIN) & (self._since_of <= step))
        first, last = self._first_from(number, step), self._first_from(number, step + 1)
        yield (
            np.repeat(self._slots[number] // len(SPLITS), last - first),
            self._rows["label"].take(rows_of_ranges(first, last)),
        )

    def most_held(self, steps: int) -> int:
        return self.table.most_held(steps)

    def column(self, name: str, first: int, last: int) -> np.ndarray:
        """The column of all that clients [first, last) ever receive, by client, split and arrival."""
        before = [
            self.table.column(key, first, last).astype(np.int64) for key in ("client", "split", "arrival")
        ]
        slot = before[0] * len(SPLITS) + before[1]
        kept = np.flatnonzero(before[2] < self._since[slot])
        number = slice(*np.searchsorted(self._slots, (first * len(SPLITS), last * len(SPLITS))))
        rows = np.arange(*self._offsets[[number.start, number.stop]])
        slot_here = np.repeat(self._slots[number], np.diff(self._offsets[number.start : number.stop + 1]))
        since_here = np.repeat(self._since_of[number], np.diff(self._offsets[number.start : number.stop + 1]))
        received = np.flatnonzero(self._rows["arrival"][rows] >= since_here)
        order = np.argsort(np.concatenate([slot[kept], slot_here[received]]), kind="stable")
        here: np.ndarray
        if name == "client":
            here = slot_here[received] // len(SPLITS)
        elif name == "split":
            here = slot_here[received] % len(SPLITS)
        else:
            here = self._rows[name][rows[received]]
        values = np.concatenate([self.table.column(name, first, last)[kept], here])
        return values[order].astype(DTYPES[name], copy=False)

    def arrivals(self) -> Arrivals:
        """All columns by row number: those of the table before, and behind them those that differ."""
        slot = np.repeat(self._slots, np.diff(self._offsets))
        here = {name: self._rows[name] for name in (*COLUMNS, "arrival")}
        behind = arrivals_of(client=slot // len(SPLITS), split=slot % len(SPLITS), **here)
        return concatenated([self.table.arrivals(), behind])

    def digested(self) -> Iterator[np.ndarray]:
        yield from (self._slots, self._since_of, self._offsets)
        yield from (self._rows[name].astype(np.int64) for name in self._names)

    def _held_here(self, number: Ints, step: int, retain_steps: int) -> tuple[Ints, Ints]:
        """(n,) first and (n,) last: the rows here that the slots of these numbers (n,) hold at `step`."""
        ends = self._resets[number], self._resets[number + 1]
        reset = first_from(self._resets_at, *ends, step + 1, self._reset_passes) - 1
        low = self._offsets[number]
        some = reset >= ends[0]
        low[some] = self._reset_rows[reset[some]]
        last = self._first_from(number, step + 1)
        first = first_from(self._rows["born"], low, last, step - retain_steps + 1, self._passes)
        if self.expires:
            first = first_from(self._rows["expiry"], first, last, step + 1, self._passes)
        return first + self._behind, last + self._behind

    def _first_from(self, number: Ints, step: int | Ints) -> Ints:
        """(n,) the first row here of each slot that arrives at `step` or later; if none, the slot's end."""
        ends = self._offsets[number], self._offsets[number + 1]
        return first_from(self._rows["arrival"], *ends, step, self._passes)

    def _steps(self, name: str, rows: Ints, before: Callable[[Ints], Ints]) -> Ints:
        """(n,) the data steps in a column of these rows; `before` has those of the table before."""
        steps = np.empty(len(rows), dtype=np.int64)
        behind = rows >= self._behind
        steps[behind] = self._rows[name].take(rows[behind] - self._behind)
        steps[~behind] = before(rows[~behind])
        return steps

    def _stored(self, rows: Ints) -> Ints:
        raise AssertionError("rows are taken from the tables that have them")
