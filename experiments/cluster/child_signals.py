"""Signals and worker processes: they reach the command, which tells its workers.

Ctrl-C, a closed terminal and a kill of the process group go to every process of a command; dask's workers die
of the first two at once. Ours are born with these signals blocked, and ignore them as soon as they are up.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

OF_THE_COMMAND = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def blocked() -> Iterator[None]:
    """Threads and processes that are started within it, and by those, have these signals blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OF_THE_COMMAND)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start multiprocessing's resource tracker, a process that is told what all workers share.

    NOTE: started along with the first worker, it would unblock signals in the thread that starts that. What
    a killed command shared it removes, and would print a warning of it.
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
    """Ignore these signals in this process; called in its main thread. Without effect in any other."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in OF_THE_COMMAND:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, OF_THE_COMMAND)
