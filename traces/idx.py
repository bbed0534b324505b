"""The idx format of MNIST, Fashion-MNIST and EMNIST: four files in a folder, plain or gzipped.

Memory is taken as the content of a file is read, and not by the size that its header states.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from emulator.errors import DataFileError
from traces.images import ImageSet

MAX_BYTES = 2**31
"""Most bytes of an idx file, as its header states them; no known file comes near."""

TRAIN, TEST = ("train",), ("t10k", "test")
IMAGES, LABELS = "images-idx3-ubyte", "labels-idx1-ubyte"

_UNSIGNED_BYTE = 0x08


def read_idx_folder(folder: Path) -> ImageSet:
    """Read the published split of an idx folder: `train-*` is train, `t10k-*` (or `test-*`) is test.

    All four headers, and then the labels, are read before any pixel; only one copy of the pixels is made.
    DataFileError if a file is missing, damaged, or does not match the others.
    """
    images, labels = (
        [_find(folder, prefixes, kind) for prefixes in (TRAIN, TEST)] for kind in (IMAGES, LABELS)
    )
    [train, _] = matching_shapes(folder, images, labels)
    label = np.concatenate([read_idx(path, 1) for path in labels]).astype(np.int64)
    content = bytearray()
    for path in images:
        _append(content, path, 3)
    return ImageSet(
        pixels=np.frombuffer(content, np.uint8).reshape(-1, *train[1:]),
        scale=1 / 255,
        labels=label,
        num_labels=int(label.max()) + 1,
        train=np.arange(train[0]),
        test=np.arange(train[0], len(label)),
    )


def matching_shapes(folder: Path, images: list[Path], labels: list[Path]) -> list[tuple[int, ...]]:
    """The shapes of the images of train and of test, as the headers of their files state them.

    DataFileError if a file is damaged, or does not match the others.
    """
    shapes = [read_idx_header(path, 3) for path in images]
    for images_path, labels_path, shape in zip(images, labels, shapes, strict=True):
        [num_labels] = read_idx_header(labels_path, 1)
        if num_labels != shape[0]:
            raise DataFileError(labels_path, f"{num_labels} labels for {shape[0]} images in {images_path}")
    train, test = shapes
    if train[1:] != test[1:]:
        raise DataFileError(folder, f"train images are {train[1:]}, test images {test[1:]}")
    return shapes


def idx_files(folder: Path) -> list[Path]:
    """The four files that `read_idx_folder` reads; DataFileError if one is missing."""
    return [_find(folder, prefixes, kind) for prefixes in (TRAIN, TEST) for kind in (IMAGES, LABELS)]


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The unsigned bytes of one idx file, an array with that number of dimensions.

    Raises DataFileError if it is not such a file.
    """
    content = bytearray()
    shape = _append(content, path, dimensions)
    return np.frombuffer(content, np.uint8).reshape(shape)


def read_idx_header(path: Path, dimensions: int) -> tuple[int, ...]:
    """The shape that the file's header states; DataFileError if it has another number of dimensions."""
    with opened_idx(path) as file:
        return _shape(path, file.read(4 + 4 * dimensions), dimensions)


def _append(content: bytearray, path: Path, dimensions: int) -> tuple[int, ...]:
    """Append the bytes of the file to `content`, and return their shape.

    Raises DataFileError if the file is shorter or longer than its header states.

    NOTE: in pieces, so that the memory used depends on the content of the file, and not on its header. The
    system moves a growing bytearray instead of copying it.
    """
    size = 4 + 4 * dimensions
    with opened_idx(path) as file:
        shape = _shape(path, file.read(size), dimensions)
        wanted = left = math.prod(shape)
        while left > 0 and (piece := file.read(min(left, 2**20))):
            content += piece
            left -= len(piece)
        held = f"only {size + wanted - left}: truncated" if left > 0 else "more"
        if left > 0 or file.read(1):
            raise DataFileError(path, f"the header states {_claim(shape, size)}, the file has {held}")
    return shape


@contextmanager
def opened_idx(path: Path) -> Iterator[BinaryIO]:
    """Open the file, unpacked if its name ends in .gz; DataFileError if it cannot be read or unpacked."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(path, f"truncated or damaged ({error})") from error


def _shape(path: Path, header: bytes, dimensions: int) -> tuple[int, ...]:
    """The shape that a header states.

    DataFileError if the header is invalid, a length is 0, or the size is above MAX_BYTES.
    """
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
            path,
            f"the header states {_claim(shape, size)}; every length must be above 0, and the file must have "
            f"at most {MAX_BYTES} bytes",
        )
    return shape


def _claim(shape: tuple[int, ...], header: int) -> str:
    return f"{' x '.join(map(str, shape))} ({header + math.prod(shape)} bytes)"


def _find(folder: Path, prefixes: tuple[str, ...], kind: str) -> Path:
    names = [f"{prefix}-{kind}{suffix}" for prefix in prefixes for suffix in ("", ".gz")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise DataFileError(folder, f"not an idx folder: it has none of {', '.join(names)}")
