from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from executor.workers.pool import Pool
from executor.workers.processes import WorkerProcess

MODULE = "tests.executor.workers.small_worker"


@pytest.fixture(scope="module")
def pool_of() -> Iterator[Callable[[int], Pool]]:
    """Pools of so many worker processes, which the tests of a module share."""
    with ExitStack() as stack:

        @cache
        def pool_of(workers: int) -> Pool:
            pool = stack.enter_context(Pool([lambda: WorkerProcess(MODULE)] * workers, timeout_s=60))
            pool.wait_for_all()
            return pool

        yield pool_of
