from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what is kept is a matter of glibc")
@pytest.mark.parametrize("environment", [{}, {"MALLOC_TRIM_THRESHOLD_": "65536"}], ids=["plain", "of dask"])
@pytest.mark.parametrize("size", [8, 30])
def test_what_was_freed_is_used_again_without_a_page_fault(size: int, environment: dict[str, str]) -> None:
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
