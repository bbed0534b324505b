"""Mean and deviation of what is written, from blocks of rows: exact of bytes, in one pass of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from traces.files.features import channels

SCALE = 1 / 255
"""Factor of the values of bytes."""


@dataclass(frozen=True)
class ByteSums:
    """Of the bytes of each channel: how many, their sums, and the sums of their squares, whole numbers.

    The order of work changes no digit.
    """

    count: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]

    @staticmethod
    def none(num_channels: int) -> ByteSums:
        """The sums of no bytes."""
        return ByteSums(0, (0,) * num_channels, (0,) * num_channels)

    @staticmethod
    def of(samples: np.ndarray, weight: np.ndarray | None = None) -> ByteSums:
        """The sums of `samples` (k, *shape), uint8, each as often as `weight` (k,) says; None: once."""
        number = channels(samples.shape[1:])
        if weight is not None:
            total = ByteSums.none(number)
            for times in map(int, np.unique(weight[weight > 0])):
                part = ByteSums.of(samples[weight == times])
                sums, squares = ([value * times for value in each] for each in (part.sums, part.squares))
                total += ByteSums(part.count * times, tuple(sums), tuple(squares))
            return total
        flat = samples.reshape(len(samples), number, math.prod(samples.shape[1:]) // number)
        squared = np.multiply(flat, flat, dtype=np.uint16)  # at most 255 x 255
        sums, squares = (each.sum(axis=(0, 2), dtype=np.int64).tolist() for each in (flat, squared))
        return ByteSums(flat.shape[0] * flat.shape[2], tuple(sums), tuple(squares))

    def __add__(self, other: ByteSums) -> ByteSums:
        sums, squares = (
            tuple(a + b for a, b in zip(*pair, strict=True))
            for pair in ((self.sums, other.sums), (self.squares, other.squares))
        )
        return ByteSums(self.count + other.count, sums, squares)

    def standard(self, scale: float = SCALE) -> tuple[Floats, Floats]:
        """(channels,) the mean of each channel and its standard deviation, times `scale`.

        The deviation is 1 where all values are the same.

        >>> ByteSums.of(np.array([[[0, 2], [0, 2]]], np.uint8)).standard(10.0)
        (array([10.]), array([10.]))
        """
        # The variance times the square of the count is a whole number.
        count, both = max(self.count, 1), zip(self.sums, self.squares, strict=True)
        spreads = [self.count * square - total * total for total, square in both]
        deviations = [scale * math.sqrt(spread) / count if spread > 0 else 1.0 for spread in spreads]
        return np.array([total * scale / count for total in self.sums]), np.array(deviations)

    def as_json(self) -> dict[str, Any]:
        return {"count": self.count, "sums": list(self.sums), "squares": list(self.squares)}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> ByteSums:
        """Inverse of `as_json`; KeyError, TypeError or ValueError if `state` is none."""
        sums, squares = (tuple(map(int, state[key])) for key in ("sums", "squares"))
        return cls(int(state["count"]), sums, squares)


class Moments:
    """The number, mean and sum of squared deviations of the values of F columns, each (F,).

    Blocks are merged by the formula of Chan, Golub and LeVeque (1979), so that no digits cancel; the same
    blocks give the same digits. NaN is left out.

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

    @classmethod
    def of(cls, block: np.ndarray, weight: Ints | Bools | None) -> Moments:
        """The moments of a block of rows (n, F), each as often as `weight` (n,) says; None: once."""
        moments = cls(block.shape[1])
        moments.add(block, weight)
        return moments

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

    def __add__(self, other: Moments) -> Moments:
        total = Moments.from_json(vars(self))
        total._merge(other.count, other.mean, other.squares)
        return total

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
        return {key: value.tolist() for key, value in vars(self).items()}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Moments:
        """Inverse of `as_json`, of which it makes a copy."""
        moments = cls(len(state["count"]))
        moments.restore(state)
        return moments

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `as_json` made."""
        self.count, self.mean, self.squares = (np.array(state[key]) for key in ("count", "mean", "squares"))

    def _merge(self, count: Floats, mean: Floats, squares: Floats) -> None:
        total = self.count + count
        safe = np.maximum(total, 1)
        difference = mean - self.mean
        self.squares += squares + difference**2 * (self.count * count / safe)
        self.mean += difference * (count / safe)
        self.count = total


Sums = ByteSums | Moments
"""What is known of some blocks; `+` adds that of the next ones. JSON has it exactly."""
