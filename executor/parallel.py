"""Jobs side by side, each in one thread of Python's.

torch computes with one thread in each: its operations let others run meanwhile, and which thread does a job
changes no bit of it.
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
    """torch computes with one thread meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Threads:
    """Does up to `threads` jobs at once: one in the caller's thread, the others in threads of its own."""

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(1)
        self._others = threads - 1
        self._pool = ThreadPoolExecutor(self._others) if self._others else None

    def run(self, job: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Do the `job` for each of `items`, which must not depend on one another.

        When one fails, those that have not begun are left out, and the error of the first in order is raised
        once all that have begun are done.
        """
        waiting = deque(enumerate(items))
        errors: dict[int, Exception] = {}

        def work() -> None:
            while True:
                try:
                    place, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    job(item)
                except Exception as error:
                    errors[place] = error
                    waiting.clear()

        others = min(self._others, len(waiting) - 1)
        begun = [self._pool.submit(work) for _ in range(others)] if self._pool else []
        try:
            work()
        finally:
            waiting.clear()  # after an interrupt too
            wait(begun)
        for one in begun:
            one.result()  # what is no Exception, such as an exit
        if errors:
            raise errors[min(errors)]
