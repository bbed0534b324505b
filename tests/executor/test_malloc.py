from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from executor.malloc import give_back_freed_memory

REUSED = """
import resource
import sys
import numpy as np
from executor.malloc import keep_freed_memory

def faults(bytes_):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(bytes_, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
size = int(sys.argv[1]) * 2**20
first = faults(size)
print(first, max(faults(size) for _ in range(3)))
"""

GLIBC_ONLY = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="has no effect with other C libraries"
)

BLOCKS, BLOCK_BYTES = 2000, 20_000


@GLIBC_ONLY
@pytest.mark.parametrize("environment", [{}, {"MALLOC_TRIM_THRESHOLD_": "65536"}], ids=["plain", "of dask"])
@pytest.mark.parametrize("size", [8, 30])
def test_freed_memory_is_used_again_without_a_page_fault(size: int, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REUSED, str(size)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    first, later = (int(number) for number in done.stdout.split())
    assert later < 20  # 8 MiB are 2,000 pages, or 4 huge ones and some 500 around them
    assert later <= first


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@GLIBC_ONLY
def test_freed_memory_below_a_live_block_is_given_back() -> None:
    blocks = [np.ones(BLOCK_BYTES, dtype=np.uint8) for _ in range(BLOCKS)]
    live = blocks[-1]
    del blocks
    before = resident_bytes()
    give_back_freed_memory()
    assert resident_bytes() < before - BLOCKS * BLOCK_BYTES / 2
    assert live.all()
