"""The assignment in force: which models exist, which clients belong to which, and who can be selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from coordinator.assignment import Assignment
from coordinator.federation.bank import ModelBank
from coordinator.federation.solver_state import SolverState
from coordinator.view import Part
from emulator.arrays import NO_IDS, Bools, Ints


class Lanes:
    """The lanes of all clients: the lane of each client, and the clients of each lane.

    `lane_of_client` (N,): the lane of each client, -1 = in no lane. `sizes` (lanes,): the number of clients
    in each lane. `ids`: for each lane the ids of its clients, ascending.

    Built once per assignment and data step, since it processes every client.
    """

    def __init__(self, lane_of_client: Ints, num_lanes: int) -> None:
        self.lane_of_client = lane_of_client
        # NOTE: numpy sorts short integers in a single pass over a million.
        narrow = lane_of_client.astype(np.int16) if num_lanes < 2**15 else lane_of_client
        order = np.argsort(narrow, kind="stable")
        ends = np.searchsorted(narrow, np.arange(-1, num_lanes, dtype=narrow.dtype), "right", sorter=order)
        self.sizes: Ints = np.diff(ends).astype(np.int64)
        self.ids: list[Ints] = np.split(order, ends)[1 : num_lanes + 1]


class Membership:
    """Applies assignments to the bank, the parts and the solver state; `assignment` is None at first."""

    def __init__(self, bank: ModelBank, parts: Sequence[Part], solver_state: SolverState) -> None:
        self.assignment: Assignment | None = None
        self._bank = bank
        self._parts = parts
        self._solver_state = solver_state
        self._lanes: Lanes | None = None  # of this assignment and data step, once requested

    @property
    def in_force(self) -> Assignment:
        """The assignment in force.

        There is one: the federation refuses a clusterer whose first call returns None.
        """
        assert self.assignment is not None
        return self.assignment

    def labels(self) -> Ints:
        """(N,) the cluster label of each client, that of its first model; -1 if it has no model."""
        labels: Ints = np.append(self._bank.labels, -1)[self.in_force.members[:, 0]]
        return labels

    def apply(self, assignment: Assignment, holding: Bools, joined: Ints = NO_IDS) -> int | None:
        """Put `assignment` in force, among the clients `holding` data (N,).

        Returns how many clients changed cluster, without those that have just `joined`; None for the first.
        """
        assignment = assignment.among(holding)
        before = None if self.assignment is None else self.labels()
        belonged = None
        if before is not None and self._solver_state.ends_with_membership:
            belonged = self._ids_of_clients()
        if before is None or assignment.changes_models:
            self._bank.apply(assignment)
            for part in self._parts:
                part.models_changed(assignment)
            self._solver_state.models_changed(self._bank.ids)
        self.assignment, self._lanes = assignment, None
        if before is None:
            return None
        if belonged is not None:
            self._solver_state.members_changed(belonged, self._ids_of_clients())
        changed = before != self.labels()
        changed[joined] = False
        return int(changed.sum())

    def data_changed(self, holding: Bools) -> None:
        """Take note of a new data step, at which other clients may have something to train.

        Those that are not `holding` data (N,) belong to no model any more.
        """
        self._lanes = None
        if self.assignment is not None:
            self.assignment = self.assignment.among(holding)

    def _ids_of_clients(self) -> Ints:
        """(N, width) the ids of the models that each client belongs to, padded with -1."""
        ids: Ints = np.append(self._bank.ids, -1)[self.in_force.members]
        return ids

    def lanes(self, trains: Callable[[Ints], Bools]) -> Lanes:
        """The lanes of the assignment, without clients that have nothing to train.

        `trains` maps (n,) client ids to (n,) whether each has something to train; it is evaluated once per
        assignment and data step.
        """
        if self._lanes is None:
            lane_of_client = self.in_force.lane_of_client
            trainable = trains(np.arange(len(lane_of_client)))
            self._lanes = Lanes(np.where(trainable, lane_of_client, -1), len(self._bank))
        return self._lanes
