"""`python -m benchmarks.probes.opening FOLDER`: opens a trace folder, and prints what it took.

The output is JSON: `seconds` to build the trace, `peak_bytes` of private memory meanwhile and `read_bytes`
while the features of all samples are read once, both beyond what the process had before. A small trace is
built first, so that libraries and their caches do not count.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil

from emulator.seeding import RandomStreams
from traces.sources import TraceContext
from traces.sources.file import File, FileSettings
from traces.trace import Trace

SAMPLED_EVERY_S = 0.001
READ_AT_ONCE = 2**14


def main(folder: Path, warm_up: Path) -> None:
    """Open `folder` after `warm_up`, and print the facts."""
    opened(warm_up)
    with peak_private() as opening:
        start_s = time.perf_counter()
        trace = opened(folder)
        seconds = time.perf_counter() - start_s
    with peak_private() as reading:
        for first in range(0, len(trace), READ_AT_ONCE):
            trace.features(np.arange(first, min(first + READ_AT_ONCE, len(trace))))
    facts = {"seconds": seconds, "peak_bytes": max(opening), "read_bytes": max(reading)}
    print(json.dumps(facts))


def opened(folder: Path) -> Trace:
    """The trace of a folder whose data steps are 0 to 60, four owned from the start."""
    settings = FileSettings(folder=str(folder), rounds_per_step=1, retain_rounds=5)
    return File(settings).build(TraceContext(60, RandomStreams(0), Path))


@contextmanager
def peak_private() -> Iterator[list[int]]:
    """Context that samples the private memory of this process: the bytes beyond those at its beginning."""
    process, ended = psutil.Process(os.getpid()), threading.Event()

    def private() -> int:
        memory = process.memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))

    before, samples = private(), [0]

    def sample() -> None:
        while not ended.wait(SAMPLED_EVERY_S):
            samples.append(private() - before)

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield samples
    finally:
        ended.set()
        sampler.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
