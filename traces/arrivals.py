"""The rows of a trace as plain columns: client, split, arrival, label, image and start of the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from emulator.arrays import Ints
from emulator.errors import InputError
from emulator.ports import Split
from traces.images import ImageSet

SPLITS: tuple[Split, ...] = ("train", "test")

TestOn = Literal["present", "next"]

STEPS_AHEAD: Final[Mapping[TestOn, int]] = {"present": 0, "next": 1}
"""Data steps after the present one at which the newest test samples arrive that clients are tested on."""

NOISE_NUMBERS = 2**20
"""Length of the shared table of standard normal numbers from which sensor noise is read."""


@dataclass(frozen=True)
class Arrivals:
    """The columns of a trace's table, each of shape (rows,); a source may give the rows in any order."""

    client: npt.NDArray[np.int32]
    split: npt.NDArray[np.int8]  # index into SPLITS
    arrival: npt.NDArray[
        np.signedinteger
    ]  # data step; what a client owns from the start arrives at or before 0
    label: npt.NDArray[np.integer]
    image: npt.NDArray[np.int32]
    noise_start: npt.NDArray[np.signedinteger]  # where the sample's noise begins in the table of noise

    def take(self, rows: Ints) -> Arrivals:
        """The rows with these numbers, array of shape (n,)."""
        return Arrivals(**{name: getattr(self, name)[rows] for name in DTYPES})


DTYPES: Final[Mapping[str, np.dtype]] = {
    "client": np.dtype(np.int32),
    "split": np.dtype(np.int8),
    "arrival": np.dtype(np.int32),
    "label": np.dtype(np.int16),
    "image": np.dtype(np.int32),
    "noise_start": np.dtype(np.int32),
}
"""The types of the columns of `Arrivals`, in the order in which a digest reads them."""


def arrivals_of(**columns: np.ndarray) -> Arrivals:
    """The rows with these columns, each of shape (rows,), converted to the types of `Arrivals`."""
    return Arrivals(**{name: columns[name].astype(dtype) for name, dtype in DTYPES.items()})


def concatenated(parts: Sequence[Arrivals]) -> Arrivals:
    """The rows of all `parts`, of which there is at least one."""
    return Arrivals(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in DTYPES})


def num_noise_starts(images: ImageSet) -> int:
    """The upper bound, excluded, of `noise_start`: below it, the table of noise covers a whole image.

    Raises InputError if the images have as many pixels as the table of noise has numbers, or more.
    """
    pixels = int(np.prod(images.shape))
    if pixels >= NOISE_NUMBERS:
        raise InputError(
            f"trace: images of {' x '.join(map(str, images.shape))} have {pixels} pixels; "
            f"fewer than {NOISE_NUMBERS} are supported"
        )
    return NOISE_NUMBERS - pixels
