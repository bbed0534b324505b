"""The models that exist: an `Assignment` changes which ones there are, the aggregator their parameters."""

from __future__ import annotations

import numpy as np

from coordinator.assignment import Assignment
from emulator.arrays import NO_IDS, Bools, Floats32, Ints, weighted_sums
from emulator.storage.stateful import Stateful


class ModelBank(Stateful):
    """The parameters and names of M models; the bank starts empty.

    `ids` (M,) identify a model until an assignment replaces its content, and (id, version) identifies one
    content for ever. `labels` (M,) identify a cluster for human readers: they follow successors, so that a
    plot keeps its colours across a re-clustering. No id and no label is ever used twice.
    """

    state_fields = ("parameters", "ids", "labels", "versions", "_next_id", "_next_label")

    def __init__(self, num_parameters: int) -> None:
        self.parameters: Floats32 = np.zeros((0, num_parameters), dtype=np.float32)
        self.ids: Ints = NO_IDS
        self.labels: Ints = NO_IDS
        self.versions: Ints = NO_IDS
        self._next_id = 0
        self._next_label = 0

    def __len__(self) -> int:
        return len(self.ids)

    def apply(self, assignment: Assignment) -> None:
        """Replace the models by mixing @ concat(models, extra) of `assignment`, and name the new ones."""
        old = len(self)
        predecessor = np.full(assignment.num_models, -1, dtype=np.int64)
        # Of several old models with the same successor, the lowest row passes on its names.
        for row in range(old - 1, -1, -1):
            if assignment.successor[row] >= 0:
                predecessor[assignment.successor[row]] = row
        inherits = predecessor >= 0
        unchanged = inherits & (assignment.mixing[np.arange(len(inherits)), predecessor] == 1.0)

        sources = np.concatenate([self.parameters, assignment.extra.reshape(-1, self.parameters.shape[1])])
        self.parameters = weighted_sums(assignment.mixing, sources).astype(np.float32)
        self.labels = _carried(self.labels, predecessor, inherits, self._next_label)
        self.ids = _carried(self.ids, predecessor, unchanged, self._next_id)
        self.versions = np.where(unchanged, np.append(self.versions, 0)[predecessor], 0)
        self._next_label += int((~inherits).sum())
        self._next_id += int((~unchanged).sum())

    def publish(self, parameters: Floats32, updated: Bools) -> None:
        """Replace the rows marked in `updated` (M,) by those of `parameters` (M, P), as new versions."""
        self.parameters = np.where(updated[:, None], parameters, self.parameters)
        self.versions = self.versions + updated


def _carried(names: Ints, predecessor: Ints, inherits: Bools, next_name: int) -> Ints:
    """(M_new,) the names of the new models: of the predecessor where a model `inherits`, else unused.

    `names` (M_old,) are those of the old models, `predecessor` (M_new,) their rows, -1 = none; `inherits` is
    (M_new,). Unused names are counted up from `next_name`.
    """
    fresh = next_name + np.cumsum(~inherits) - 1
    return np.where(inherits, np.append(names, -1)[predecessor], fresh).astype(np.int64)
