"""Weighted sums of a wave's updates: the part of one task group, as ranks send it, and the total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, weighted_sums


@dataclass(frozen=True)
class GroupWeights:
    """The weights (k, n) of k sums over the n updates of a wave, split by task group.

    `models[g]`: the rows of `weights` that are not all zero in group g. `of_group[g]`: these rows, restricted
    to the group's updates; a group without such rows is left out.
    """

    weights: Floats
    models: Sequence[Ints]
    of_group: Mapping[int, Floats]

    @classmethod
    def over(cls, weights: Floats, groups: Sequence[Ints]) -> GroupWeights:
        parts = [weights[:, members] for members in groups]
        models = [np.flatnonzero(part.any(axis=1)) for part in parts]
        of_group = {number: parts[number][rows] for number, rows in enumerate(models) if len(rows)}
        return cls(weights, models, of_group)

    def among(self, groups: Sequence[int]) -> list[int]:
        """The members of `groups` in which any weight is not zero, in the given order."""
        return [number for number in groups if number in self.of_group]

    def total(self, packed: Mapping[int, Floats | Floats32], num_parameters: int) -> Floats:
        """(k, P) the sums over the whole wave, added group by group in ascending order.

        `packed[g]`: the result of `summed` for group g.
        """
        sums = np.zeros((len(self.weights), num_parameters))
        for number, weights in self.of_group.items():
            sums[self.models[number]] += unfolded(packed[number], weights)
        return sums


def sends_rows(weights: Floats) -> bool:
    """Whether a group's updates of non-zero weight take at most as many bytes as their k sums.

    `weights` (k, n): the group's. Updates are float32, sums float64.
    """
    return 4 * int(weights.any(axis=0).sum()) <= 8 * len(weights)


def sent_rows(weights: Floats) -> int:
    """The number of rows of the array that `summed` returns for these `weights` (k, n)."""
    return int(weights.any(axis=0).sum()) if sends_rows(weights) else len(weights)


def summed(weights: Floats, rows: Floats32) -> Floats | Floats32:
    """A group's contribution to the sums `weights` (k, n) @ `rows` (n, P), in the smaller of two forms.

    Either the sums (k, P), or the rows of non-zero weight, from which `unfolded` computes the sums.
    """
    return rows[np.flatnonzero(weights.any(axis=0))] if sends_rows(weights) else weighted_sums(weights, rows)


def unfolded(packed: Floats | Floats32, weights: Floats) -> Floats:
    """(k, P) the sums by `weights` (k, n), from `packed`, the result of `summed` for the same weights."""
    if not sends_rows(weights):
        return packed.astype(np.float64, copy=False)
    return weighted_sums(weights[:, weights.any(axis=0)], packed.astype(np.float32, copy=False))
