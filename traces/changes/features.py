"""What is done to features: rotations, noise, values that are replaced, and mixes, applied as a row is read.

So are lines that targets are mapped by, which change no feature.
A row names a *chain*: an operation, and the chain that comes before it; chain 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.arrivals import NOISE_NUMBERS
from traces.changes.mixing import Map, drawn_map
from traces.changes.settings import Mix, Noise, OfFeatures, Replace, Rotate, Target


@dataclass(frozen=True)
class Entry:
    """An operation with its magnitude, and where its own random numbers begin; of a mix, its seed."""

    operation: OfFeatures
    magnitude: float
    start: int


@dataclass
class FeatureChanges:
    """The chains of operations that rows name, and the tables of random numbers that noise is read from.

    `normal` and `uniform` (numbers,) are float32, standard normal and in [0, 1). `entries[entry_of[c]]` is
    the last operation of chain c, and `parent_of[c]` the chain before it. `maps` has those of mixes, by
    entry: they are drawn as entries are added, since threads read features.
    """

    shape: tuple[int, ...]
    normal: Floats32
    uniform: Floats32
    entries: list[Entry] = field(default_factory=list)
    maps: dict[int, Map] = field(default_factory=dict)
    entry_of: Ints = field(default_factory=lambda: np.full(1, -1))
    parent_of: Ints = field(default_factory=lambda: np.full(1, -1))

    def digested(self) -> tuple[object, ...]:
        """What a digest reads: the entries and the chains."""
        entries = [(entry.operation.model_dump(), entry.magnitude, entry.start) for entry in self.entries]
        return entries, self.entry_of.tolist(), self.parent_of.tolist()

    def add_entries(self, operations: Sequence[OfFeatures], magnitudes: Floats, starts: Ints) -> int:
        """Add an entry for each operation at each magnitude, and return the number of the first.

        That of operation o at magnitude m is the first + m * len(operations) + o. `starts` (magnitudes,
        operations) says where the random numbers of each begin.
        """
        first = len(self.entries)
        for magnitude, row in zip(magnitudes.tolist(), starts.tolist(), strict=True):
            for operation, start in zip(operations, row, strict=True):
                if isinstance(operation, Mix):
                    self.maps[len(self.entries)] = drawn_map(operation.mix, magnitude, self.shape, start)
                self.entries.append(Entry(operation, magnitude, start))
        return first

    def extended(self, chain: Ints, some: Bools, entry: Ints) -> Ints:
        """(n,) the chains (n,) of rows, with an entry (n,) added to `some` of them."""
        width = len(self.entries) + 1
        keys, number = np.unique(chain[some] * width + entry[some], return_inverse=True)
        added = len(self.entry_of) + number.ravel()
        self.entry_of = np.append(self.entry_of, keys % width)
        self.parent_of = np.append(self.parent_of, keys // width)
        extended = chain.copy()
        extended[some] = added
        return extended

    def apply(self, features: Floats32, chain: Ints, sample: Ints) -> None:
        """Change features (n, *shape) in place, each by its chain (n,).

        Args:
            features: the features, float32.
            chain: the chain of each row.
            sample: a random number of the sample of each, in [0, 2^32): its own noise begins there.
        """
        for rows, number in self._in_order(chain):
            features[rows] = self._changed(features[rows], number, sample[rows])

    def apply_to_targets(self, targets: Floats32, chain: Ints) -> None:
        """Change targets (n, K), float32, in place, each row by its chain (n,)."""
        for rows, number in self._in_order(chain):
            entry = self.entries[number]
            if isinstance(entry.operation, Target):
                line, magnitude = entry.operation.target, entry.magnitude
                scale, shift = magnitude * (line.scale - 1), magnitude * line.shift
                targets[rows] += np.float32(scale) * targets[rows] + np.float32(shift)

    def _in_order(self, chain: Ints) -> Iterator[tuple[Ints, int]]:
        """The entries of chains (n,), each behind those before it, with the rows that have it there."""
        rows = np.flatnonzero(chain)
        present = chain[rows]
        levels = []  # the entries of the chains, from the last one to the first
        while len(rows):
            levels.append((rows, self.entry_of[present]))
            present = self.parent_of[present]
            rows, present = rows[present > 0], present[present > 0]
        for some, entry in reversed(levels):
            for number in np.unique(entry).tolist():
                yield some[entry == number], number

    def _changed(self, features: Floats32, number: int, sample: Ints) -> Floats32:
        """(n, *shape) the features after the operation of an entry."""
        entry = self.entries[number]
        match entry.operation:
            case Rotate(rotate=degrees):
                return rotated(features, degrees * entry.magnitude)
            case Noise(noise=deviation):
                drawn = self._drawn(self.normal, entry, sample)
                return np.asarray(features + np.float32(entry.magnitude * deviation) * drawn)
            case Replace(replace=(low, high)):
                drawn = self._drawn(self.uniform, entry, sample)
                new = np.float32(low) + np.float32(high - low) * drawn
                return np.asarray(features + np.float32(entry.magnitude) * (new - features))
            case Mix():
                return self.maps[number](features)
            case Target():
                return features

    def _drawn(self, table: Floats32, entry: Entry, sample: Ints) -> Floats32:
        """(n, *shape) each sample's own stretch of a table of random numbers, for one entry."""
        windows = np.lib.stride_tricks.sliding_window_view(table, prod(self.shape))
        return windows[(sample + entry.start) % len(windows)].reshape(len(sample), *self.shape)


