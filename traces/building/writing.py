"""Writing `features.npy`: blocks of values, made by several threads, resumably.

The main thread reads what values are made of, and hands out blocks of it; threads make the values and write
them to their places in the file; the main thread takes the outcomes in the order of the blocks. So neither
the bytes, nor the sums, nor which bad row ends a build, depend on the number of threads.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from emulator.arrays import Bools, Ints
from emulator.errors import InputError
from emulator.storage.checkpoints import naming_file
from emulator.storage.own_files import create_file, open_file
from traces.building.base import Watch
from traces.building.decoding import without_warnings
from traces.building.sums import Sums
from traces.building.workspace import Workspace
from traces.files.facts import FEATURES
from traces.files.features import write_header

AHEAD = 2
"""Blocks per thread that are read, and not yet taken: the bound of the queue."""

MOST_HELD = 2**28
"""Bytes of blocks that are read, and not yet taken, after which no other block is read."""

RECORD_EVERY_S = 5.0
"""Wall seconds between two records of the progress."""


class Block(NamedTuple):
    """What some values are made of: so many `units`, images or rows of a table, and bytes that they hold."""

    content: Any
    units: int
    held: int = 0


class Made(NamedTuple):
    """The values (k, *shape) of the rows (k,) of a block, and their sums; `bad` says what cannot be read."""

    rows: Ints
    values: np.ndarray
    sums: Sums
    bad: Any = None


class Values(Protocol):
    """What makes the values of rows: samples of `shape` and `dtype`, of `total` units, by so many threads."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def total(self) -> int: ...
    def no_sums(self) -> Sums:
        """The sums of no values."""
        ...

    def blocks(self, done: int) -> Iterator[Block]:
        """Read the blocks behind the first `done` units; DataFileError for a damaged file."""
        ...

    def make(self, block: Block) -> Made:
        """Make the values of a block, in a thread."""
        ...

    def take(self, made: Made, watch: Watch) -> None:
        """Take note of what is bad, block by block; DataFileError if one too many is."""
        ...

    def bad_as_json(self) -> Any:
        """What is bad so far; `restore_bad` takes it over."""
        ...

    def restore_bad(self, state: Any) -> None: ...
    def good(self) -> Bools:
        """(n,) whether each row is in the trace."""
        ...


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
        self._path = path
        dtype = np.dtype(dtype)
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


@dataclass(frozen=True)
class _Progress:
    """How far the work has come: the units done, and the sums of their values."""

    done: int
    sums: Sums


def write_features(values: Values, num_rows: int, space: Workspace, workers: int, watch: Watch) -> Sums:
    """Write the values of `num_rows` rows in the workspace, from where an earlier attempt came to.

    Returns:
        The sums of all values.

    Raises:
        DataFileError: what values are made of is damaged, or bad rows are too many; the first such error.
        InputError: what an earlier attempt left is damaged.
    """
    path, resume = space.path / FEATURES, bool(space.progress)
    if resume and not path.is_file():
        raise InputError(f"{path}: is missing; give --fresh")
    progress = _resumed(values, space)
    with FeatureRows(path, (num_rows, *values.shape), resume=resume, dtype=values.dtype) as features:
        return _written(values, features, progress, space, workers, watch)


def _written(
    values: Values, features: FeatureRows, progress: _Progress, space: Workspace, workers: int, watch: Watch
) -> Sums:
    def make(block: Block) -> Made:
        made = values.make(block)
        features.write(made.rows, made.values)
        return made

    def record() -> None:
        features.flush()
        state = {"done": progress.done, "sums": progress.sums.as_json(), "bad": values.bad_as_json()}
        space.record(state)

    ahead = _Ahead(values.blocks(progress.done))
    recorded_s = time.monotonic()
    pending: deque[tuple[Block, Future[Made]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="values")
    try:
        with without_warnings():
            while True:
                while len(pending) < AHEAD * workers and sum(block.held for block, _ in pending) < MOST_HELD:
                    block = ahead.next()
                    if block is None:
                        break
                    pending.append((block, pool.submit(make, block)))
                    del block
                if not pending:
                    break
                block, future = pending.popleft()
                made = future.result()
                values.take(made, watch)
                watch.progress(progress.done + block.units, values.total)
                # A new object: an interruption between two statements leaves the progress as it was.
                progress = _Progress(progress.done + block.units, progress.sums + made.sums)
                del block, future, made
                if time.monotonic() - recorded_s >= RECORD_EVERY_S:
                    record()
                    recorded_s = time.monotonic()
        ahead.end()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if progress.done:  # else there is nothing to resume
            record()
    return progress.sums


class _Ahead:
    """Blocks that are read ahead: an error is raised when those that were read before it have been taken."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._error: Exception | None = None

    def next(self) -> Block | None:
        """The next block; None if there is none, or it cannot be read."""
        if self._error is not None:
            return None
        try:
            return next(self._blocks, None)
        except Exception as error:
            self._error = error
            return None

    def end(self) -> None:
        """Raise what went wrong, if anything did."""
        if self._error is not None:
            raise self._error


def _resumed(values: Values, space: Workspace) -> _Progress:
    stored, sums = space.progress, values.no_sums()
    if not stored:
        return _Progress(0, sums)
    try:
        values.restore_bad(stored["bad"])
        return _Progress(int(stored["done"]), type(sums).from_json(stored["sums"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{space.path}: damaged ({error}); delete it, or give --fresh") from error
