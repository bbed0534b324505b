from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments.freed_memory import give_back_freed_memory

BLOCKS, BLOCK_BYTES = 2000, 20_000


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""),
    reason="other C libraries have rules of their own",
)
def test_what_was_freed_below_something_that_is_kept_is_given_back() -> None:
    blocks = [np.ones(BLOCK_BYTES, dtype=np.uint8) for _ in range(BLOCKS)]
    kept = blocks[-1]
    del blocks
    before = resident_bytes()
    give_back_freed_memory()
    assert resident_bytes() < before - BLOCKS * BLOCK_BYTES / 2
    assert kept.all()
