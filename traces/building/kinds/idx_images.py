"""Idx files: MNIST, Fashion-MNIST, EMNIST and whatever else has their names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from traces.arrivals import SPLITS
from traces.building.decoding import MOST_PIXELS
from traces.building.dividing import DividedSettings, PixelSettings, divided
from traces.building.images import ImageBuilder
from traces.building.pixels import Encoded, FileRows
from traces.building.rows import Rows, samples_of
from traces.idx import matching_shapes, opened_idx, read_idx

NAME = re.compile(
    r"(emnist-(?P<set>[a-z]+)-)?(?P<split>train|t10k|test)-(?P<what>images-idx3|labels-idx1)-ubyte(\.gz)?"
)
WHAT = ("images-idx3", "labels-idx1")

HEADER_BYTES = 16
"""Bytes before the first image: what the file holds, and three sizes."""


class IdxSettings(DividedSettings, PixelSettings):
    """Which of several sets in the folder is taken, and how images are divided among clients."""

    dataset: str | None = Field(
        None, description="of several EMNIST sets in the folder this one, such as letters or balanced"
    )


class IdxImages(ImageBuilder):
    """Idx files as MNIST and EMNIST have them, plain or gzipped; clients by a partition, no times.

    The published split is kept. Pixels are taken as they are unless another size is asked for, and images
    are grey. EMNIST's images are stored with rows and columns exchanged, and are turned upright.
    """

    needs = "train-images-idx3-ubyte[.gz] and so on, or emnist-SET-train-...; needs --partition"
    licence = "that of the data set (MNIST: CC BY-SA 3.0 as commonly stated; Fashion-MNIST: MIT)"

    Settings = IdxSettings
    settings: IdxSettings

    def list_samples(self, root: Path) -> Rows:
        images, labels = self._files(root)
        shapes = matching_shapes(root, images, labels)
        rows, [_, *shape] = [number for number, _, _ in shapes], shapes[0]
        if math.prod(shape) > MOST_PIXELS:
            problem = f"its images have {math.prod(shape):,} pixels; at most {MOST_PIXELS:,} are read"
            raise DataFileError(images[0], problem)
        tally = self.tally()
        for path, number in zip(images, rows, strict=True):
            tally.add_rows(path, number, 1)
        known, label = np.unique(np.concatenate([read_idx(path, 1) for path in labels]), return_inverse=True)
        split = np.repeat(np.arange(2, dtype=np.int8), rows)
        return samples_of(
            IdxPixels(root, [path.name for path in images], rows, shape),
            client=divided(self.settings, label, split),
            label=(label, tuple(map(str, known.tolist()))),
            split=split,
        )

    def _files(self, root: Path) -> tuple[list[Path], list[Path]]:
        """The files of images and those of labels, of train and of test.

        InputError unless the folder has exactly one set.
        """
        by_set: dict[str, dict[str, Path]] = {}
        for path in sorted(root.iterdir()):
            if (match := NAME.fullmatch(path.name)) is not None:
                split = "train" if match["split"] == "train" else "test"
                by_set.setdefault(match["set"] or "", {}).setdefault(f"{split}-{match['what']}", path)
        wanted = self.settings.dataset
        if wanted is None and len(by_set) > 1:
            raise InputError(f"--root {root}: has several sets; give --dataset, one of {', '.join(by_set)}")
        if wanted is not None and wanted not in by_set:
            raise InputError(f"--dataset {wanted}: the folder has {', '.join(by_set) or 'none'}")
        if not by_set:
            raise InputError(f"--root {root}: has no train-images-idx3-ubyte or emnist-SET-train-images-...")
        [files] = by_set.values() if wanted is None else [by_set[wanted]]
        for name in (f"{split}-{what}" for split in SPLITS for what in WHAT):
            if name not in files:
                raise DataFileError(root, f"has no {name}-ubyte beside the other files of that set")
        images, labels = ([files[f"{split}-{what}"] for split in SPLITS] for what in WHAT)
        return images, labels


class IdxPixels(FileRows):
    """The images of some idx files, which may be compressed and so are read from the front."""

    in_order = True

    def __init__(self, root: Path, names: Sequence[str], rows: Sequence[int], shape: Sequence[int]) -> None:
        """The files `names` below `root`, with `rows` (files,) images of `shape` (height, width) each."""
        super().__init__(root, names, rows, f"{(*shape,)}")
        self._stored, self._turned = shape, names[0].startswith("emnist-")
        self.shape = (*shape[::-1],) if self._turned else (*shape,)

    def stream_file(self, file: int, rows: Ints) -> Iterator[Encoded]:
        path, (height, width) = self.root / self.names[file], self._stored
        size, number = height * width, self.starts[file + 1] - self.starts[file]
        with opened_idx(path) as opened:
            for row in rows.tolist():
                opened.seek(HEADER_BYTES + row * size)
                content = opened.read(size)
                if len(content) < size:
                    raise DataFileError(path, f"truncated: image {row + 1} of {number} is cut off")
                pixels = np.frombuffer(content, np.uint8).reshape(height, width)
                yield np.ascontiguousarray(pixels.T) if self._turned else pixels
