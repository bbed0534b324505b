"""Mean and deviation of columns, from blocks of rows: one pass, and the same digits for the same blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from emulator.arrays import Bools, Floats, Ints


class Moments:
    """The number, mean and sum of squared deviations of the values of F columns, each (F,).

    Blocks are merged by the formula of Chan, Golub and LeVeque (1979), so that no digits cancel. NaN is left
    out.

    >>> moments = Moments(1)
    >>> moments.add(np.array([[1.0], [3.0]]), None)
    >>> moments.add(np.array([[5.0]]), None)
    >>> moments.mean.tolist(), moments.deviation().round(3).tolist()
    ([3.0], [1.633])
    """

    def __init__(self, num_columns: int) -> None:
        self.count = np.zeros(num_columns)
        self.mean = np.zeros(num_columns)
        self.squares = np.zeros(num_columns)

    def add(self, block: np.ndarray, weight: Ints | Bools | None) -> None:
        """Take in a block of rows (n, F), each as often as `weight` (n,) says; None: once."""
        if weight is not None:
            chosen = weight > 0
            if not chosen.all():
                block, weight = block[chosen], weight[chosen]
            if (weight == 1).all():
                weight = None
        if len(block) == 0:
            return
        values = block.astype(np.float64)
        absent = np.isnan(values)
        if weight is None and not absent.any():
            count = np.full(values.shape[1], float(len(values)))
            mean = values.mean(axis=0)
            values -= mean
            self._merge(count, mean, np.einsum("ij,ij->j", values, values))
            return
        share = ~absent if weight is None else np.where(absent, 0, weight[:, None])
        values[absent] = 0
        count = share.sum(axis=0).astype(np.float64)
        mean = (values * share).sum(axis=0) / np.maximum(count, 1)
        values -= mean
        values *= values
        self._merge(count, mean, (values * share).sum(axis=0))

    def deviation(self) -> Floats:
        """(F,) the standard deviation; 1 for a column that is constant."""
        deviation: Floats = np.sqrt(self.squares / np.maximum(self.count, 1))
        # What is left of a constant after rounding is no deviation.
        constant = deviation <= np.abs(self.mean) * 1e-12
        return np.where(constant, 1.0, deviation)

    def merged(self, num_groups: int) -> Moments:
        """The moments of groups of neighbouring columns, all of one size: those of the values of a group.

        >>> moments = Moments(2)
        >>> moments.add(np.array([[1.0, 5.0], [3.0, 7.0]]), None)
        >>> moments.merged(1).mean.tolist(), moments.merged(1).squares.tolist()
        ([4.0], [20.0])
        """
        count, mean, squares = (
            values.reshape(num_groups, -1) for values in (self.count, self.mean, self.squares)
        )
        merged = Moments(num_groups)
        merged.count = count.sum(axis=1)
        merged.mean = (count * mean).sum(axis=1) / np.maximum(merged.count, 1)
        merged.squares = (squares + count * (mean - merged.mean[:, None]) ** 2).sum(axis=1)
        return merged

    def as_json(self) -> dict[str, Any]:
        """The state, exactly."""
        return {"count": self.count.tolist(), "mean": self.mean.tolist(), "squares": self.squares.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of `as_json`."""
        self.count, self.mean, self.squares = (np.array(state[key]) for key in ("count", "mean", "squares"))

    def _merge(self, count: Floats, mean: Floats, squares: Floats) -> None:
        total = self.count + count
        safe = np.maximum(total, 1)
        difference = mean - self.mean
        self.squares += squares + difference**2 * (self.count * count / safe)
        self.mean += difference * (count / safe)
        self.count = total
