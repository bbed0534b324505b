"""Samples that are in memory as one array, as rows of `features.npy`, with their mean and deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from emulator.arrays import Bools
from emulator.errors import InputError
from emulator.numbers import LARGEST
from emulator.storage.reading.shards import Batch
from traces.building.bad_rows import BadRows
from traces.building.statistics import ChannelSums
from traces.building.table.encoders.encoding import Encoding
from traces.building.table.encoders.features import MOST_FEATURES, VALUES
from traces.building.table.encoders.statistics import OfNumbers
from traces.files.features import channels

MOST_EXACT = 2**24
"""Whole numbers up to that size are numbers of 32 bits without loss."""

MOST_DIMENSIONS = 3

_CHANNELS = (1, 3, 4)
"""Channels that images have: grey, RGB, RGBA."""

_BYTE = np.dtype(np.uint8)
_SCALE = 1 / 255


def as_samples(features: Any) -> np.ndarray:
    """The samples (n, *shape) as an array of numbers, which is not copied where it is one already.

    Args:
        features: an array of numpy, a tensor of torch, or anything that numpy makes an array of.

    Raises:
        InputError: it has no numbers, masked ones, or a shape that is not of vectors or images.
    """
    if hasattr(features, "toarray"):
        raise InputError("features: a sparse matrix; give features.toarray()")
    if isinstance(features, np.ma.MaskedArray):
        raise InputError("features: a masked array; fill it first, with features.filled(value)")
    if hasattr(features, "detach"):  # a tensor, which may be on a device or need a gradient
        features = features.detach().cpu()
        features = (features.float() if str(features.dtype) == "torch.bfloat16" else features).numpy()
    try:
        values = np.asarray(features)
    except ValueError as error:  # lists of unequal length
        raise InputError(f"features: {' '.join(str(error).split())[:300]}") from error
    if values.dtype.kind not in "buif":
        raise InputError(
            f"features: are {values.dtype}; must be numbers: uint8 for bytes of images, or floats of any size"
        )
    _refuse_shape(values.shape)
    return values


def _refuse_shape(shape: tuple[int, ...]) -> None:
    """Raise InputError unless an array of `shape` has samples that are vectors or images, channels first."""
    shown = f"features: have the shape {shape}"
    if len(shape) < 2 or len(shape) > 1 + MOST_DIMENSIONS or min(shape[1:]) < 1:
        raise InputError(
            f"{shown}; must be (samples, features), (samples, height, width) or (samples, channels, height, "
            f"width)"
        )
    if len(shape) == 2 and shape[1] > MOST_FEATURES:
        raise InputError(
            f"{shown}; a vector has at most {MOST_FEATURES} numbers, and images keep their height and width"
        )
    if len(shape) == 4 and shape[3] in _CHANNELS and shape[1] not in _CHANNELS:
        raise InputError(
            f"{shown}, with the channels last; must be channels first: features.transpose(0, 3, 1, 2)"
        )


class Samples:
    """Encodes the rows of an array: bytes as they are, other numbers as float32.

    Attributes:
        names: The names of the channels: of a vector, of each of its numbers.
        is_number: Whether each channel is standardised: all are.
    """

    def __init__(self, values: np.ndarray, bad: BadRows) -> None:
        self.values = values
        self.bad = bad
        self.types: Mapping[str, pa.DataType] = {}
        shape = values.shape[1:]
        what = "feature" if len(shape) == 1 else "channel"
        self.names = tuple(f"{what} {number}" for number in range(channels(shape)))
        self.is_number: Bools = np.ones(len(self.names), dtype=np.bool_)

    @property
    def rows(self) -> int:
        """Rows to encode at once."""
        return max(1, VALUES // math.prod(self.values.shape[1:]))

    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray:
        """Encode the samples of a batch; see `Numbers.encode`.

        Returns:
            (kept rows, *shape) uint8 or float32; bad rows, if they may be left out, are zero.

        Raises:
            DataFileError: a value is not finite, or is no number of 32 bits.
        """
        given = self.values[start : start + batch.num_rows]
        given = given if keep.all() else given[keep]
        if given.dtype == _BYTE:
            return given
        with np.errstate(over="ignore", invalid="ignore"):
            block: np.ndarray = given.astype("<f4")
        wrong = _lost(given, block)
        bad = wrong.reshape(len(block), -1).any(axis=1)
        if bad.any():
            rows = np.flatnonzero(keep)
            of_batch = np.zeros(batch.num_rows, dtype=np.bool_)
            of_batch[rows[bad]] = True
            place = {int(row): number for number, row in enumerate(rows)}
            self.bad.refuse(batch, start, of_batch, partial(_problem, given, wrong, place))
            block[bad] = 0
        return block


def _lost(given: np.ndarray, block: np.ndarray) -> Bools:
    """Whether each value (k, *shape) is lost as the number of 32 bits that `block` has of it."""
    kind = given.dtype.kind
    if kind != "f" and given.dtype.itemsize < 4:
        return np.zeros(given.shape, dtype=np.bool_)
    wrong: Bools = ~(np.abs(block) <= LARGEST) if kind == "f" else given > MOST_EXACT
    return wrong | (given < -MOST_EXACT) if kind == "i" else wrong


def _problem(given: np.ndarray, wrong: Bools, place: Mapping[int, int], row: int) -> str:
    """What is wrong with the row of a batch whose number among `given` is `place[row]`."""
    number = place[row]
    index = tuple(int(axis[0]) for axis in np.nonzero(wrong[number]))
    value = given[number][index]
    shown = f"{value} at {index if len(index) > 1 else index[0]} of its features"
    if given.dtype.kind != "f":
        return f"{shown}: a whole number must be at most {MOST_EXACT} in size, to be exact as one of 32 bits"
    return f"{shown}: must be a finite number of 32 bits, up to {LARGEST:g}"


class OfSamples(OfNumbers):
    """Mean and deviation of each channel, of samples of floats."""

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        values = block.reshape(len(block), len(self.encoder.names), -1)
        size = values.shape[2]
        super().add(
            np.moveaxis(values, 1, 2).reshape(-1, values.shape[1]),
            weight if size == 1 else np.repeat(weight, size),
        )


class OfBytes:
    """Mean and deviation of each channel, of samples of bytes, from exact sums."""

    def __init__(self, num_channels: int) -> None:
        self.sums = ChannelSums(0, (0,) * num_channels, (0,) * num_channels)

    def add(self, block: np.ndarray, weight: np.ndarray) -> None:
        """Take in a block (n, *shape), each sample as often as `weight` (n,) says."""
        for times in np.unique(weight[weight > 0]).tolist():
            sums = ChannelSums.of(block[weight == times])
            self.sums += ChannelSums(
                sums.count * times,
                tuple(value * times for value in sums.sums),
                tuple(value * times for value in sums.squares),
            )

    def as_json(self) -> dict[str, Any]:
        """The state, exactly."""
        return {"sums": self.sums.as_list()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of `as_json`."""
        self.sums = ChannelSums.from_list(state["sums"])

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the deviation of each channel, times 1/255."""
        return np.array(self.sums.mean(_SCALE)), np.array(self.sums.deviation(_SCALE))


def encoding(values: np.ndarray, bad: BadRows) -> Encoding:
    """How the samples `values` (n, *shape) are written."""
    samples = Samples(values, bad)
    is_bytes = values.dtype == _BYTE
    shape = values.shape[1:]
    return Encoding(
        samples,
        OfBytes(len(samples.names)) if is_bytes else OfSamples(samples, (len(samples.names),)),
        shape,
        _BYTE if is_bytes else np.dtype("<f4"),
        (f"{values.dtype} of shape {shape}",),
    )
