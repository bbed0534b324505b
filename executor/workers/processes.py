"""Worker processes on this machine: how one is started, told what it may map, and ended.

A worker belongs to its coordinator: the two hold the ends of a pair of sockets, and when that of the
coordinator is closed, however it ended, the worker ends too. Through the pair go descriptors of files that
have no name, so that a worker maps what the coordinator mapped and nothing is copied or left behind.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn

from torch._C._distributed_c10d import FileStore, Store

from executor.workers.channel import CONNECT_S, COORDINATOR, WORKER, Channel, LostError, connect

READY = "ready"
POLL_S = 0.005
TAIL_BYTES = 2_000
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Libraries compute with one thread in a worker; what runs side by side is `executor.threads`."""

NUMBER_BYTES = 8
MOST_DESCRIPTORS = 16


class WorkerProcess:
    """A worker of `module`, ready for its first message; LostError where it does not come up."""

    restarts = True

    def __init__(self, module: str) -> None:
        ours, theirs = socket.socketpair()
        self._control = ours
        self._ending = threading.Lock()
        self._ended: str | None = None
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        with tempfile.TemporaryDirectory(prefix="driftscale-") as folder, theirs:  # only we may enter it
            path = Path(folder) / "store"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(path)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is the coordinator's to deal with
            )
            try:
                store = FileStore(str(path), 2)
                self._await(store)
                self.channel = connect(store, COORDINATOR, loopback=True)
                # Until it has said that it is there, the worker needs the store.
                self.channel.receive(CONNECT_S)
            except BaseException:
                self.end()
                raise

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    def hand_over(self, number: int, descriptors: Sequence[int]) -> None:
        """Let it have open files; it asks for them by their number."""
        try:
            socket.send_fds(self._control, [number.to_bytes(NUMBER_BYTES, "little")], descriptors)
        except OSError as error:
            raise LostError(str(error)) from error

    def end(self, patience_s: float = 0.0) -> str:
        """End it, after so long a wait for it to end by itself: how it ended, and the last it had to say."""
        with self._ending:
            if self._ended is None:
                try:
                    found: int | None = self._process.wait(patience_s)
                except subprocess.TimeoutExpired:
                    found = None
                    self._process.kill()
                    self._process.wait()
                self._control.close()
                self._ended = _reason(found) + self._last_words()
                self._errors.close()
            return self._ended

    def _await(self, store: Store) -> None:
        """Until the worker is up; LostError where it ends before."""
        until = time.monotonic() + CONNECT_S
        while not store.check([READY]):
            if self._process.poll() is not None or time.monotonic() > until:
                raise LostError(f"it did not start: {self.end()}")
            time.sleep(POLL_S)

    def _last_words(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL_BYTES))
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {last}" if last else ""


class Coordinator:
    """The coordinator, as its worker process sees it: made at once, before anything heavy is imported."""

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._control = socket.socket(fileno=os.dup(sys.stdin.fileno()))
        self._handed: dict[int, list[int]] = {}
        self._arrived = threading.Condition()
        threading.Thread(target=self._follow, daemon=True).start()

    def connect(self, path: str) -> Channel:
        """The channel to it, through the store at `path`."""
        store = FileStore(path, 2)
        store.set(READY, "")
        channel = connect(store, WORKER, loopback=True)
        channel.send(READY)
        return channel

    def descriptors(self, number: int) -> list[int]:
        """The open files that it handed over under that number."""
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._handed)
            return self._handed.pop(number)

    def _follow(self) -> NoReturn:
        """Take what is handed over; when the coordinator is gone, so is this process."""
        while True:
            number, descriptors, _, _ = socket.recv_fds(self._control, NUMBER_BYTES, MOST_DESCRIPTORS)
            if not number:
                os._exit(0)
            with self._arrived:
                self._handed[int.from_bytes(number, "little")] = descriptors
                self._arrived.notify_all()


def _environment() -> dict[str, str]:
    """Ours, with our packages first on the path and libraries on one thread."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict.fromkeys(ONE_THREAD, "1")}


def _reason(found: int | None) -> str:
    if found is None:
        return "ended by the coordinator"
    if found < 0:
        return f"killed by {signal.Signals(-found).name}"
    return f"ended with exit code {found}"
