"""The idx format of MNIST, Fashion-MNIST and EMNIST: four files in a folder, plain or gzipped.

A header is checked against the file before anything of its size is allocated.
"""

from __future__ import annotations

import gzip
import math
import zlib
from io import BufferedIOBase
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError
from traces.images import ImageSet

MAX_BYTES = 2**31
"""No idx file we know comes near; a header that claims more is refused."""

TRAIN, TEST = ("train",), ("t10k", "test")
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"

_UNSIGNED_BYTE = 0x08


def read_idx_folder(folder: Path) -> ImageSet:
    """The published split of an idx folder: `train-*` is train, `t10k-*` (or `test-*`) is test."""
    train_pixels, train_labels = _read_pair(folder, TRAIN)
    test_pixels, test_labels = _read_pair(folder, TEST)
    if train_pixels.shape[1:] != test_pixels.shape[1:]:
        raise DataFileError(
            folder, f"train images are {train_pixels.shape[1:]}, test images {test_pixels.shape[1:]}"
        )
    labels = np.concatenate([train_labels, test_labels])
    return ImageSet(
        pixels=np.concatenate([train_pixels, test_pixels]),
        scale=1 / 255,
        labels=labels,
        num_labels=int(labels.max()) + 1,
        train=np.arange(len(train_labels)),
        test=np.arange(len(train_labels), len(labels)),
    )


def idx_files(folder: Path) -> list[Path]:
    """The four files that `read_idx_folder` reads; DataFileError where there are not as many."""
    return [_find(folder, prefixes, kind) for prefixes in (TRAIN, TEST) for kind in (IMAGES, LABELS)]


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The unsigned bytes of one idx file with so many dimensions; DataFileError when it is not that."""
    size = 4 + 4 * dimensions
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(size)
            shape = _shape(path, header, dimensions)
            content = _at_most(file, math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(path, f"truncated or damaged ({error})") from error
    if len(content) != math.prod(shape):
        held = f"only {size + len(content)}: truncated" if len(content) < math.prod(shape) else "more"
        raise DataFileError(path, f"the header says {_claim(shape, size)}, the file has {held}")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _shape(path: Path, header: bytes, dimensions: int) -> tuple[int, ...]:
    """The shape a header claims; DataFileError when it is no header, or claims nothing or too much."""
    size = 4 + 4 * dimensions
    if len(header) < size:
        raise DataFileError(path, f"truncated: {len(header)} bytes, the idx header alone has {size}")
    if header[:4] != bytes([0, 0, _UNSIGNED_BYTE, dimensions]):
        raise DataFileError(
            path,
            f"magic number {header[:4].hex()} is not that of an idx file of unsigned bytes in "
            f"{dimensions} dimension(s) ({bytes([0, 0, _UNSIGNED_BYTE, dimensions]).hex()})",
        )
    shape = tuple(int(length) for length in np.frombuffer(header, ">u4", count=dimensions, offset=4))
    if 0 in shape or size + math.prod(shape) > MAX_BYTES:
        raise DataFileError(
            path, f"the header says {_claim(shape, size)}; it must be more than none and at most {MAX_BYTES}"
        )
    return shape


def _claim(shape: tuple[int, ...], header: int) -> str:
    return f"{' x '.join(map(str, shape))} ({header + math.prod(shape)} bytes)"


def _at_most(file: BufferedIOBase, size: int) -> bytes:
    """The next `size` bytes, or those that are there; memory follows what is there, not what was asked."""
    parts = []
    while size > 0 and (part := file.read(min(size, 2**20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _read_pair(folder: Path, prefixes: tuple[str, ...]) -> tuple[np.ndarray, Ints]:
    images_path = _find(folder, prefixes, IMAGES)
    labels_path = _find(folder, prefixes, LABELS)
    pixels = read_idx(images_path, 3)
    labels = read_idx(labels_path, 1).astype(np.int64)
    if len(pixels) != len(labels):
        raise DataFileError(labels_path, f"{len(labels)} labels for {len(pixels)} images in {images_path}")
    return pixels, labels


def _find(folder: Path, prefixes: tuple[str, ...], kind: str) -> Path:
    names = [f"{prefix}-{kind}{suffix}" for prefix in prefixes for suffix in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataFileError(folder, f"not an idx folder: it has none of {', '.join(names)}")
