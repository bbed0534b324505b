"""The updates that a server step absorbs, and what clients may remember of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats32, Ints, weighted_sums
from emulator.messages import Lifetime, SampleRanges, Updates


@dataclass(frozen=True)
class Trained:
    """Updates, sorted by client, with columns (n,)."""

    updates: Updates
    start: Ints  # the row of `Cohort.models` that each began with
    row: Ints  # the row of the bank that it is absorbed into
    bound: Bools  # whether the client's data are what they were at dispatch
    stayed: Bools  # whether the client has held data ever since
    same: Bools  # whether the model is what it was at dispatch
    samples: SampleRanges  # those that it was trained on, as they were read

    def take(self, rows: Ints) -> Trained:
        """Some of them, by ascending row numbers."""
        return Trained(
            self.updates.take(rows),
            self.start[rows],
            self.row[rows],
            self.bound[rows],
            self.stayed[rows],
            self.same[rows],
            self.samples.take(rows),
        )

    def mean_statistics(self, present: Floats32) -> Floats32:
        """(M, S) the mean statistics of batch norm of each model's updates, by samples.

        Those of a model without updates are the `present` ones (M, S). It is a mean of what clients have, not
        of how it moved: so also with late updates no variance is negative.
        """
        means, weights = present.copy(), self.updates.num_samples
        for row in np.unique(self.row[weights > 0]).tolist():
            some = ((self.row == row) & (weights > 0)).nonzero()[0]
            total = weighted_sums(weights[None, some] / weights[some].sum(), self.updates.statistics[some])
            means[row] = total[0]
        return means

    def first(self, members: Ints) -> Bools:
        """(n,) whether each is the only one of its client, or that of the model it belongs to first.

        So of a client's several updates at most one is. `members` (N, width) are those in force.
        """
        client = self.updates.client
        first = np.ones(len(client), dtype=bool)
        again = client[1:] == client[:-1]
        if again.any():
            first[1:] &= ~again
            first[:-1] &= ~again
            first |= self.row == members[client, 0]
            rows = first.nonzero()[0]  # a merger may have made two models one
            _, one_each = np.unique(client[rows], return_index=True)
            first[:] = False
            first[rows[one_each]] = True
        return first

    def valid(self, members: Ints) -> dict[Lifetime, Bools]:
        """What of it clients may remember, by lifetime; see `SolverState.commit`."""
        return {
            "data": self.bound & self.same,
            "model": self.stayed & self.same,
            "run": self.stayed & self.first(members),
        }
