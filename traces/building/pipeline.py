"""Decoding a whole listing into `features.npy`: several threads, a bounded queue, resumable.

Images are cut into blocks. The main thread reads the stream of images and hands blocks out; threads decode
them and write their rows to fixed places of the file (Pillow and the system let other threads run meanwhile);
the main thread takes the outcomes in the order of the blocks. So neither the bytes, nor the sums, nor which
bad image ends a build, depend on the number of threads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from emulator.arrays import Bools, Ints
from emulator.errors import DataFileError, InputError
from traces.building.base import Watch
from traces.building.decoding import BadImageError, Decoder, without_warnings
from traces.building.feature_rows import FeatureRows
from traces.building.listing import TRAIN, Listing, trained_clients
from traces.building.pixels import Encoded
from traces.building.statistics import ChannelSums
from traces.building.workspace import Workspace
from traces.files.features import channels

BLOCK = 16
"""Images that a thread decodes at a time."""

AHEAD = 2
"""Blocks per thread that are read, and not yet taken: the bound of the queue."""

MOST_HELD = 2**28
"""Bytes of images that are read, and not yet decoded, after which no other block is read."""

BLOCK_BYTES = 2**24
"""Bytes of images after which a block ends."""

MOST_CROPS = 1024
"""Most samples that are crops of one image; all of them are in memory at once."""

RECORD_EVERY_S = 5.0


@dataclass(frozen=True)
class Work:
    """The images to decode, in the order of the work, and the rows that each makes.

    Image `images[i]` makes the rows `rows[starts[i]:starts[i + 1]]` of the listing.
    """

    images: Ints
    starts: Ints
    rows: Ints


@dataclass(frozen=True)
class Progress:
    """How far the work has come: the images done, the sums of training rows, the bad images and why."""

    done: int
    sums: ChannelSums
    bad: Mapping[int, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        bad = [[image, why] for image, why in self.bad.items()]
        return {"images": self.done, "sums": self.sums.as_list(), "bad": bad}


def work_of(listing: Listing) -> Work:
    """The work of a listing: by first row or, if images must be read in order, by image."""
    by_image = np.argsort(listing.image, kind="stable")
    images, first = np.unique(listing.image[by_image], return_index=True)
    sizes = np.diff(first, append=len(listing))
    if len(sizes) and sizes.max() > MOST_CROPS:
        name = listing.pixels.name(int(images[sizes.argmax()]))
        raise DataFileError(name, f"has {sizes.max():,} objects; at most {MOST_CROPS:,} of an image are read")
    order = np.arange(len(images))
    if not listing.pixels.in_order:
        order = np.argsort(by_image[first], kind="stable")
    starts = np.concatenate(([0], np.cumsum(sizes[order])))
    offsets = np.repeat(first[order] - starts[:-1], sizes[order])
    return Work(images[order], starts, by_image[offsets + np.arange(len(listing))])


@dataclass(frozen=True)
class Pipeline:
    """Decodes the images of `listing` into samples of `shape`; at most `skip_bad` samples are left out."""

    listing: Listing
    decoder: Decoder
    shape: tuple[int, ...]
    skip_bad: int

    def run(self, space: Workspace, features: FeatureRows, workers: int, watch: Watch) -> Progress:
        """Decode everything that an earlier attempt has not.

        Raises:
            DataFileError: an image is bad, and `skip_bad` does not allow to leave it out; the first one.
        """
        work, progress = work_of(self.listing), self._resumed(space)
        self._refuse_many(progress.bad)  # an earlier attempt may have been allowed to leave out more
        blocks = self._blocks(work, progress.done)
        recorded_s = time.monotonic()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
        pending: deque[Future[Outcome]] = deque()
        sizes: deque[int] = deque()  # the bytes of each pending block
        try:
            with without_warnings():
                while True:
                    while len(pending) < AHEAD * workers and sum(sizes) < MOST_HELD:
                        block = next(blocks, None)
                        if block is None:
                            break
                        pending.append(pool.submit(self._decode, block, features))
                        sizes.append(sum(map(_held, block.images)))
                        del block
                    if not pending:
                        break
                    progress = self._absorb(pending.popleft().result(), work, progress, watch)
                    sizes.popleft()
                    if time.monotonic() - recorded_s >= RECORD_EVERY_S:
                        _record(space, features, progress)
                        recorded_s = time.monotonic()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            if progress.done:  # else there is nothing to resume
                _record(space, features, progress)
        return progress

    def _refuse_many(self, bad: Mapping[int, str]) -> None:
        """Raise DataFileError about the last of the `bad` images if they make more samples than allowed."""
        count = int(np.isin(self.listing.image, list(bad)).sum())
        if count > self.skip_bad:
            image, why = list(bad.items())[-1]
            hint = "--skip-bad N leaves out at most N samples that cannot be read"
            if self.skip_bad:
                hint = f"with it {count} samples cannot be read, and --skip-bad is {self.skip_bad}"
            raise DataFileError(self.listing.pixels.name(image), f"{why}; {hint}")

    def _resumed(self, space: Workspace) -> Progress:
        number = channels(self.shape)
        if not space.progress:
            return Progress(0, ChannelSums(0, (0,) * number, (0,) * number))
        try:
            stored = space.progress
            bad = {int(image): str(why) for image, why in stored["bad"]}
            return Progress(int(stored["images"]), ChannelSums.from_list(stored["sums"]), bad)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{space.path}: damaged ({error}); delete it, or give --fresh") from error

    def _blocks(self, work: Work, done: int) -> Iterator[Block]:
        left = work.images[done:]
        stream = self.listing.pixels.stream(left)
        first = done
        while first < len(work.images):
            images: list[Encoded] = []
            while len(images) < BLOCK and sum(map(_held, images)) < BLOCK_BYTES:
                image = next(stream, None)
                if image is None:
                    break
                images.append(image)
            if not images:
                name = self.listing.pixels.name(int(work.images[first]))
                raise DataFileError(name, "is not there: the file is damaged, or has changed")
            starts = work.starts[first : first + len(images) + 1]
            yield Block(images, starts - starts[0], work.rows[starts[0] : starts[-1]])
            first += len(images)

    def _decode(self, block: Block, features: FeatureRows) -> Outcome:
        """Decode a block, and write its rows."""
        listing, bad = self.listing, {}
        values = np.empty((len(block.rows), *self.shape), np.uint8)
        good = np.ones(len(block.rows), np.bool_)
        for number, image in enumerate(block.images):
            place = slice(block.starts[number], block.starts[number + 1])
            boxes = None if listing.box is None else listing.box[block.rows[place]]
            try:
                values[place] = self.decoder.decode(image, boxes)
            except BadImageError as error:
                bad[number] = str(error)
                good[place] = False
        if bad:
            values = values[good]
        rows = block.rows[good]
        if len(rows):
            features.write(rows, values)
        assert listing.split is not None
        return Outcome(len(block.images), ChannelSums.of(values[listing.split[rows] == TRAIN]), bad)

    def _absorb(self, outcome: Outcome, work: Work, progress: Progress, watch: Watch) -> Progress:
        """The progress after the next block; DataFileError if it has one bad image too many."""
        bad = dict(progress.bad)
        for number, why in outcome.bad.items():
            image = int(work.images[progress.done + number])
            bad[image] = why
            self._refuse_many(bad)
            watch.note(f"left out: {self.listing.pixels.name(image)}: {why}")
        done = progress.done + outcome.num_images
        watch.progress(done, len(work.images))
        # A new object: an interruption between two statements leaves the progress as it was.
        return Progress(done, progress.sums + outcome.sums, bad)


@dataclass(frozen=True)
class Block:
    """Images to decode, and the rows that they make: `rows[starts[i]:starts[i + 1]]` those of image i."""

    images: Sequence[Encoded]
    starts: Ints
    rows: Ints


@dataclass(frozen=True)
class Outcome:
    """What became of a block: its images, the sums of its training rows, and which images are bad."""

    num_images: int
    sums: ChannelSums
    bad: dict[int, str]


def _held(image: Encoded) -> int:
    """The bytes of an image that is in memory before it is decoded."""
    if isinstance(image, Path):
        return 0
    return image.nbytes if isinstance(image, np.ndarray) else len(image)


def kept(listing: Listing, progress: Progress) -> Bools:
    """(n,) whether each row is in the trace: decoded, and of a client that has training samples left."""
    good: Bools = ~np.isin(listing.image, list(progress.bad))
    return good & trained_clients(listing, good)[listing.client] if progress.bad else good


def _record(space: Workspace, features: FeatureRows, progress: Progress) -> None:
    features.flush()
    space.record(progress.as_json())
