"""Signals that ask a command to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from experiments.stop import Stop

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
STOPPING = b"stopping after this step, with a checkpoint; once more stops at once\n"


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A `Stop` that these signals ask for. One that is ignored stays so, as nohup wants it."""
    stop = Stop()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.waits:
            with suppress(OSError):  # the terminal may be what is gone
                os.write(2, STOPPING)  # print may not be entered twice, and it may be what was interrupted
        stop.ask()

    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may have handlers
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: old for number, old in before.items() if old not in (signal.SIG_IGN, None)}
    try:
        for number in before:
            signal.signal(number, handle)
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
