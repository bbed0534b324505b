"""Writing `features.npy`: blocks of values, made by several threads, resumably.

The main thread reads what values are made of, and hands out blocks of it; threads, or itself, make the values
and write them to their places in the file; the main thread takes the outcomes in the order of the blocks. So
neither the bytes, nor the sums, nor which error ends a build, depend on the number of threads.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from emulator.arrays import Bools, Ints
from emulator.errors import InputError
from emulator.storage.checkpoints import naming_file
from emulator.storage.own_files import create_file, open_file
from traces.building.base import Watch
from traces.building.decoding import without_warnings
from traces.building.sums import ByteSums, Sums
from traces.building.workspace import Workspace
from traces.files.facts import FEATURES
from traces.files.features import channels, write_header

AHEAD = 2
"""Blocks per thread that are read, and not yet taken: the bound of the queue."""

MOST_HELD = 2**28
"""Bytes of blocks that are read, and not yet taken, after which no other block is read."""

RECORD_EVERY_S = 5.0
"""Wall seconds between two records of the progress."""


class Block(NamedTuple):
    """What some values are made of: so many `units`, images or rows of a table, which hold bytes."""

    content: Any
    units: int
    held: int = 0


class Made(NamedTuple):
    """The values (k, *shape) of the rows (k,) of a block, and their sums; `bad` says what cannot be read."""

    rows: Ints
    values: np.ndarray
    sums: Sums
    bad: Any = None


class Values(ABC):
    """What makes the values of rows, block by block.

    Attributes:
        shape: The shape of a value.
        dtype: Its type: uint8 or float32.
        total: The units that all blocks have.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    total: int

    def no_sums(self) -> Sums:
        """The sums of no values, by default of bytes."""
        return ByteSums.none(channels(self.shape))

    @abstractmethod
    def blocks(self, done: int) -> Iterator[Block]:
        """Read the blocks behind the first `done` units; DataFileError for a damaged file."""

    @abstractmethod
    def make(self, block: Block) -> Made:
        """Make the values of a block, in a thread."""

    @abstractmethod
    def bad_as_json(self) -> Any:
        """What is bad so far, as JSON values."""

    @abstractmethod
    def take_bad(self, bad: Any, watch: Watch) -> None:
        """Take note of what is bad in a block; DataFileError if one too many is."""

    @abstractmethod
    def restore_bad(self, state: Any) -> None:
        """Take over what `bad_as_json` made."""

    def finish(self, path: Path, sums: Any) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the deviation of each feature or channel; gaps in `path` are filled first."""
        return ByteSums.standard(sums)

    @abstractmethod
    def good(self) -> Bools:
        """(n,) whether each row is in the trace; InputError if none is."""


class FeatureRows:
    """An `.npy` file of `shape` and `dtype` whose rows are written in place, also by several threads at once.

    The space is taken when the file is created, so that a full disk is found then. Rows that are never
    written are zero.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], *, resume: bool, dtype: DTypeLike = np.uint8
    ) -> None:
        """Create the file, or open the one that an earlier attempt left; no link is followed.

        Raises:
            ForeignFileError: the one that was left is a link, or has a second name.
            OSError: the disk is full, or fails; the error has the name of the file, here and later.
        """
        dtype = np.dtype(dtype)
        self._path = path
        self._row_bytes = int(np.prod(shape[1:])) * dtype.itemsize
        if not resume:
            path.unlink(missing_ok=True)
        with naming_file(path), open_file(path, in_place=True) if resume else create_file(path) as file:
            self._start = write_header(file, dtype, shape)
            file.flush()
            if not resume:
                _take_space(file.fileno(), self._start + shape[0] * self._row_bytes)
            self._file = os.dup(file.fileno())

    def __enter__(self) -> FeatureRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with naming_file(self._path):
            os.close(self._file)

    def write(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Write `values` (k, *shape) as the rows with these numbers (k,), consecutive ones at once."""
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows)
            rows, values = rows[order], values[order]
        values = np.ascontiguousarray(values)
        borders = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        for first, last in pairwise(borders if len(rows) else ()):
            content = values[first:last].data.cast("B")
            offset = self._start + int(rows[first]) * self._row_bytes
            while content:
                with naming_file(self._path):
                    written = os.pwrite(self._file, content, offset)
                content, offset = content[written:], offset + written

    def flush(self) -> None:
        """Bring all rows written so far to the disk."""
        with naming_file(self._path):
            os.fsync(self._file)


def _take_space(file: int, size: int) -> None:
    """Extend the open `file` to `size` bytes that exist on the disk; OSError if there is no room."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # macOS
        os.ftruncate(file, size)


def write_features(values: Values, num_rows: int, space: Workspace, workers: int, watch: Watch) -> Sums:
    """Write the values of `num_rows` rows in the workspace, from where an earlier attempt came to.

    Args:
        values: makes the values.
        num_rows: the rows of `features.npy`.
        space: the workspace.
        workers: threads that make values; 0: the calling one does, which takes less memory.
        watch: where to report.

    Returns:
        The sums of all values.

    Raises:
        DataFileError: what values are made of is damaged, or bad rows are too many; the first such error.
        InputError: what an earlier attempt left is damaged.
    """
    progress = _resumed(values, space)
    pending: deque[tuple[Block, Future[Made]]] = deque()
    shape, resume = (num_rows, *values.shape), bool(space.progress)
    features = FeatureRows(space.path / FEATURES, shape, resume=resume, dtype=values.dtype)
    pool = ThreadPoolExecutor(workers or 1, thread_name_prefix="values")

    def make(block: Block) -> Made:
        if isinstance(block.content, Exception):
            raise block.content
        made = values.make(block)
        features.write(made.rows, made.values)
        return made

    def record() -> float:
        features.flush()
        done, sums, bad = progress
        space.record({"done": done, "sums": sums.as_json(), "bad": bad})
        return time.monotonic()

    most_ahead = AHEAD * workers or 1
    blocks, recorded_s = _with_error_last(values.blocks(progress[0])), time.monotonic()
    with features, without_warnings():
        try:
            while True:
                while len(pending) < most_ahead and sum(block.held for block, _ in pending) < MOST_HELD:
                    if (block := next(blocks, None)) is None:
                        break
                    pending.append((block, pool.submit(make, block) if workers else _made(make(block))))
                if not pending:
                    return cast(Sums, progress[1])
                block, future = pending.popleft()
                made = future.result()
                values.take_bad(made.bad, watch)
                done = progress[0] + block.units
                watch.progress(done, values.total)
                # At once: an interruption between two statements leaves the progress as it was.
                progress = done, progress[1] + made.sums, values.bad_as_json()
                del block, future, made  # which would be in memory beside the next ones
                if time.monotonic() - recorded_s >= RECORD_EVERY_S:
                    recorded_s = record()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            if progress[0]:  # else there is nothing to resume
                record()


def _made(made: Made) -> Future[Made]:
    future: Future[Made] = Future()
    future.set_result(made)
    return future


def _with_error_last(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks and, as a last one, an error in reading them: those that were read before it come first."""
    try:
        yield from blocks
    except Exception as error:
        yield Block(error, 0)


def _resumed(values: Values, space: Workspace) -> tuple[int, Any, Any]:
    """The units that an earlier attempt has done, their sums, and what is bad of them, as JSON values.

    InputError if what it left is damaged.
    """
    stored, sums = space.progress, values.no_sums()
    if not stored:
        return 0, sums, values.bad_as_json()
    if not (space.path / FEATURES).is_file():
        raise InputError(f"{space.path / FEATURES}: is missing; give --fresh")
    try:
        values.restore_bad(stored["bad"])
        return int(stored["done"]), type(sums).from_json(stored["sums"]), stored["bad"]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{space.path}: damaged ({error}); delete it, or give --fresh") from error
