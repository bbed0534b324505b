"""Signals that ask a command to stop.

At first they end the process, or break off what it does. `stop_on_signals` takes them over for runs, which
are stored first.
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
INTERRUPTED = "interrupted; nothing that was finished is lost, give the same command again"
EXIT_CODE = 130  # as emulator.errors.InterruptionError has it
AGAIN_S = 0.02
SAME_S = 1.0
STOPPING = b"stopping after this step, with a checkpoint; once more stops at once\n"


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Within it the first of these signals is a KeyboardInterrupt, and a second one ends the process.

    So does the first while a module is imported: what is raised there may be swallowed, or come out as
    another error of a library that is half there. Commands import before they hold what must be let go.
    """
    is_first = True

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal is_first
        was_first, is_first = is_first, False
        if not was_first or _is_importing(frame):
            _say(f"{INTERRUPTED}\n".encode())
            os._exit(EXIT_CODE)
        raise KeyboardInterrupt

    with _handling(handle):
        yield


@contextmanager
def stop_on_signals(rank: int | None = None) -> Iterator[Stop]:
    """A `Stop` that these signals ask for, once the import is over if they come within one.

    torchrun forwards a signal that the terminal may have sent already: in one of its ranks, `rank`, one that
    follows the first within SAME_S is the same. A later one ends the process at once, in the midst of an
    exchange too. Rank 0 alone says something.
    """
    stop = Stop()
    asked_s = math.inf

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked_s
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
            return
        if rank is not None and stop.asked:
            if time.monotonic() - asked_s <= SAME_S:
                return
            os._exit(EXIT_CODE)
        asked_s = time.monotonic()
        if stop.waits and not rank:
            _say(STOPPING)
        stop.ask()

    with _handling(handle, always=(signal.SIGALRM,)):
        try:
            yield stop
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _handling(handle: Callable[[int, FrameType | None], None], always: Sequence[int] = ()) -> Iterator[None]:
    """Within it `handle` handles these signals, but for one that is ignored, as nohup wants it, and those
    that are to be handled `always`."""
    numbers = [*always, *(getattr(signal, name) for name in NAMES)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may have handlers
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
    """Whether a module is being imported where `frame` is at work."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _say(line: bytes) -> None:
    """From within a handler, where print may be what was interrupted, and may not be entered twice."""
    with suppress(OSError):  # the terminal may be what is gone
        os.write(2, line)
