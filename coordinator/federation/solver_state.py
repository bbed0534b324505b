"""What solvers remember between tasks: read at dispatch, committed as updates are absorbed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from emulator.arrays import NO_IDS, Bools, Floats, Floats32, Ints
from emulator.messages import Lifetime, StateSpec, Updates
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful

ANY_MODEL = -1
"""The model id in the key of a row that is its client's, whatever the model."""

MOST_REMOVED = 1e6
"""By how much what is removed from a running sum may exceed what is left, or the rows are added up anew."""

GROWTH = 1.25
"""By what factor the room for rows grows: arrays are extended in place, so that more would only be unused."""


class SolverState(Stateful):
    """Rows of the slots of local rules (`emulator.messages.StateSpec`), for those that have trained alone.

    Slots that live equally long are columns of one table, whose rows have the key (client, model id), or the
    client alone. A visit that was abandoned or dropped changes nothing, and neither does a task without
    steps. Rows end as the `until` of their slots says; a model that was replaced has a new id.
    """

    state_fields = ("_tables",)

    def __init__(
        self, specs: Mapping[str, StateSpec], num_parameters: int, averaged: Iterable[str] = ()
    ) -> None:
        """Without rows; of the slots `averaged`, which end with their `model`, `means` are asked."""
        self._specs = specs
        self._averaged = sorted(averaged)
        lifetimes = sorted({spec.until for spec in specs.values()})
        self._tables: dict[Lifetime, _Rows] = {
            until: _Rows(
                {name: spec.width(num_parameters) for name, spec in specs.items() if spec.until == until},
                of_clients=until == "run",
                summed=self._averaged if until == "model" else (),
            )
            for until in lifetimes
        }

    def __len__(self) -> int:
        """The number of rows, of all lifetimes."""
        return sum(map(len, self._tables.values()))

    @property
    def ends_with_membership(self) -> bool:
        """Whether rows may end because a client moves to another model."""
        return "model" in self._tables

    def state(self) -> dict[str, Tree]:
        """The rows of each lifetime: their keys, the rounds in which they were written, and the slots."""
        return {"tables": {until: table.state() for until, table in self._tables.items()}}

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`, without rows so far."""
        for until, table in self._tables.items():
            table.restore(state["tables"][until])

    def read(
        self, client: Ints, model: Ints, received: Callable[[Ints], Floats32] | None = None
    ) -> dict[str, Floats32]:
        """The solver state that n tasks begin with, by slot (n, P) or (n, 1).

        Args:
            client: (n,) ids.
            model: (n,) ids.
            received: (k,) numbers of tasks -> (k, P) the parameters that they start from; needed only if a
                slot begins with these.
        """
        if not self._specs:
            return {}
        found: dict[str, Floats32] = {}
        for until, table in self._tables.items():
            rows = table.find(client, model)
            found |= table.take(rows)
            new = (rows < 0).nonzero()[0]
            for name, spec in self._specs.items():
                if spec.until == until and spec.start == "received" and len(new) > 0:
                    assert received is not None
                    found[name][new] = spec.begun(received(new), found[name].shape[1])
        return {name: found[name] for name in self._specs}

    def remembered(
        self, names: Iterable[str], client: Ints, model: Ints
    ) -> tuple[Ints, Ints, dict[str, Floats32]]:
        """What n clients remember in some of the slots: which of them do, since when, and what.

        Args:
            names: Slots, at least one.
            client: (n,) ids.
            model: (n,) ids of the models that serve them.

        Returns:
            The numbers (k,) of the clients that have a row of each of these slots; the round (k,) in which it
            was last written, of several the first; and by slot the rows (k, P) or (k, 1).
        """
        wanted = set(names)
        has = np.ones(len(client), dtype=bool)
        written = np.full(len(client), np.iinfo(np.int64).max)
        tables = [table for table in self._tables.values() if wanted & table.names]
        rows = [table.find(client, model) for table in tables]
        for table, of_table in zip(tables, rows, strict=True):
            has &= of_table >= 0
            written = np.minimum(written, table.written(of_table))
        clients = has.nonzero()[0]
        found: dict[str, Floats32] = {}
        for table, of_table in zip(tables, rows, strict=True):
            found |= table.take(of_table[clients])
        return clients, written[clients], {name: found[name] for name in sorted(wanted)}

    def means(self, ids: Ints, members: Ints) -> dict[str, Floats]:
        """By averaged slot (M, width) its mean over the clients of each model; one without a row counts as 0.

        These are the model's members, and others that have a row, since they train it all the same.

        Args:
            ids: (M,) of the models.
            members: (N, width) rows of `ids` to which each client belongs, padded with -1.
        """
        if not self._averaged:
            return {}
        table, (_, others) = self._tables["model"], self.strays(ids, members)
        clients = np.bincount(members[members >= 0], minlength=len(ids))
        clients += np.bincount(others, minlength=len(ids))
        divisor = np.maximum(clients, 1)[:, None]
        return {name: table.sums(name, ids) / divisor for name in self._averaged}

    def commit(
        self, updates: Updates, round_: int = 0, valid: Mapping[Lifetime, Bools] | None = None
    ) -> Ints:
        """Store the solver state of the n updates that took a step.

        State that is not finite is not stored, and the row that it was to replace is deleted.

        Args:
            updates: The updates; `model` are the ids of the models that they are absorbed into.
            round_: The round at hand.
            valid: For each lifetime, (n,) whether a row that lives so long is what it would have been without
                what happened since dispatch; of those until "run", at most one of each client. None: all are.

        Returns:
            Ids, ascending, of the clients whose new state was not finite.
        """
        forgetful = [NO_IDS]
        for until, table in self._tables.items() if updates.state else ():
            applies = updates.num_steps > 0 if valid is None else (updates.num_steps > 0) & valid[until]
            slots = (updates.state[name] for name in sorted(table.names))
            finite = np.logical_and.reduce([np.isfinite(slot).all(axis=1) for slot in slots])
            rows, lost = (applies & finite).nonzero()[0], (applies & ~finite).nonzero()[0]
            table.put(updates.client[rows], updates.model[rows], round_, updates.state, rows)
            if len(lost) > 0:
                table.drop(updates.client[lost], updates.model[lost])
                forgetful.append(updates.client[lost])
        return np.unique(np.concatenate(forgetful))

    def strays(self, ids: Ints, members: Ints) -> tuple[Ints, Ints]:
        """The client (k,) and the number in `ids` (k,) of rows until the model ends of clients of others.

        Args:
            ids: (M,) of the models.
            members: (N, width) rows of `ids` to which each client belongs, padded with -1.
        """
        if "model" not in self._tables:
            return NO_IDS, NO_IDS
        row, client = self._tables["model"].of_models(ids)
        others = (members[client] != row[:, None]).all(axis=1)
        return client[others], row[others]

    def drop(self, client: Ints, ids: Ints) -> None:
        """Delete the rows of n (client, model id) that last until the model ends."""
        self._tables["model"].drop(client, ids)

    def models_changed(self, ids: Ints) -> None:
        """Take note of the ids of all models that exist now: delete the rows of the others."""
        for table in self._tables.values():
            table.keep_models(ids)

    def members_changed(self, before: Ints, after: Ints) -> None:
        """Take note of the ids (N, width), -1 pads, of the models that each client belonged to, and does."""
        self._tables["model"].keep_members(before, after)

    def data_changed(self, clients: Ints) -> None:
        """Take note that the data of these clients changed: delete the rows that end with that."""
        if "data" in self._tables:
            self._tables["data"].forget(clients)

    def clients_left(self, clients: Ints) -> None:
        """Take note that these clients ceased to hold data: delete all their rows."""
        for table in self._tables.values():
            table.forget(clients)


class _Rows:
    """The rows of some slots, by (client, model id), or by client alone; by id the sums of those `summed`."""

    def __init__(self, widths: Mapping[str, int], *, of_clients: bool, summed: Iterable[str] = ()) -> None:
        self._of_clients = of_clients
        # Slot -> model id -> (width,)
        self._sums: dict[str, dict[int, Floats]] = {name: {} for name in summed}
        self._row: dict[tuple[int, int], int] = {}  # (model id, client) -> row
        self._free: list[int] = []
        self._client: Ints = np.zeros(0, dtype=np.int64)  # (room,) -1 = the row is free
        self._model: Ints = np.zeros(0, dtype=np.int64)
        self._written: Ints = np.zeros(0, dtype=np.int64)
        self._slots: dict[str, Floats32] = {
            name: np.zeros((0, width), dtype=np.float32) for name, width in widths.items()
        }

    def __len__(self) -> int:
        return len(self._row)

    @property
    def names(self) -> set[str]:
        """The names of the slots."""
        return set(self._slots)

    def state(self) -> Tree:
        rows = (self._client >= 0).nonzero()[0]
        slots = {name: slot[rows] for name, slot in self._slots.items()}
        # Sums are stored: adding up the rows anew rounds otherwise.
        sums = {name: list(of_slot.items()) for name, of_slot in self._sums.items()}
        return self._client[rows], self._model[rows], self._written[rows], slots, sums

    def restore(self, state: Tree) -> None:
        client, model, written, slots, sums = state
        self._sums = {name: dict(of_slot) for name, of_slot in sums.items()}
        self._make_room(len(client))
        rows = np.arange(len(client))
        self._client[rows], self._model[rows], self._written[rows] = client, model, written
        for name, slot in self._slots.items():
            slot[rows] = slots[name]
        self._row = dict(zip(self._keys(client, model), rows.tolist(), strict=True))
        self._free = [row for row in self._free if row >= len(client)]

    def find(self, client: Ints, model: Ints) -> Ints:
        """(n,) the row of each (client, model id); -1: it has none."""
        rows = [self._row.get(key, -1) for key in self._keys(client, model)]
        return np.array(rows, dtype=np.int64)

    def take(self, rows: Ints) -> dict[str, Floats32]:
        """By slot (n, width), copies of these rows; zeros for -1."""
        new = rows < 0
        if not new.any():
            return {name: slot[rows] for name, slot in self._slots.items()}
        found = {}
        for name, slot in self._slots.items():
            found[name] = np.zeros((len(rows), slot.shape[1]), dtype=np.float32)
            found[name][~new] = slot[rows[~new]]
        return found

    def written(self, rows: Ints) -> Ints:
        """(n,) the round in which each row was last written; of -1 it has no meaning."""
        return self._written[rows] if len(self._written) > 0 else np.zeros_like(rows)

    def sums(self, name: str, ids: Ints) -> Floats:
        """(M, width) the sum of a slot over the rows of each model."""
        nothing, of_slot = np.zeros(self._slots[name].shape[1]), self._sums[name]
        return np.stack([of_slot.get(id_, nothing) for id_ in ids.tolist()])

    def of_models(self, ids: Ints) -> tuple[Ints, Ints]:
        """The number in `ids` (M,) of the model of each row (k,), and its client (k,)."""
        rows = (self._client >= 0).nonzero()[0]
        order = np.argsort(ids)
        return order[np.searchsorted(ids, self._model[rows], sorter=order)], self._client[rows]

    def put(
        self, client: Ints, model: Ints, round_: int, state: Mapping[str, Floats32], source: Ints
    ) -> None:
        """Write the rows of n (client, model id), made of the rows `source` (n,) of `state`."""
        keys = self._keys(client, model)
        new = [key for key in keys if key not in self._row]
        if len(new) > len(self._free):
            self._make_room(int(GROWTH * (len(self._row) + len(new))))
        for key in new:
            assert key not in self._row, "a row is written once"
            self._row[key] = self._free.pop()
        rows = np.array([self._row[key] for key in keys], dtype=np.int64)
        removed = self._sums_over(rows[self._client[rows] >= 0])
        self._client[rows], self._written[rows] = client, round_
        self._model[rows] = ANY_MODEL if self._of_clients else model
        for name, slot in self._slots.items():
            slot[rows] = state[name][source]
        self._adjust(removed, self._sums_over(rows))

    def drop(self, client: Ints, model: Ints) -> None:
        """Delete the rows of n (client, model id), those that there are."""
        rows = self.find(client, model)
        self._delete(np.isin(np.arange(len(self._client)), rows[rows >= 0]))

    def forget(self, clients: Ints) -> None:
        """Delete the rows of these clients."""
        if self._row and len(clients) > 0:
            self._delete(np.isin(self._client, clients))

    def keep_models(self, ids: Ints) -> None:
        """Delete the rows of all other models."""
        if self._row and not self._of_clients:
            self._delete((self._client >= 0) & ~np.isin(self._model, ids))
            kept = set(ids.tolist())
            for name, of_slot in self._sums.items():
                self._sums[name] = {id_: total for id_, total in of_slot.items() if id_ in kept}

    def keep_members(self, before: Ints, after: Ints) -> None:
        """Delete the rows of clients that belonged to the model `before`, and not `after`: (N, width) ids."""
        if self._row:
            client, model = self._client, self._model[:, None]
            left = (before[client] == model).any(axis=1) & (after[client] != model).all(axis=1)
            self._delete((client >= 0) & left)

    def _sums_over(self, rows: Ints) -> dict[str, dict[int, Floats]]:
        """By slot and model id the sum over some rows, which are added up by ascending client."""
        rows = rows[np.argsort(self._client[rows])] if self._sums else rows
        return {
            name: {
                id_: self._slots[name][rows[self._model[rows] == id_]].sum(axis=0, dtype=np.float64)
                for id_ in np.unique(self._model[rows]).tolist()
            }
            for name in self._sums
        }

    def _adjust(
        self, removed: Mapping[str, Mapping[int, Floats]], added: Mapping[str, Mapping[int, Floats]]
    ) -> None:
        """Take note of what rows were removed and added, as sums by slot and model id."""
        for name, of_slot in self._sums.items():
            for id_ in sorted(removed[name].keys() | added[name].keys()):
                less = removed[name].get(id_, np.zeros(1))
                total = of_slot.get(id_, 0.0) - less + added[name].get(id_, 0.0)
                of_slot[id_] = total
                if np.abs(less).max() > MOST_REMOVED * np.abs(total).max():  # what is left is mostly rounding
                    rows = ((self._client >= 0) & (self._model == id_)).nonzero()[0]
                    del of_slot[id_]
                    of_slot |= self._sums_over(rows)[name]

    def _delete(self, which: Bools) -> None:
        rows = which.nonzero()[0]
        removed = self._sums_over(rows)
        for key in self._keys(self._client[rows], self._model[rows]):
            del self._row[key]
        self._client[rows] = -1
        self._free += rows.tolist()
        self._adjust(removed, {name: {} for name in self._sums})

    def _keys(self, client: Ints, model: Ints) -> list[tuple[int, int]]:
        models = [ANY_MODEL] * len(client) if self._of_clients else model.tolist()
        return list(zip(models, client.tolist(), strict=True))

    def _make_room(self, room: int) -> None:
        """Make room for so many rows in all, if there is less."""
        before = len(self._client)
        if room <= before:
            return
        # NOTE: extended in place, which moves pages and copies nothing; no view of them is ever held.
        for column in (self._client, self._model, self._written):
            column.resize(room, refcheck=False)
        for slot in self._slots.values():
            slot.resize((room, slot.shape[1]), refcheck=False)
        self._client[before:] = -1
        self._free += range(room - 1, before - 1, -1)
