"""Handling of the signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP.

By default, `interrupted_by_signals` ends the command, by KeyboardInterrupt or at once. While runs are played,
`stop_on_signals` takes its place: the runs are stored before the command ends.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from experiments.running.stop import Stop

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
INTERRUPTED = "interrupted; finished work is kept; give the same command again"
EXIT_CODE = 130  # as emulator.errors.InterruptionError has it
AGAIN_S = 0.02
SAME_S = 1.0
STOPPING = b"stopping after this step, with a checkpoint; a second signal stops at once\n"


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Context in which the first signal raises KeyboardInterrupt, and a second one ends the process.

    While a module is imported, the first one ends the process as well: an exception raised there may be
    swallowed, or become another error of a half-imported library. For that reason commands import their
    modules before they acquire anything that must be released.
    """
    is_first = True

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_first
        was_first, is_first = is_first, False
        if not was_first or _is_importing(frame):
            _write(f"{INTERRUPTED}\n".encode())
            os._exit(EXIT_CODE)
        raise KeyboardInterrupt

    with _handling(handle):
        yield


@contextmanager
def stop_on_signals(rank: int | None = None) -> Iterator[Stop]:
    """Context with a `Stop` that a signal requests; a signal during an import takes effect after the import.

    torchrun forwards a signal that the terminal may have sent to its ranks already: in a rank (`rank` given),
    a signal within SAME_S seconds of the first counts as the same one. A later one ends the process at once,
    even during an exchange between ranks. Of the ranks, only rank 0 prints a message.
    """
    stop = Stop()
    requested_s = math.inf

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested_s
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
            return
        if rank is not None and stop.stop_requested:
            if time.monotonic() - requested_s <= SAME_S:
                return
            os._exit(EXIT_CODE)
        requested_s = time.monotonic()
        if stop.waits and not rank:
            _write(STOPPING)
        stop.request()

    with _handling(handle, always=(signal.SIGALRM,)):
        try:
            yield stop
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _handling(handle: Callable[[int, FrameType | None], None], always: Sequence[int] = ()) -> Iterator[None]:
    """Context in which `handle` is the handler of the signals in `NAMES`, and of those in `always`.

    A signal that is ignored, as under nohup, stays ignored, unless it is one of `always`. Outside the main
    thread, where Python allows no handlers, nothing is changed.
    """
    numbers = [*always, *(getattr(signal, name) for name in NAMES)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # Python allows handlers in the main thread only
    before = {number: signal.getsignal(number) for number in numbers}
    before = {
        number: old
        for number, old in before.items()
        if old is not None and (number in always or old is not signal.SIG_IGN)
    }
    try:
        for number in before:
            signal.signal(number, handle)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether the code at `frame` runs during the import of a module."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _write(line: bytes) -> None:
    """Write to standard error from a signal handler.

    `print` is not reentrant, and the signal may have interrupted it.
    """
    with suppress(OSError):  # the terminal may be gone
        os.write(2, line)
