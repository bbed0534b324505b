"""Sums over the groups of a wave: what is sent of a group's updates, and how the sums are put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, weighted_sums


@dataclass(frozen=True)
class GroupWeights:
    """What the updates of a wave are weighed by in their sums.

    `weights` (k, n); of each group the rows of these that count in it, `models`, and where there are any,
    its part of them, `of_group`.
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
        """Those of `groups` that count, in their order."""
        return [number for number in groups if number in self.of_group]

    def total(self, found: Mapping[int, Floats | Floats32], num_parameters: int) -> Floats:
        """(k, P), summed over the groups in their order, of what `summed` made of each."""
        sums = np.zeros((len(self.weights), num_parameters))
        for number, weights in self.of_group.items():
            sums[self.models[number]] += unfolded(found[number], weights)
        return sums


def sends_rows(weights: Floats) -> bool:
    """Whether the rows that count are fewer bytes than their sums by `weights` (k, n)."""
    return 4 * int(weights.any(axis=0).sum()) <= 8 * len(weights)


def sent_rows(weights: Floats) -> int:
    """How many rows `summed` has."""
    return int(weights.any(axis=0).sum()) if sends_rows(weights) else len(weights)


def summed(weights: Floats, rows: Floats32) -> Floats | Floats32:
    """What stands for `weights` (k, n) times `rows` (n, P): the sums (k, P), or the rows that count, where
    these are fewer bytes; `unfolded` makes the sums of either."""
    return rows[np.flatnonzero(weights.any(axis=0))] if sends_rows(weights) else weighted_sums(weights, rows)


def unfolded(found: Floats | Floats32, weights: Floats) -> Floats:
    """(k, P) the sums, whichever way `summed` put them."""
    if not sends_rows(weights):
        return found.astype(np.float64, copy=False)
    return weighted_sums(weights[:, weights.any(axis=0)], found.astype(np.float32, copy=False))
