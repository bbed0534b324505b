"""CIFAR-10 and CIFAR-100 in their binary version: records of labels and 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import DataFileError, InputError
from emulator.plugins import Settings
from emulator.storage.bounded import read_text
from traces.building.decoding import Decoder
from traces.building.dividing import DividedPixelSettings, divided
from traces.building.images import ImageBuilder
from traces.building.pixels import Encoded, Pixels
from traces.building.rows import Rows

SIDE = 32
PIXELS = 3 * SIDE * SIDE

MOST_NAMES_BYTES = 2**16


class Version(NamedTuple):
    """The files of a version, the labels before the pixels of a record, and where their names are."""

    folder: str
    train: tuple[str, ...]
    test: str
    labels: tuple[str, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    python: tuple[str, ...]


VERSIONS = (
    Version(
        "cifar-10-batches-bin",
        tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        "test_batch.bin",
        ("fine",),
        ("batches.meta.txt",),
        (10,),
        ("data_batch_1", "batches.meta"),
    ),
    Version(
        "cifar-100-binary",
        ("train.bin",),
        "test.bin",
        ("coarse", "fine"),
        ("coarse_label_names.txt", "fine_label_names.txt"),
        (20, 100),
        ("meta",),
    ),
)


class CifarSettings(DividedPixelSettings):
    """Which of the labels of CIFAR-100 is the class, and how images are divided among clients."""

    grey: bool = Field(False, description="grey images of shape (size, size) instead of (3, size, size)")
    labels: Literal["fine", "coarse"] = Field(
        "fine", description="of CIFAR-100 the 100 fine classes, or the 20 coarse ones; CIFAR-10 has fine ones"
    )


class Cifar(ImageBuilder):
    """CIFAR-10 or CIFAR-100, binary version, with its own split; clients by a partition, no times.

    Pixels are taken as they are, (3, 32, 32), unless another size is asked for. A partition may use the
    columns `fine` and, of CIFAR-100, `coarse`. The python version is pickled, and never read.
    """

    needs = "cifar-10-batches-bin/*.bin or cifar-100-binary/*.bin; needs --partition"
    licence = "CIFAR: none stated; cite Krizhevsky 2009"

    Settings: ClassVar[type[Settings]] = CifarSettings
    settings: CifarSettings

    def shape(self, root: Path) -> tuple[int, ...]:
        side = self.settings.size or SIDE
        return (side, side) if self.settings.grey else (3, side, side)

    def decoder(self) -> Decoder:
        return Decoder(self.settings.size, self.settings.grey)

    def list_samples(self, root: Path) -> Rows:
        folder, version = _version(root)
        wanted = self.settings.labels
        if wanted not in version.labels:
            raise InputError(f"--labels {wanted}: CIFAR-10 has fine labels only")
        paths = [folder / name for name in (*version.train, version.test)]
        records = [_records(path, len(version.labels)) for path in paths]
        self.tally().add_rows(folder, sum(map(len, records)), 1)
        columns = {
            name: np.concatenate([part[:, place] for part in records]).astype(np.int64)
            for place, name in enumerate(version.labels)
        }
        for place, name in enumerate(version.labels):
            _refuse_large(paths, records, place, version.sizes[place], name)
        split = np.repeat([0, 1], [sum(map(len, records[:-1])), len(records[-1])]).astype(np.int8)
        label = columns[wanted]
        client, clients = divided(self.settings, label, split, columns)
        place = version.labels.index(wanted)
        return Rows(
            client=client,
            clients=clients,
            label=label,
            classes=_names(folder / version.names[place], version.sizes[place]),
            when="step",
            at=np.zeros(len(label), np.int64),
            value=np.arange(len(label)),
            pixels=Records(paths, records, len(version.labels)),
            split=split,
        )


class Records(Pixels):
    """The images of some files of records, which are mapped: image i is the i-th record of all files."""

    def __init__(self, paths: list[Path], records: list[np.ndarray], num_labels: int) -> None:
        self._paths = paths
        self._records = records
        self._num_labels = num_labels
        self._starts = np.cumsum([0, *map(len, records)])

    def stream(self, images: Ints) -> Iterator[Encoded]:
        for image in images.tolist():
            file, row = self._place(image)
            yield self._records[file][row, self._num_labels :].reshape(3, SIDE, SIDE)

    def name(self, image: int) -> str:
        file, row = self._place(image)
        return f"{self._paths[file]}, row {row + 1}"

    def identity(self) -> Iterator[bytes]:
        for path, records in zip(self._paths, self._records, strict=True):
            yield f"{path.name}\0{len(records)}\0".encode()

    def _place(self, image: int) -> tuple[int, int]:
        file = int(np.searchsorted(self._starts, image, side="right")) - 1
        return file, image - int(self._starts[file])


def _version(root: Path) -> tuple[Path, Version]:
    """The folder with the files, and the version that they are of; InputError if it has none."""
    for version in VERSIONS:
        for folder in (root, root / version.folder):
            if (folder / version.train[0]).is_file():
                return folder, version
    for folder in (root, *(entry for entry in sorted(root.iterdir()) if entry.is_dir())):
        for version in VERSIONS:
            if all((folder / name).is_file() for name in version.python):
                raise InputError(
                    f"--root {folder}: is the python version of CIFAR, a pickle, which is never read, as "
                    f"that could run code; take the binary version"
                )
    files = " or ".join(f"{version.folder}/{version.train[0]}" for version in VERSIONS)
    raise InputError(f"--root {root}: has no {files}")


def _records(path: Path, num_labels: int) -> np.ndarray:
    """(n, labels + pixels) the records of a file, mapped; DataFileError if it is missing or cut off."""
    if not path.is_file():
        raise DataFileError(path, "no such file")
    size, length = path.stat().st_size, num_labels + PIXELS
    if size == 0 or size % length:
        raise DataFileError(
            path, f"has {size} bytes, which is no multiple of the {length} of a record: truncated or damaged"
        )
    return np.memmap(path, np.uint8, "r", shape=(size // length, length))


def _refuse_large(paths: list[Path], records: list[np.ndarray], place: int, size: int, name: str) -> None:
    for path, part in zip(paths, records, strict=True):
        large = np.flatnonzero(part[:, place] >= size)
        if len(large):
            row = int(large[0])
            raise DataFileError(
                path,
                f"{name} label {part[row, place]}: must be below {size}; is it of another version?",
                row + 1,
            )


def _names(path: Path, size: int) -> tuple[str, ...]:
    """The names of the classes; their numbers if there is no such file."""
    if not path.exists():
        return tuple(map(str, range(size)))
    try:
        names = tuple(line.strip() for line in read_text(path, MOST_NAMES_BYTES).splitlines() if line.strip())
    except (OSError, ValueError) as error:
        raise DataFileError(path, f"cannot be read ({error})") from error
    if len(names) != size:
        raise DataFileError(path, f"has {len(names)} names for {size} classes")
    return names
