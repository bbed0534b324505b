"""Signals of worker processes: workers ignore them, and the command tells its workers to stop.

Ctrl-C, a closed terminal and a kill of the process group reach every process of a command, and dask's own
workers die of the first two at once. Ours start with the signals of `OF_THE_COMMAND` blocked, and ignore them
once they are up.
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
    """Context in which this thread blocks `OF_THE_COMMAND`.

    Threads and processes that it starts, and their descendants, inherit that.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_COMMAND)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start multiprocessing's resource tracker: a process that deletes shared resources of killed ones.

    NOTE: Python starts it along with the first worker, if not before, and then unblocks SIGINT and SIGTERM in
    the thread that starts the worker. Its warnings are off, as it would print one for the resources of a
    killed command.
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
    """Ignore `OF_THE_COMMAND` in this process. Does nothing unless called in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in OF_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_COMMAND)
