"""Where the images of a data set are, and how they are read: one stream of what is to be decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from emulator.arrays import Ints

Encoded = Path | bytes | np.ndarray
"""An image: a file of one, the bytes of such a file, or its uint8 pixels, (h, w) or (channels, h, w)."""


class Pixels(ABC):
    """The images of a data set, numbered from 0.

    Attributes:
        in_order: Whether images can only be read in the order of their numbers, as of a compressed file.
        shape: The shape of all images, (h, w) or (channels, h, w); None: each has its own.
    """

    in_order: bool = False
    shape: tuple[int, ...] | None = None

    @abstractmethod
    def stream(self, images: Ints) -> Iterator[Encoded]:
        """Yield the images with these numbers (k,), which ascend if `in_order`.

        Files of single images are only named here: whoever decodes one reads it. DataFileError if a file of
        many images is damaged.
        """

    def check(self, images: Ints) -> None:  # noqa: B027  (most have nothing to check)
        """Raise DataFileError if the images with these numbers (k,) are not where they should be.

        It is called before any of them is read, with those that are used.
        """

    @abstractmethod
    def name(self, image: int) -> str:
        """The file of an image, and the row in it or of it, for messages."""

    @abstractmethod
    def identity(self) -> Iterator[bytes]:
        """Yield what tells these images from others, without reading them all: names, sizes."""


class ImageFiles(Pixels):
    """One file for each image: `names` below `root`, which `listed` may say the row of (for messages)."""

    def __init__(self, root: Path, names: Sequence[str], listed: Callable[[int], str] | None = None) -> None:
        self.root = root
        self.names = names
        self._listed = listed

    def stream(self, images: Ints) -> Iterator[Encoded]:
        for image in images.tolist():
            yield self.root / self.names[image]

    def name(self, image: int) -> str:
        path = str(self.root / self.names[image])
        return path if self._listed is None else f"{path} ({self._listed(image)})"

    def identity(self) -> Iterator[bytes]:
        for name in self.names:
            yield name.encode("utf-8", "surrogateescape") + b"\0"


class FileRows(Pixels):
    """Images that are rows of a few files: image i is the i-th row of all files.

    A subclass implements `stream_file`.
    """

    def __init__(self, root: Path, names: Sequence[str], rows: Sequence[int], what: str = "") -> None:
        """The files `names` below `root`, with `rows` (files,) rows each; `what` of them is read."""
        self.root = root
        self.names = names
        self.starts = np.cumsum([0, *rows])
        self.what = what

    @abstractmethod
    def stream_file(self, file: int, rows: Ints) -> Iterator[Encoded]:
        """Yield the images in the rows (k,), counted from 0, of one file; see `stream`."""

    def stream(self, images: Ints) -> Iterator[Encoded]:
        file = np.searchsorted(self.starts, images, side="right") - 1
        ends = np.flatnonzero(np.diff(file)) + 1
        for own in np.split(np.arange(len(images)), ends) if len(images) else ():
            number = int(file[own[0]])
            yield from self.stream_file(number, images[own] - self.starts[number])

    def name(self, image: int) -> str:
        file, row = place(self.starts, image)
        return f"{self.root / self.names[file]}, row {row}"

    def identity(self) -> Iterator[bytes]:
        yield self.what.encode()
        for name, start in zip(self.names, self.starts.tolist(), strict=False):
            yield f"{name}\0{start}\0".encode("utf-8", "surrogateescape")


class ArrayFiles(FileRows):
    """Files whose images are arrays, such as mapped ones: uint8 (rows, h, w) or (rows, channels, h, w)."""

    def __init__(self, root: Path, names: Sequence[str], arrays: Sequence[np.ndarray]) -> None:
        super().__init__(root, names, [len(images) for images in arrays])
        self.arrays, self.shape = arrays, arrays[0].shape[1:]

    def stream_file(self, file: int, rows: Ints) -> Iterator[Encoded]:
        for row in rows.tolist():
            yield self.arrays[file][row]


def place(starts: Ints, image: int) -> tuple[int, int]:
    """The file that has an image, and the row there, counted from 1.

    Args:
        starts: (files + 1,) the number of the first image of each file, and that of all images.
        image: the number of an image.

    >>> place(np.array([0, 3, 3, 5]), 3)
    (2, 1)
    """
    file = int(np.searchsorted(starts, image, side="right")) - 1
    return file, image - int(starts[file]) + 1


def leads_out(name: str) -> bool:
    """Whether a path that a file names is not one below the folder that it is relative to.

    >>> leads_out("a/b.jpg"), leads_out("../b.jpg"), leads_out("/b.jpg"), leads_out("")
    (False, True, True, True)
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return not name or path.is_absolute() or ".." in path.parts or "\0" in name
