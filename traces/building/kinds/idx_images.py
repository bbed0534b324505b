"""Idx files: MNIST, Fashion-MNIST, EMNIST and whatever else has their names."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.plugins import Settings
from traces.building.decoding import MOST_PIXELS, Decoder
from traces.building.dividing import DividedPixelSettings, divided
from traces.building.images import ImageBuilder
from traces.building.pixels import Encoded, Pixels
from traces.building.rows import Rows
from traces.idx import read_idx, read_idx_header

NAME = re.compile(
    r"(?P<set>emnist-[a-z]+-)?(?P<split>train|t10k|test)-(?P<what>images-idx3|labels-idx1)-ubyte(\.gz)?"
)


class IdxSettings(DividedPixelSettings):
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

    Settings: ClassVar[type[Settings]] = IdxSettings
    settings: IdxSettings

    def shape(self, root: Path) -> tuple[int, ...]:
        if self.settings.size is not None:
            return (self.settings.size, self.settings.size)
        first = next(iter(self._files(root).values()))
        height, width = read_idx_header(first[0], 3)[1:]
        return (width, height) if _is_emnist(first[0]) else (height, width)

    def decoder(self) -> Decoder:
        return Decoder(self.settings.size, grey=True)

    def list_samples(self, root: Path) -> Rows:
        files = self._files(root)
        labels, shapes, tally = [], [], self.tally()
        for images, of in files.values():
            shape, [num_labels] = read_idx_header(images, 3), read_idx_header(of, 1)
            if num_labels != shape[0]:
                raise DataFileError(of, f"{num_labels} labels for {shape[0]} images in {images}")
            if shape[1] * shape[2] > MOST_PIXELS:
                raise DataFileError(
                    images,
                    f"its images have {shape[1] * shape[2]:,} pixels; at most {MOST_PIXELS:,} are read",
                )
            tally.add_rows(images, num_labels, 1)
            shapes.append(shape)
            labels.append(read_idx(of, 1).astype(np.int64))
        if shapes[0][1:] != shapes[1][1:]:
            raise DataFileError(root, f"train images are {shapes[0][1:]}, test images {shapes[1][1:]}")
        split = np.repeat([0, 1], [len(part) for part in labels]).astype(np.int8)
        known, label = np.unique(np.concatenate(labels), return_inverse=True)
        client, clients = divided(self.settings, label, split)
        return Rows(
            client=client,
            clients=clients,
            label=label,
            classes=tuple(map(str, known.tolist())),
            when="step",
            at=np.zeros(len(label), np.int64),
            value=np.arange(len(label)),
            pixels=IdxPixels([images for images, _ in files.values()], shapes),
            split=split,
        )

    def _files(self, root: Path) -> dict[str, tuple[Path, Path]]:
        """The files of images and labels of each split; InputError unless the folder has exactly one set."""
        matches = [(NAME.fullmatch(path.name), path) for path in sorted(root.iterdir())]
        by_set: dict[str, dict[tuple[str, str], Path]] = {}
        for match, path in matches:
            if match is not None:
                name = (match["set"] or "").removeprefix("emnist-").removesuffix("-")
                split = "train" if match["split"] == "train" else "test"
                by_set.setdefault(name, {}).setdefault((split, match["what"]), path)
        wanted = self.settings.dataset
        if wanted is None and len(by_set) > 1:
            raise InputError(f"--root {root}: has several sets; give --dataset, one of {', '.join(by_set)}")
        if wanted is not None and wanted not in by_set:
            raise InputError(f"--dataset {wanted}: the folder has {', '.join(by_set) or 'none'}")
        if not by_set:
            raise InputError(f"--root {root}: has no train-images-idx3-ubyte or emnist-SET-train-images-...")
        files = by_set[wanted if wanted is not None else next(iter(by_set))]
        for split in ("train", "test"):
            for what in ("images-idx3", "labels-idx1"):
                if (split, what) not in files:
                    raise DataFileError(
                        root, f"has no {split}-{what}-ubyte beside the other files of that set"
                    )
        return {
            split: (files[split, "images-idx3"], files[split, "labels-idx1"]) for split in ("train", "test")
        }


class IdxPixels(Pixels):
    """The images of some idx files, which may be compressed and so are read from the front."""

    in_order = True

    def __init__(self, paths: list[Path], shapes: list[tuple[int, ...]]) -> None:
        self._paths = paths
        self._shapes = shapes
        self._starts = np.cumsum([0, *(shape[0] for shape in shapes)])

    def stream(self, images: Ints) -> Iterator[Encoded]:
        for number, path in enumerate(self._paths):
            own = images[(images >= self._starts[number]) & (images < self._starts[number + 1])]
            if len(own):
                yield from self._stream_file(path, own - self._starts[number], self._shapes[number])

    def name(self, image: int) -> str:
        file = int(np.searchsorted(self._starts, image, side="right")) - 1
        return f"{self._paths[file]}, row {image - int(self._starts[file]) + 1}"

    def identity(self) -> Iterator[bytes]:
        for path, shape in zip(self._paths, self._shapes, strict=True):
            yield f"{path.name}\0{shape}\0".encode()

    def _stream_file(self, path: Path, rows: Ints, shape: tuple[int, ...]) -> Iterator[Encoded]:
        """The images in the rows (k,), ascending; DataFileError if the file is cut off or damaged."""
        size, turned = shape[1] * shape[2], _is_emnist(path)
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as opened:
                file, position = cast(BinaryIO, opened), -1
                for row in rows.tolist():
                    if row != position:
                        file.seek(4 + 4 * len(shape) + row * size)
                    content = file.read(size)
                    if len(content) < size:
                        raise DataFileError(path, f"truncated: image {row + 1} of {shape[0]} is cut off")
                    position = row + 1
                    pixels = np.frombuffer(content, np.uint8).reshape(shape[1:])
                    yield np.ascontiguousarray(pixels.T) if turned else pixels
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(path, f"truncated or damaged ({error})") from error


def _is_emnist(path: Path) -> bool:
    return path.name.startswith("emnist-")