def empty_feature_changes(shape: tuple[int, ...], normal: Floats32, streams: RandomStreams) -> FeatureChanges:
    """No chain yet; `normal` is the table of standard normal numbers that sensor noise is read from."""
    uniform = streams.generator("uniform").random(NOISE_NUMBERS, dtype=np.float32)
    return FeatureChanges(shape, normal, uniform)


def check_features(
    operation: OfFeatures, shape: tuple[int, ...], key: str, *, integers: bool, num_targets: int = 0
) -> None:
    """ConfigurationError if samples of that shape, whole numbers or without targets, cannot be changed so."""
    if isinstance(operation, Target):
        if num_targets == 0:
            raise ConfigurationError(
                f"{key}: target: the samples here have no targets beside their label; choices: a trace "
                f"folder with targets.npy, or a change of labels or features, such as 'permute'"
            )
        return
    if integers:
        name = type(operation).__name__.lower()
        raise ConfigurationError(
            f"{key}: {name}: the samples here are whole numbers, such as tokens, which would become others; "
            f"let shares of labels drift, or with training.objective = 'labels' change labels, by 'permute'"
        )
    if isinstance(operation, Rotate) and (len(shape) not in (2, 3) or min(shape[-2:]) < 2):
        raise ConfigurationError(
            f"{key}: rotate turns images, of shape (height, width) or (channels, height, width); the samples "
            f"here have shape {shape}"
        )
    if prod(shape) >= NOISE_NUMBERS:
        raise ConfigurationError(
            f"{key}: samples of shape {shape} have {prod(shape)} features; fewer than {NOISE_NUMBERS} are "
            f"supported"
        )


def rotated(features: Floats32, degrees: float) -> Floats32:
    """Images turned about their centre, counter-clockwise, by linear interpolation; outside them is 0.

    As scipy's `ndimage.rotate(..., reshape=False, order=1)` does it, but so that an image does not depend on
    those it is turned with.

    Args:
        features: images (n, height, width) or (n, channels, height, width), float32.
        degrees: the angle.

    >>> rotated(np.array([[[1, 2], [3, 4]]], dtype=np.float32), 90).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]
    """
    height, width = features.shape[-2:]
    places, weights = _taps(height, width, degrees)
    flat = features.reshape(-1, height * width)
    turned = np.zeros_like(flat)
    for place, weight in zip(places, weights, strict=True):
        turned += weight * flat.take(place, axis=1)
    return turned.reshape(features.shape)


@cache
def _taps(height: int, width: int, degrees: float) -> tuple[Ints, Floats]:
    """(4, pixels) the pixels that each pixel of a turned image is made of, and (4, pixels) their weights."""
    angle = np.deg2rad(degrees)
    # Of a right angle the sine and cosine are whole numbers.
    sine, cosine = (np.round(value, 12) for value in (np.sin(angle), np.cos(angle)))
    row, column = np.divmod(np.arange(height * width), width)
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    up, left = row - middle_row, column - middle_column
    from_row = np.round(cosine * up + sine * left + middle_row, 9)
    from_column = np.round(-sine * up + cosine * left + middle_column, 9)
    inside = (from_row >= 0) & (from_row <= height - 1) & (from_column >= 0) & (from_column <= width - 1)
    top, first = np.floor(from_row).astype(np.int64), np.floor(from_column).astype(np.int64)
    places, weights = [], []
    for lower in (0, 1):
        for right in (0, 1):
            weight = np.abs(1 - lower - (from_row - top)) * np.abs(1 - right - (from_column - first))
            places.append(np.clip(top + lower, 0, height - 1) * width + np.clip(first + right, 0, width - 1))
            weights.append(np.where(inside, weight, 0.0))
    return np.array(places), np.array(weights, dtype=np.float32)
