"""Samples that are in memory as one array, as rows of `features.npy`, with their mean and deviation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from emulator.arrays import Bools
from emulator.errors import InputError
from emulator.storage.reading.shards import Batch
from traces.building import rules
from traces.building.bad_rows import BadRows
from traces.building.sums import ByteSums, Moments
from traces.building.table.encoders.encoding import BYTES, NUMBERS, Encoder
from traces.building.table.encoders.features import MOST_FEATURES, VALUES
from traces.files.features import channels

MOST_DIMENSIONS = 3

_CHANNELS = (1, 3, 4)
"""Channels that images have: grey, RGB, RGBA."""


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


class Samples(Encoder):
    """Encodes the rows of an array: bytes as they are, other numbers as float32.

    All channels are standardised: of a vector each of its numbers.
    """

    def __init__(self, values: np.ndarray, bad: BadRows) -> None:
        self.values = values
        self.bad = bad
        self.types = {}
        self.shape = values.shape[1:]
        self.dtype = BYTES if values.dtype == BYTES else NUMBERS
        self.rows = max(1, VALUES // math.prod(self.shape))
        what = "feature" if len(self.shape) == 1 else "channel"
        self.names = tuple(f"{what} {number}" for number in range(channels(self.shape)))
        self.shown = (f"{values.dtype} of shape {self.shape}",)

    def encode(self, batch: Batch, start: int, keep: Bools) -> np.ndarray:
        """Encode the samples of a batch; a value that is not finite, or is no number of 32 bits, is bad."""
        given = self.values[start : start + batch.num_rows]
        block = given
        if given.dtype != BYTES:
            with np.errstate(over="ignore", invalid="ignore"):
                block = given.astype("<f4")
            value, stored = (numbers.reshape(len(given), -1) for numbers in (given, block))
            cells = rules.Cells(value=value, stored=stored, index=self._index)
            kept = rules.FLOAT_SAMPLES if given.dtype.kind == "f" else rules.WHOLE_SAMPLES
            block[~rules.keep(kept, cells, self.bad, batch, start, keep)] = 0
        return block if keep.all() else block[keep]

    def _index(self, cell: tuple[int, int]) -> int | tuple[int, ...]:
        """Where a value is in its sample: one number, or those of all its dimensions."""
        index = tuple(map(int, np.unravel_index(cell[1], self.shape)))
        return index if len(index) > 1 else index[0]

    def sums(self, values: np.ndarray, weight: np.ndarray) -> ByteSums | Moments:
        if self.dtype == BYTES:
            return ByteSums.of(values, weight)
        of_channel = np.moveaxis(values.reshape(len(values), len(self.names), -1), 1, 2)
        size = of_channel.shape[1]
        return Moments.of(of_channel.reshape(-1, len(self.names)), np.repeat(weight, size))
