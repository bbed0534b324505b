"""Training at dispatch: of solvers that stop early, whose visits last as long as the training did.

All tasks of a dispatch are trained as it is made, also those of visits that will be abandoned or drop out,
since their ends follow from their steps. A run that is resumed trains them again: a checkpoint has the tasks,
and none of the updates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from coordinator.federation.training.joined import JoinedUpdates
from emulator.arrays import NO_IDS, Floats32, Ints
from emulator.messages import TrainTasks, Updates
from emulator.ports import Executor
from emulator.storage.state_tree import Tree, as_tree, from_tree
from emulator.storage.stateful import Stateful


@dataclass
class _Dispatch:
    """The tasks of a dispatch, with the models (K, P) that they start from; None: to be trained again."""

    tasks: TrainTasks
    models: Floats32
    start: Ints
    visits: int  # that are not over
    updates: Updates | None


class AtDispatch(Stateful):
    """The updates of visits that are in flight, by the number of their dispatch."""

    state_fields = ("_dispatches",)

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._dispatches: dict[int, _Dispatch] = {}

    def state(self) -> dict[str, Tree]:
        """The dispatches with visits in flight, without what was trained."""
        return {
            "_dispatches": {
                number: as_tree(replace(of, updates=None)) for number, of in self._dispatches.items()
            }
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`; what was trained is trained again when it is needed."""
        of_dispatches = state["_dispatches"].items()
        super().restore(
            {"_dispatches": {number: from_tree(_Dispatch, tree) for number, tree in of_dispatches}}
        )

    def first_rows(self) -> Ints:
        """(ranges,) the first table row of each range of samples of these tasks."""
        return np.concatenate([NO_IDS, *(of.tasks.samples.first for of in self._dispatches.values())])

    def train(self, dispatch: int, visits: int, tasks: TrainTasks, models: Floats32, start: Ints) -> Updates:
        """The updates of all `tasks` (n,) of a dispatch, trained from rows `start` (n,) of `models`.

        Of its `visits` some may have no task, as those of clients that were moved between models meanwhile.
        """
        used, start = np.unique(start, return_inverse=True)
        broadcast = {name: rows[used] for name, rows in tasks.broadcast.items()}
        of_dispatch = _Dispatch(replace(tasks, broadcast=broadcast), models[used], start, visits, None)
        self._dispatches[dispatch] = of_dispatch
        return self._updates(of_dispatch)

    def take(self, tasks: TrainTasks) -> Updates:
        """The updates of some tasks in flight (n,), sorted by client and model, of any dispatches."""
        parts, places = [], []
        for number in np.unique(tasks.dispatch).tolist():
            of_dispatch = self._dispatches[number]
            place = np.flatnonzero(tasks.dispatch == number)
            wanted = _pairs(tasks.client[place], tasks.model[place])
            of = of_dispatch.tasks
            rows = np.flatnonzero(np.isin(_pairs(of.client, of.model), wanted))
            parts.append(self._updates(of_dispatch).take(rows))
            places.append(place)
        return parts[0] if len(parts) == 1 else JoinedUpdates.of(parts, places)

    def over(self, dispatch: Ints) -> None:
        """Take note that visits of these dispatches (n,), one for each, are over."""
        for number, visits in zip(*np.unique(dispatch, return_counts=True), strict=True):
            of_dispatch = self._dispatches[int(number)]
            of_dispatch.visits -= int(visits)
            if of_dispatch.visits == 0:
                del self._dispatches[int(number)]

    def _updates(self, of_dispatch: _Dispatch) -> Updates:
        if of_dispatch.updates is None:
            tasks, models, start = of_dispatch.tasks, of_dispatch.models, of_dispatch.start
            of_dispatch.updates = self._executor.train(tasks, models, start)
        return of_dispatch.updates


def _pairs(client: Ints, model: Ints) -> Ints:
    """(n,) a number for each pair of a client and a model id, both below 2^31."""
    return client * 2**31 + model
