"""What becomes of memory that was freed once a world is built."""

from __future__ import annotations

import ctypes
import sys


def give_back_freed_memory() -> None:
    """Have the C library hand all memory that is free back to the system.

    To draw a fleet of a hundred thousand phones takes a hundred megabytes in passing, which glibc would keep
    for what comes next, and a run needs nothing like it again. Other libraries have rules of their own, and
    this changes nothing.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
