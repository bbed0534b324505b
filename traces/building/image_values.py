"""The values of rows that are images, or crops of them: which image makes which rows, and decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError, InputError
from traces.building.base import Watch
from traces.building.decoding import BadImageError, Decoder
from traces.building.pixels import Encoded
from traces.building.remarks import count_cause, left_out
from traces.building.rows import TRAIN, Rows
from traces.building.sums import ByteSums
from traces.building.writing import Block, Made, Values

BLOCK = 16
"""Images that a thread decodes at a time."""

BLOCK_BYTES = 2**24
"""Bytes of images after which a block ends."""

MOST_CROPS = 1024
"""Most samples that are crops of one image; all of them are in memory at once."""


class Work(NamedTuple):
    """The images to decode, in the order of the work, and the rows that each makes.

    Image `images[i]` makes the rows `rows[starts[i]:starts[i + 1]]`.
    """

    images: Ints
    starts: Ints
    rows: Ints


def work_of(rows: Rows) -> Work:
    """The work of rows of images: by first row or, if images must be read in order, by image."""
    pixels = rows.pixels
    assert rows.value is not None
    assert pixels is not None
    by_image = np.argsort(rows.value, kind="stable")
    images, first = np.unique(rows.value[by_image], return_index=True)
    sizes = np.diff(first, append=len(rows))
    if len(sizes) and sizes.max() > MOST_CROPS:
        name = pixels.name(int(images[sizes.argmax()]))
        raise DataFileError(name, f"has {sizes.max():,} objects; at most {MOST_CROPS:,} of an image are read")
    order = np.arange(len(images))
    if not pixels.in_order:
        order = np.argsort(by_image[first], kind="stable")
    starts = np.concatenate(([0], np.cumsum(sizes[order])))
    offsets = np.repeat(first[order] - starts[:-1], sizes[order])
    return Work(images[order], starts, by_image[offsets + np.arange(len(rows))])


@dataclass
class ImageValues(Values):
    """Decodes the images of `rows` into samples of `shape`; at most `skip_bad` samples are left out.

    `bad` says of each image that cannot be read why.
    """

    root: Path
    rows: Rows
    decoder: Decoder
    shape: tuple[int, ...]
    skip_bad: int
    bad: dict[int, str] = field(default_factory=dict)

    dtype = np.dtype(np.uint8)

    def __post_init__(self) -> None:
        assert self.rows.split is not None
        assert self.rows.pixels is not None
        assert self.rows.value is not None
        self.pixels, self._images = self.rows.pixels, self.rows.value
        self.pixels.check(self._images)
        self.work = work_of(self.rows)
        self.total = len(self.work.images)
        self._is_trained = self.rows.split == TRAIN

    def blocks(self, done: int) -> Iterator[Block]:
        """Read blocks of images, in which an image that is a file is only named."""
        work, stream = self.work, self.pixels.stream(self.work.images[done:])
        while done < len(work.images):
            images: list[Encoded] = []
            while len(images) < BLOCK and sum(map(_held, images)) < BLOCK_BYTES:
                image = next(stream, None)
                if image is None:
                    break
                images.append(image)
            if not images:
                name = self.pixels.name(int(work.images[done]))
                raise DataFileError(name, "is not there: the file is damaged, or has changed")
            yield Block((done, images), len(images), sum(map(_held, images)))
            done += len(images)

    def make(self, block: Block) -> Made:
        """Decode a block; images that cannot be decoded make no rows, and are told by number."""
        first, images = block.content
        starts = self.work.starts[first : first + len(images) + 1]
        rows = self.work.rows[starts[0] : starts[-1]]
        bad: dict[int, str] = {}
        values = np.empty((len(rows), *self.shape), np.uint8)
        good = np.ones(len(rows), np.bool_)
        for number, image in enumerate(images):
            place = slice(starts[number] - starts[0], starts[number + 1] - starts[0])
            boxes = None if self.rows.box is None else self.rows.box[rows[place]]
            try:
                values[place] = self.decoder.decode(image, boxes)
            except BadImageError as error:
                bad[int(self.work.images[first + number])] = str(error)
                good[place] = False
        if bad:
            rows, values = rows[good], values[good]
        return Made(rows, values, ByteSums.of(values[self._is_trained[rows]]), bad)

    def take_bad(self, bad: Mapping[int, str], watch: Watch) -> None:
        for image, why in bad.items():
            self._refuse_many({**self.bad, image: why})
            self.bad[image] = why
            watch.note(f"left out: {self.pixels.name(image)}: {why}")

    def bad_as_json(self) -> list[tuple[int, str]]:
        return list(self.bad.items())

    def restore_bad(self, state: list[tuple[int, str]]) -> None:
        self.bad = {int(image): str(why) for image, why in state}
        self._refuse_many(self.bad)  # an earlier attempt may have been allowed to leave out more

    def good(self) -> Bools:
        """(n,) whether each row is in the trace: decoded, and of a client that has training samples left."""
        good: Bools = np.ones(len(self.rows), np.bool_)
        if self.bad:
            good = ~np.isin(self._images, list(self.bad))
            good &= self.rows.have(TRAIN, good)[self.rows.client]
        if not good.any():
            raise InputError(f"{self.root}: no sample is left that can be read")
        return good

    def remarks(self) -> tuple[str, ...]:
        """What was left out, in a line; none if nothing was."""
        if not self.bad:
            return ()
        causes: dict[str, int] = {}
        for why in self.bad.values():
            count_cause(causes, why)
        image, why = min(self.bad.items())
        return (left_out(len(self.bad), "bad images", causes, f"{self.pixels.name(image)}: {why}"),)

    def _refuse_many(self, bad: dict[int, str]) -> None:
        """Raise DataFileError about the last of the `bad` images if they make more samples than allowed."""
        count = int(np.isin(self._images, list(bad)).sum())
        if count > self.skip_bad:
            image, why = list(bad.items())[-1]
            hint = "--skip-bad N leaves out at most N samples that cannot be read"
            if self.skip_bad:
                hint = f"with it {count} samples cannot be read, and --skip-bad is {self.skip_bad}"
            raise DataFileError(self.pixels.name(image), f"{why}; {hint}")


def _held(image: Encoded) -> int:
    """The bytes of an image that is in memory before it is decoded."""
    if isinstance(image, Path):
        return 0
    return image.nbytes if isinstance(image, np.ndarray) else len(image)
