from __future__ import annotations

import platform
import subprocess
import sys

import pytest

REUSED = """
import resource
import numpy as np
from executor.memory import LARGEST_KEPT_BYTES, keep_freed_memory

def faults(bytes_):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(bytes_, dtype=np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
size = LARGEST_KEPT_BYTES // 2
first = faults(size)
print(first, max(faults(size) for _ in range(3)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what is kept is a matter of glibc")
def test_what_was_freed_is_used_again_without_a_page_fault() -> None:
    done = subprocess.run([sys.executable, "-c", REUSED], capture_output=True, text=True, check=True)
    first, later = (int(number) for number in done.stdout.split())
    assert later < 20  # 8 MB are 2,000 pages, or 4 huge ones
    assert later <= first
