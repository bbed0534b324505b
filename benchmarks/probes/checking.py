"""`python -m benchmarks.probes.checking FOLDER SMALL`: checks a trace folder, and prints what it took.

The output is JSON: `cpu_s` of the check, and `peak_bytes` of private memory meanwhile, beyond what the
process had before. The folder SMALL is checked first, so that libraries do not count.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.probes.opening import peak_private
from traces.files.checking import check_folder


def taken(folder: Path, small: Path) -> dict[str, float]:
    """What a check of `folder` takes after one of `small`."""
    check_folder(small)
    with peak_private() as peak:
        start_s = time.process_time()
        check_folder(folder)
        cpu_s = time.process_time() - start_s
    return {"cpu_s": cpu_s, "peak_bytes": max(peak)}


if __name__ == "__main__":
    print(json.dumps(taken(Path(sys.argv[1]), Path(sys.argv[2]))))
