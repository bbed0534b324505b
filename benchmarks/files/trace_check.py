"""The workload trace-check: checking a trace folder of five million samples of 64 floats.

Its rows are in the order of a table, or in a random one. The reference hashes the bytes of the features. Each
repeat is a process of its own, `probes/checking.py`.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, Reference, Target, figure
from benchmarks.files.trace_folder import FolderSizes, write_folder
from benchmarks.measure import Say, interleaved
from benchmarks.memory import BYTES_PER_MB, MOST_REPEATS, in_a_process
from traces.files import FEATURES, file_facts

HASHING = "hashing the bytes of features.npy alone"


def measure_trace_check(repeats: int, say: Say) -> list[Figure]:
    return trace_check_figures(FolderSizes(), min(repeats, MOST_REPEATS), say)


def trace_check_figures(sizes: FolderSizes, repeats: int, say: Say) -> list[Figure]:
    """CPU seconds to check a folder, with rows in order and not, and private memory at the peak."""
    peaks: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        small, in_order, in_disorder = (Path(scratch) / name for name in ("small", "in_order", "in_disorder"))
        say(f"writing two traces of {sizes.samples:,} samples")
        write_folder(small, FolderSizes(samples=1000, floats=sizes.floats, clients=10))
        write_folder(in_order, sizes)
        write_folder(in_disorder, sizes, in_order=False)

        def check(folder: Path) -> float:
            probe: dict[str, float] = in_a_process("checking", str(folder), str(small))
            peaks.append(probe["peak_bytes"])
            return probe["cpu_s"]

        samples = interleaved(
            {
                "in order": lambda: check(in_order),
                "in disorder": lambda: check(in_disorder),
                "hash": lambda: cpu_s_of_hashing(in_order / FEATURES),
            },
            repeats,
            warm_up=False,
            say=say,
        )
    rows = f"{sizes.samples:,} rows x {sizes.floats} floats"
    hashing = Reference(samples["hash"], HASHING)
    return [
        figure(
            "trace-check",
            f"CPU time of checking a trace of {rows}, in order",
            samples["in order"],
            "s",
            better="lower",
            against=hashing,
            target=Target("value", 10.0),
        ),
        figure(
            "trace-check-disorder",
            "the same with rows in random order",
            samples["in disorder"],
            "s",
            better="lower",
            against=hashing,
            target=Target("value", 10.0),
        ),
        figure(
            "trace-check-memory",
            "private memory at the peak of both, beyond that of the loaded libraries",
            np.array(peaks) / BYTES_PER_MB,
            "MB",
            better="lower",
            target=Target("value", 400.0),
        ),
    ]


def cpu_s_of_hashing(path: Path) -> float:
    """The CPU seconds of reading and hashing a file."""
    start_s = time.process_time()
    file_facts(path)
    return time.process_time() - start_s
