"""Interleaved measurements: each contender once per repeat, so that what disturbs one disturbs all."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from emulator.arrays import Floats

Measured = Callable[[], float]
"""Does its work once and returns what it measured, such as the wall seconds of the part that counts."""

Say = Callable[[str], None]
"""Told how far a measurement has come, one line at a time."""


def timed(work: Callable[[], object]) -> Measured:
    """`work` measured as a whole, in seconds."""

    def measured() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measured


def often(work: Callable[[], object], times: int) -> Measured:
    """`work` measured over so many calls, in seconds for one: for work that is short, or has a state."""

    def measured() -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) / times

    return measured


def interleaved(
    contenders: Mapping[str, Measured], repeats: int, *, warm_up: bool = True, say: Say | None = None
) -> dict[str, Floats]:
    """(repeats,) what each contender measured, all of them once per repeat.

    Every other repeat goes backwards through them, so that nobody always has the caches of the same
    neighbour. With `warm_up` each is called once before, and what that call measured is left out.
    """
    if warm_up:
        for contender in contenders.values():
            contender()
    found = {name: np.zeros(repeats) for name in contenders}
    names = list(contenders)
    for repeat in range(repeats):
        for name in names if repeat % 2 == 0 else reversed(names):
            found[name][repeat] = contenders[name]()
        if say is not None:
            say(f"repeat {repeat + 1}/{repeats}")
    return found


@contextmanager
def collector_frozen() -> Iterator[None]:
    """Keeps the garbage collector from walking what lives now, for as long as it lasts.

    For references that hold a million Python objects: their burden is not to fall on whoever runs beside.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
