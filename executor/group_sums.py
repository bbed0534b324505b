"""Weighted sums of a wave's updates: what a rank sends of each task group, and the total over groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, weighted_sums


@dataclass(frozen=True)
class GroupWeights:
    """The weights of k sums over the n updates of a wave, cut by task group.

    `weights` (k, n). For each group, `models` has the rows of `weights` that are not all zero in it, and
    `of_group` the weights of its updates in these rows; a group without such rows is not in `of_group`.
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
        """Those of `groups` that have any weight, in their order."""
        return [number for number in groups if number in self.of_group]

    def total(self, packed: Mapping[int, Floats | Floats32], num_parameters: int) -> Floats:
        """(k, P) the sums over all groups, added in their order; `packed` has the `summed` of each group."""
        sums = np.zeros((len(self.weights), num_parameters))
        for number, weights in self.of_group.items():
            sums[self.models[number]] += unfolded(packed[number], weights)
        return sums


def sends_rows(weights: Floats) -> bool:
    """Whether the rows of non-zero weight take at most as many bytes as their sums by `weights` (k, n)."""
    return 4 * int(weights.any(axis=0).sum()) <= 8 * len(weights)


def sent_rows(weights: Floats) -> int:
    """The number of rows that `summed` returns."""
    return int(weights.any(axis=0).sum()) if sends_rows(weights) else len(weights)


def summed(weights: Floats, rows: Floats32) -> Floats | Floats32:
    """`weights` (k, n) times `rows` (n, P), as `unfolded` expects it.

    Either the sums (k, P), or the rows of non-zero weight, where these take no more bytes.
    """
    return rows[np.flatnonzero(weights.any(axis=0))] if sends_rows(weights) else weighted_sums(weights, rows)


def unfolded(packed: Floats | Floats32, weights: Floats) -> Floats:
    """(k, P) the sums by `weights` (k, n), given what `summed` returned for them."""
    if not sends_rows(weights):
        return packed.astype(np.float64, copy=False)
    return weighted_sums(weights[:, weights.any(axis=0)], packed.astype(np.float32, copy=False))
