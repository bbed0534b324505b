"""Signals of worker processes: workers ignore them, and the command tells its workers to stop.

Ctrl-C, a closed terminal and a kill of the process group reach every process of a command, and dask's own
workers die of the first two at once. Ours start with these signals blocked, and ignore them once they are up.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

OF_THE_COMMAND = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that the command handles for its workers."""


@contextmanager
def blocked() -> Iterator[None]:
    """Context in which new threads and processes, and their descendants, have these signals blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_COMMAND)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start multiprocessing's resource tracker, the process that keeps track of resources that workers share.

    NOTE: if it were started along with the first worker, it would unblock signals in the thread that starts
    the worker. It removes the shared resources of a killed command, and would print a warning for them.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
    try:
        with blocked():
            resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


def ignore() -> None:
    """Ignore these signals in this process. Has an effect in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in OF_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_COMMAND)
