"""Solver state of (client, model) pairs between tasks: read at dispatch, committed on return."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from emulator.arrays import Bools, Floats32, Ints
from emulator.messages import StateSpec, Updates
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful


class SolverState(Stateful):
    """Rows of solver state by (client, model id), only for pairs that have trained.

    A slot is one named variable of a local rule, such as a moment of Adam (`emulator.messages.StateSpec`);
    its row has `width` numbers: P, or 1 for a scalar. A visit that was abandoned or dropped changes nothing.
    A pair's row is deleted when the client's data change, or when the model ceases to exist; a model that was
    replaced has a new id, and so starts at zero.
    """

    state_fields = ("_rows",)

    def __init__(self, specs: Mapping[str, StateSpec], num_parameters: int) -> None:
        self._widths = {name: spec.width(num_parameters) for name, spec in specs.items()}
        self._rows: dict[int, dict[int, Mapping[str, Floats32]]] = {}  # model id -> client -> rows

    def state(self) -> dict[str, Tree]:
        """The stored pairs: by model id, their clients (n,), and by slot their rows (n, width)."""
        return {"models": {model: self._stored(model) for model in self._rows}}

    def restore(self, state: Mapping[str, Tree]) -> None:
        self._rows = {
            model: {
                client: {name: slots[name][row] for name in self._widths}
                for row, client in enumerate(clients.tolist())
            }
            for model, (clients, slots) in state["models"].items()
        }

    def _stored(self, model: int) -> tuple[Ints, dict[str, Floats32]]:
        rows = self._rows[model]
        clients = np.fromiter(rows, dtype=np.int64, count=len(rows))
        slots = {name: _stacked(name, list(rows.values()), width) for name, width in self._widths.items()}
        return clients, slots

    def read(self, client: Ints, model: Ints) -> dict[str, Floats32]:
        """The solver state of n tasks, by slot (n, width); zero for a pair that has not trained.

        `client` (n,) and `model` (n,), ids, are the pair of each task.
        """
        if not self._widths:
            return {}
        pairs = list(zip(client.tolist(), model.tolist(), strict=True))
        stored = [self._rows.get(model_id, {}).get(client_id) for client_id, model_id in pairs]
        return {name: _stacked(name, stored, width) for name, width in self._widths.items()}

    def commit(self, updates: Updates, bound: Bools | None = None) -> None:
        """Store the solver state of the n updates; of those alone that are `bound` (n,), if it is given.

        An update is bound while what its state belongs to has not changed since its dispatch: the client's
        data and the model.
        """
        if not updates.state:
            return
        pairs = zip(updates.client.tolist(), updates.model.tolist(), strict=True)
        for row, (client, model) in enumerate(pairs):
            if bound is not None and not bound[row]:
                continue
            # Copied: a view would keep the rows of the whole wave.
            slots = {name: updates.state[name][row].copy() for name in self._widths}
            self._rows.setdefault(model, {})[client] = slots

    def models_changed(self, ids: Ints) -> None:
        """Take note of the ids of all models that exist now: delete the rows of the others."""
        for model in self._rows.keys() - set(ids.tolist()):
            del self._rows[model]

    def data_changed(self, clients: Ints) -> None:
        """Take note that the data of these clients changed: delete their rows."""
        for rows in self._rows.values():
            known = np.fromiter(rows, dtype=np.int64, count=len(rows))
            for client in known[np.isin(known, clients)].tolist():
                del rows[client]


def _stacked(name: str, stored: list[Mapping[str, Floats32] | None], width: int) -> Floats32:
    """(n, width) the rows of slot `name`, zero for pairs without stored state."""
    rows = np.zeros((len(stored), width), dtype=np.float32)
    for row, slots in zip(rows, stored, strict=True):
        if slots is not None:
            row[:] = slots[name]
    return rows
