"""`python -m benchmarks.probes.table TABLE OUT`: builds a trace, and prints its peak of memory.

The output is JSON: `peak_bytes` beyond what the process had before. A small table is built first, so that
libraries and their caches do not count.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.building.table import SETTINGS, TableSizes, write_table
from benchmarks.probes.opening import peak_private
from traces.building import Request
from traces.building.table.build import Table


def main(root: Path, out: Path) -> None:
    """Build `out` of `root`, and print the fact."""
    with tempfile.TemporaryDirectory() as scratch:
        small = write_table(Path(scratch) / "small.parquet", 1000, TableSizes(clients=10))
        Table(SETTINGS).build(Request(small, Path(scratch) / "out"))
    shutil.rmtree(out, ignore_errors=True)
    with peak_private() as samples:
        Table(SETTINGS).build(Request(root, out))
    print(json.dumps({"peak_bytes": max(samples)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
