"""Matrix products on one thread: several threads would change the order of sums, and so the last bits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which numpy's matrix products, and scikit-learn's, run on one thread."""
    limit: AbstractContextManager[Any] = _thread_pools().limit(limits=1)
    return limit


@cache
def _thread_pools() -> Any:
    """The thread pools of this process.

    NOTE: found once, since looking through all loaded libraries takes longer than a small clustering. That of
    numpy, which is imported by then, is among them.
    """
    import numpy as np  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
