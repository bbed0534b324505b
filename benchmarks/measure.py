"""Interleaved measurements: each contender once per repeat, so that a disturbance affects all alike."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from emulator.arrays import Floats

ROOT = Path(__file__).resolve().parents[1]
"""The folder of our packages, which processes of the bench find first."""

Measured = Callable[[], float]
"""A function that does its work once and returns the measured value, such as wall seconds."""

Say = Callable[[str], None]
"""A function that receives the progress of a measurement, one line per call."""


def timed(work: Callable[[], object]) -> Measured:
    """A function that calls `work` once and returns the wall seconds."""

    def measured() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measured


def often(work: Callable[[], object], times: int) -> Measured:
    """A function that calls `work` `times` times and returns the mean wall seconds of a call.

    For work that is short or has state.
    """

    def measured() -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) / times

    return measured


def interleaved(
    contenders: Mapping[str, Measured], repeats: int, *, warm_up: bool = True, say: Say | None = None
) -> dict[str, Floats]:
    """The samples of each contender, by name, of shape (repeats,); each is called once per repeat.

    Every other repeat calls them in reverse order, so that no contender always finds the caches that the same
    neighbour left. With `warm_up`, each is called once before the repeats, and that sample is discarded.
    """
    if warm_up:
        for contender in contenders.values():
            contender()
    samples = {name: np.zeros(repeats) for name in contenders}
    names = list(contenders)
    for repeat in range(repeats):
        for name in names if repeat % 2 == 0 else reversed(names):
            samples[name][repeat] = contenders[name]()
        if say is not None:
            say(f"repeat {repeat + 1}/{repeats}")
    return samples


@contextmanager
def collector_frozen() -> Iterator[None]:
    """In the block, the garbage collector does not traverse the objects that exist at its start.

    For references that hold a million Python objects, which would slow down the other contenders too.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def calls_of_one(work: Callable[[int], object], few: int, more: int) -> dict[str, float]:
    """The calls of Python and C that `work` makes for one of its repetitions, by the function of ours.

    What `more` repetitions make more than `few`, by their number; the function with the most calls is the
    first. Before they are counted both are done once, with what is done once, such as imports.
    """
    number: Counter[str] = Counter()
    weight = 1

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_call"):
            caller: FrameType | None = frame
            while caller is not None and "site-packages" in caller.f_code.co_filename:
                caller = caller.f_back
            number["?" if caller is None else caller.f_code.co_qualname] += weight

    for repetitions in (few, more):
        work(repetitions)
        weight = 1 if repetitions == more else -1
        sys.setprofile(count)
        try:
            work(repetitions)
        finally:
            sys.setprofile(None)
    return {where: calls / (more - few) for where, calls in number.most_common()}
