"""Mean and standard deviation of each channel, from exact sums: the order of work changes no digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traces.files.features import channels


@dataclass(frozen=True)
class ChannelSums:
    """Over the values of some samples: how many a channel has, their sums, and the sums of their squares."""

    count: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]

    @staticmethod
    def of(samples: np.ndarray) -> ChannelSums:
        """The sums of `samples` (k, *shape), uint8."""
        number = channels(samples.shape[1:])
        flat = samples.reshape(len(samples), number, math.prod(samples.shape[1:]) // number)
        squared = np.multiply(flat, flat, dtype=np.uint16)  # at most 255 x 255
        return ChannelSums(
            count=flat.shape[0] * flat.shape[2],
            sums=tuple(flat.sum(axis=(0, 2), dtype=np.int64).tolist()),
            squares=tuple(squared.sum(axis=(0, 2), dtype=np.int64).tolist()),
        )

    def __add__(self, other: ChannelSums) -> ChannelSums:
        return ChannelSums(
            self.count + other.count,
            tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            tuple(a + b for a, b in zip(self.squares, other.squares, strict=True)),
        )

    def mean(self, scale: float) -> tuple[float, ...]:
        """The mean of each channel, times `scale`; 0 of no values."""
        return tuple(total * scale / max(self.count, 1) for total in self.sums)

    def deviation(self, scale: float) -> tuple[float, ...]:
        """The standard deviation of each channel, times `scale`; 1 where all values are the same.

        >>> ChannelSums.of(np.array([[[0, 2], [0, 2]]], np.uint8)).deviation(10.0)
        (10.0,)
        """
        return tuple(
            scale * math.sqrt(spread) / self.count if spread > 0 else 1.0 for spread in self._spreads()
        )

    def as_list(self) -> list[Any]:
        """The sums as JSON values, which `from_list` reads."""
        return [self.count, list(self.sums), list(self.squares)]

    @staticmethod
    def from_list(values: Sequence[Any]) -> ChannelSums:
        """Inverse of `as_list`; ValueError if `values` are none."""
        match values:
            case [int(count), [*sums], [*squares]]:
                return ChannelSums(count, tuple(map(int, sums)), tuple(map(int, squares)))
        raise ValueError(f"{values!r} are not sums")

    def _spreads(self) -> list[int]:
        """The variance of each channel times the square of the number of values: a whole number."""
        return [
            self.count * square - total * total for total, square in zip(self.sums, self.squares, strict=True)
        ]
