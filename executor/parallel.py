"""Runs jobs in parallel, each in one Python thread.

torch computes with a single thread in each of them; its operations release the interpreter's lock. Which
thread runs a job does not change a bit of its result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it torch computes with one thread; afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Threads:
    """Runs up to `threads` jobs at once: one in the caller's thread, the others in a pool of threads.

    Building it sets torch, for the whole process, to compute with one thread.
    """

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(1)
        self._num_helpers = threads - 1  # besides the caller's thread
        # Of OpenMP the number is that of the thread that sets it: sums by several differ in their last bits.
        self._pool = None
        if self._num_helpers:
            self._pool = ThreadPoolExecutor(
                self._num_helpers, initializer=torch.set_num_threads, initargs=(1,)
            )

    def run(self, job: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Run `job` for each of `items`, which must be independent of one another.

        When a job fails, the jobs not yet started are skipped; once all running ones have ended, the error
        of the first failed item in order is raised.
        """
        waiting = deque(enumerate(items))
        errors: dict[int, Exception] = {}

        def work() -> None:
            while True:
                try:
                    index, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    job(item)
                except Exception as error:
                    errors[index] = error
                    waiting.clear()

        helpers = min(self._num_helpers, len(waiting) - 1)
        futures = [self._pool.submit(work) for _ in range(helpers)] if self._pool else []
        try:
            work()
        finally:
            waiting.clear()  # after an interrupt too
            wait(futures)
        for future in futures:
            future.result()  # raises a BaseException that `work` does not catch, such as SystemExit
        if errors:
            raise errors[min(errors)]
