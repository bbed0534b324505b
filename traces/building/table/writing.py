"""Writing `features.npy` block by block, in a thread beside the one that reads, resumably."""

from __future__ import annotations

import hashlib
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from emulator.storage.checkpoints import naming_file
from traces.building.feature_rows import rows_file, take_space
from traces.files.facts import FileFacts
from traces.files.features import write_header

QUEUED = 4
"""Most blocks that wait to be written."""

RECORD_EVERY_S = 5.0
"""Wall seconds between two records of the progress."""

Record = Callable[[dict[str, Any]], None]


class FeatureWriter(AbstractContextManager["FeatureWriter"]):
    """Writes blocks of rows behind each other into `path`, from row `done` on.

    Each block comes with a state, which `record` gets after the block is on the disk: not of every block, but
    of one every few seconds, and of the last.
    """

    def __init__(
        self, path: Path, dtype: np.dtype, shape: tuple[int, ...], done: int, record: Record
    ) -> None:
        self.path = path
        self._record = record
        self._hash = hashlib.sha256() if done == 0 else None
        self._file = rows_file(path, resume=done > 0)
        with naming_file(path), ExitStack() as at_error:
            at_error.callback(self._file.close)  # which writes what is left, and may fail again
            self._size = write_header(self._file, dtype, shape)
            if self._hash is not None:
                self._file.flush()
                self._hash.update(path.read_bytes())
            row_bytes = int(np.prod(shape[1:])) * dtype.itemsize
            total = self._size + shape[0] * row_bytes
            take_space(self._file.fileno(), total)  # a full disk ends the build at its start
            self._size += done * row_bytes
            self._file.seek(self._size)
            at_error.pop_all()
        self._queue: queue.Queue[tuple[np.ndarray, dict[str, Any]] | None] = queue.Queue(QUEUED)
        self._error: BaseException | None = None
        self._recorded_s = time.monotonic()
        self._recorder: threading.Thread | None = None
        self._thread = threading.Thread(target=self._write_all, daemon=True)
        self._thread.start()

    def write(self, block: np.ndarray, state: dict[str, Any]) -> None:
        """Write a block, some time; raises what went wrong with an earlier one."""
        if self._error is not None:
            raise self._error
        self._queue.put((np.ascontiguousarray(block), state))

    def finish(self) -> FileFacts | None:
        """Wait until all is written; the size and digest, or None if another writer began the file.

        It is on the disk once the context has ended.
        """
        self._end()
        if self._error is not None:
            raise self._error
        if self._hash is None:
            return None
        return FileFacts(bytes=self._size, sha256=self._hash.hexdigest())

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._end()
        if self._recorder is not None:
            self._recorder.join()
        with naming_file(self.path):
            self._file.close()
        if self._error is not None and error is None:
            raise self._error

    def _end(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _write_all(self) -> None:
        """Until None is taken from the queue: write, hash, record. After an error, only empty the queue."""
        state: dict[str, Any] | None = None
        ended = False
        while not ended:
            taken = self._queue.get()
            ended = taken is None
            if self._error is not None:
                continue
            try:
                if taken is not None:
                    block, state = taken
                    data = block.data.cast("B")
                    with naming_file(self.path):
                        self._file.write(data)
                    self._size += len(data)
                    if self._hash is not None:
                        self._hash.update(data)
                due = time.monotonic() - self._recorded_s > RECORD_EVERY_S
                if state is not None and (ended or due):
                    self._store(state)
            except BaseException as error:
                self._error = error

    def _store(self, state: dict[str, Any]) -> None:
        """Begin to bring what is written to the disk, to be recorded then; writing does not wait for it."""
        if self._recorder is not None:
            self._recorder.join()
        with naming_file(self.path):
            self._file.flush()
        self._recorder = threading.Thread(target=self._sync, args=(state,), daemon=True)
        self._recorder.start()
        self._recorded_s = time.monotonic()

    def _sync(self, state: dict[str, Any]) -> None:
        try:
            with naming_file(self.path):
                os.fsync(self._file.fileno())
            self._record(state)
        except BaseException as error:
            self._error = error
