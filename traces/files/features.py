"""`features.npy` and `targets.npy`: the samples of a trace folder, mapped into memory and never copied."""

from __future__ import annotations

import mmap
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from emulator.arrays import Bools, Floats32, Ints
from emulator.errors import DataFileError
from emulator.ports import Tokens
from emulator.storage.bounded import is_file

TARGETS = "targets.npy"

TYPES = (np.dtype(np.uint8), np.dtype("<f4"))

MOST_HEADER_BYTES = 2**16

_DAMAGED_HEADER = (
    EOFError,
    IndexError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    tokenize.TokenError,
)
"""What numpy lets pass of the errors of Python's parser, besides ValueError."""


class ValueRule(NamedTuple):
    """What the values of samples are to be: where `is_good`, an array of their shape; others `are`."""

    is_good: Callable[[np.ndarray], Bools]
    are: str

    def problem(self, sample: int, values: np.ndarray) -> str:
        """What is wrong with a sample that has these bad `values` (n,)."""
        return f"sample {sample}: has {len(values)} value(s) that are {self.are}, such as {values[0]}"

    def refuse(self, path: Path, values: np.ndarray, samples: Ints) -> None:
        """Raise DataFileError for the first of `samples` (n,) of which `values` (n, ...) has a bad value."""
        is_good = self.is_good(values)
        if not is_good.all():
            row = int(np.argwhere(~is_good)[0, 0])
            raise DataFileError(path, self.problem(int(samples[row]), values[row][~is_good[row]]))


FINITE = ValueRule(np.isfinite, "not finite")


def ids_below(vocabulary: int) -> ValueRule:
    """The rule that values are ids of the tokens of a vocabulary of that size."""
    return ValueRule(
        lambda values: (values >= 0) & (values < vocabulary) & (np.floor(values) == values),
        f"no ids of {vocabulary} tokens, whole numbers from 0 to {vocabulary - 1}",
    )


@dataclass(frozen=True)
class FeatureFile:
    """The samples of a trace: `values` (samples, *shape), uint8 or float32, mapped from the file `path`.

    A feature is a value times `factor` plus `offset`; these are None or float32 arrays that broadcast over a
    sample. `label_names` has the names of all `num_labels` classes. Values that are `tokens` are ids;
    `numbers` (samples, K), uint8 or float32, are targets that samples have beside their label; `objective`
    is what comes with the data, as a configuration has it.
    """

    values: np.ndarray
    factor: Floats32 | None
    offset: Floats32 | None
    num_labels: int
    label_names: tuple[str, ...]
    path: Path
    tokens: Tokens | None = None
    numbers: np.ndarray | None = None
    objective: Mapping[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(int(size) for size in self.values.shape[1:])

    def features(self, samples: Ints) -> Floats32:
        """Compute the features of some samples.

        Args:
            samples: row numbers of the file, of shape (n,).

        Returns:
            The features, float32 of shape (n, *shape).

        Raises:
            DataFileError: one of them is no id of a token, and all should be.
        """
        taken: Floats32 = self.values.take(samples, axis=0).astype(np.float32, copy=False)
        if self.tokens is not None:
            ids_below(self.tokens.vocabulary).refuse(self.path, taken, samples)
        if self.factor is not None:
            taken *= self.factor
        if self.offset is not None:
            taken += self.offset
        return taken

    @property
    def num_targets(self) -> int:
        """K, the number of targets of a sample."""
        return 0 if self.numbers is None else self.numbers.shape[1]

    def targets(self, samples: Ints) -> Floats32:
        """(n, K) the targets of some samples (n,)."""
        assert self.numbers is not None, "samples have targets"
        return self.numbers.take(samples, axis=0).astype(np.float32, copy=False)


def open_targets(path: Path, num_samples: int) -> np.ndarray:
    """Map the targets in an `.npy` file, read-only: (samples, K) uint8 or float32.

    DataFileError as of `open_features`, or unless each of `num_samples` samples has K finite ones.
    """
    values = open_features(path, "targets")
    if values.ndim != 2 or len(values) != num_samples:
        raise DataFileError(
            path,
            f"has the shape {values.shape}; it must be ({num_samples}, K), as features.npy has samples",
        )
    FINITE.refuse(path, values, np.arange(num_samples))
    return values


def open_features(path: Path, what: str = "features") -> np.ndarray:
    """Map the array in an `.npy` file, read-only; `what` its values are, for messages.

    Returns:
        (samples, *shape) uint8 or float32.

    Raises:
        DataFileError: the file is missing, is not an array of one of these types in C order with at least
            one sample of at least one dimension, or does not have the size that its header states.
    """
    if not is_file(path):
        raise DataFileError(path, "no such file")
    try:
        with path.open("rb") as file:
            shape, in_columns, dtype = _header(file)
            start, size = file.tell(), path.stat().st_size
            if dtype not in TYPES or in_columns:
                order = " in column-major order" if in_columns else ""
                raise DataFileError(
                    path, f"holds {dtype}{order}; {what} are uint8 or float32 in row-major order"
                )
            if len(shape) < 2 or min(shape) < 1:
                raise DataFileError(
                    path, f"has the shape {shape}; it must be (samples, *shape), with lengths of at least 1"
                )
            num_values = int(np.prod(shape, dtype=object))
            if size != start + num_values * dtype.itemsize:
                raise DataFileError(
                    path,
                    f"has {size} bytes, but its header states {shape} of {dtype}, "
                    f"{start + num_values * dtype.itemsize} bytes: truncated or damaged",
                )
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, *_DAMAGED_HEADER) as error:
        raise DataFileError(path, f"cannot be read as .npy ({' '.join(str(error).split())[:300]})") from error
    return np.frombuffer(mapping, dtype, num_values, start).reshape(shape)


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """Write the header of an `.npy` file in C order; returns the position of the first value."""
    npy.write_array_header_1_0(
        file, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    return file.tell()


def channels(shape: tuple[int, ...]) -> int:
    """The channels of a sample of that shape: its first dimension if it has one or three, else 1.

    >>> channels((64,)), channels((28, 28)), channels((3, 32, 32))
    (64, 1, 3)
    """
    return shape[0] if len(shape) in (1, 3) else 1


def per_channel(numbers: np.ndarray, shape: tuple[int, ...]) -> Floats32:
    """`numbers` (channels,) as float32 that broadcast over a sample of that shape.

    >>> per_channel(np.array([1.0, 2.0, 3.0]), (3, 32, 32)).shape
    (3, 1, 1)
    """
    trailing = (1,) * (len(shape) - 1) if len(shape) in (1, 3) else ()
    return numbers.astype(np.float32).reshape(-1, *trailing)


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The shape, whether it is in column-major order, and the type; ValueError if there is no header."""
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of the format is not known")
    shape, in_columns, dtype = read(file, max_header_size=MOST_HEADER_BYTES)
    return shape, in_columns, dtype
