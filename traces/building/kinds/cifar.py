"""CIFAR-10 and CIFAR-100 in their binary version: records of labels and 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from emulator.errors import DataFileError, InputError
from emulator.storage.bounded import read_text
from traces.building.dividing import DividedSettings, PixelSettings, divided
from traces.building.images import ImageBuilder
from traces.building.pixels import ArrayFiles
from traces.building.rows import Rows, samples_of
from traces.building.rules import CIFAR_LABELS, Cells, refuse

SIDE = 32
PIXELS = 3 * SIDE * SIDE

MOST_NAMES_BYTES = 2**16


class Version(NamedTuple):
    """The files of a version, that with the test samples last, and those of the python version.

    `labels` are those before the pixels of a record, in that order: the file of their names, and how many
    there are.
    """

    folder: str
    files: tuple[str, ...]
    labels: Mapping[str, tuple[str, int]]
    python: tuple[str, ...]


VERSIONS = (
    Version(
        "cifar-10-batches-bin",
        (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
        {"fine": ("batches.meta.txt", 10)},
        ("data_batch_1", "batches.meta"),
    ),
    Version(
        "cifar-100-binary",
        ("train.bin", "test.bin"),
        {"coarse": ("coarse_label_names.txt", 20), "fine": ("fine_label_names.txt", 100)},
        ("meta",),
    ),
)


class CifarSettings(DividedSettings, PixelSettings):
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

    Settings = CifarSettings
    settings: CifarSettings

    def list_samples(self, root: Path) -> Rows:
        folder, version = _version(root)
        wanted = self.settings.labels
        if wanted not in version.labels:
            raise InputError(f"--labels {wanted}: CIFAR-10 has fine labels only")
        records = [_records(folder / name, len(version.labels)) for name in version.files]
        rows = [len(part) for part in records]
        self.tally().add_rows(folder, sum(rows), 1)
        columns = {}
        for place, (what, (_, size)) in enumerate(version.labels.items()):
            for name, part in zip(version.files, records, strict=True):
                cells = Cells(label=part[:, place], name=what, size=size)
                refuse(CIFAR_LABELS, cells, folder / name, len(part))
            columns[what] = np.concatenate([part[:, place] for part in records]).astype(np.int64)
        split = np.repeat(np.arange(2, dtype=np.int8), [sum(rows[:-1]), rows[-1]])
        images = [part[:, len(version.labels) :].reshape(-1, 3, SIDE, SIDE) for part in records]
        file, size = version.labels[wanted]
        return samples_of(
            ArrayFiles(folder, version.files, images),
            client=divided(self.settings, columns[wanted], split, columns),
            label=(columns[wanted], _names(folder / file, size)),
            split=split,
        )


def _version(root: Path) -> tuple[Path, Version]:
    """The folder with the files, and the version that they are of; InputError if it has none."""
    for version in VERSIONS:
        for folder in (root, root / version.folder):
            if (folder / version.files[0]).is_file():
                return folder, version
    for folder in (root, *filter(Path.is_dir, sorted(root.iterdir()))):
        if any(all((folder / name).is_file() for name in version.python) for version in VERSIONS):
            raise InputError(
                f"--root {folder}: is the python version of CIFAR, a pickle, which is never read, as "
                f"that could run code; take the binary version"
            )
    files = " or ".join(f"{version.folder}/{version.files[0]}" for version in VERSIONS)
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
