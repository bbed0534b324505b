"""The idx format of MNIST, Fashion-MNIST and EMNIST: four files in a folder, plain or gzipped.

A header is checked against the file before anything of its size is allocated.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from emulator.arrays import Ints
from emulator.errors import DataFileError
from traces.images import ImageSet

MAX_BYTES = 2**31
"""No idx file we know comes near; a header that claims more is refused."""

_UNSIGNED_BYTE = 0x08


def read_idx_folder(folder: Path) -> ImageSet:
    """The published split of an idx folder: `train-*` is train, `t10k-*` (or `test-*`) is test."""
    train_pixels, train_labels = _read_pair(folder, ("train",))
    test_pixels, test_labels = _read_pair(folder, ("t10k", "test"))
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


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The unsigned bytes of one idx file with so many dimensions; DataFileError when it is not that."""
    content = _content(path)
    header = 4 + 4 * dimensions
    if len(content) < header:
        raise DataFileError(path, f"truncated: {len(content)} bytes, the idx header alone has {header}")
    if content[0] != 0 or content[1] != 0 or content[2] != _UNSIGNED_BYTE or content[3] != dimensions:
        raise DataFileError(
            path,
            f"magic number {content[:4].hex()} is not that of an idx file of unsigned bytes in "
            f"{dimensions} dimension(s) ({bytes([0, 0, _UNSIGNED_BYTE, dimensions]).hex()})",
        )
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=dimensions, offset=4))
    claimed = header
    for size in shape:
        claimed = header + (claimed - header or 1) * size
    if 0 in shape or claimed != len(content):
        raise DataFileError(
            path,
            f"the header says {' x '.join(map(str, shape))} ({claimed} bytes), the file has {len(content)}: "
            f"{'truncated' if claimed > len(content) else 'not an idx file of that size'}",
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _read_pair(folder: Path, prefixes: tuple[str, ...]) -> tuple[np.ndarray, Ints]:
    images_path = _find(folder, prefixes, "images-idx3-ubyte")
    labels_path = _find(folder, prefixes, "labels-idx1-ubyte")
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


def _content(path: Path) -> bytes:
    try:
        if path.suffix != ".gz":
            if path.stat().st_size > MAX_BYTES:
                raise DataFileError(path, f"larger than {MAX_BYTES} bytes")
            return path.read_bytes()
        with gzip.open(path) as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(path, f"truncated or damaged ({error})") from error
    if len(content) > MAX_BYTES:
        raise DataFileError(path, f"unpacks to more than {MAX_BYTES} bytes")
    return content
