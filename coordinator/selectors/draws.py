"""Draws of clients: lane by lane, each lane with a random stream of its own, and in proportion to weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.view import View
from emulator.arrays import NO_IDS, Floats, Ints


def by_lane(wanted: Ints, view: View, choose: Callable[[int, int, np.random.Generator], Ints]) -> Ints:
    """All ids, ascending, that `choose` returns for the lanes, of each the number `wanted` (lanes,).

    It is called with a lane, this number, and a generator that is valid during the call.
    """
    streams = view.rngs("selection", np.arange(len(wanted)))
    lanes = enumerate(zip(wanted.tolist(), streams, strict=True))
    chosen = [choose(lane, count, generator) for lane, (count, generator) in lanes]
    return np.sort(np.concatenate([NO_IDS, *chosen]))


def weighted_draw(ids: Ints, weights: Floats | Ints, count: int, generator: np.random.Generator) -> Ints:
    """`count` of `ids` (n,), or all if there are fewer, without replacement, in the order of the draw.

    Each draw takes one of the remaining ids with a probability in proportion to its weight (n,), which must
    be above 0. All are drawn at once: they are the first events of exponential times at rates `weights`
    (Efraimidis and Spirakis 2006).

    >>> weighted_draw(np.array([3, 5, 8]), np.array([1e-9, 1.0, 1e9]), 2, np.random.default_rng(0)).tolist()
    [8, 5]
    """
    times = generator.exponential(size=len(ids)) / weights
    first = np.argpartition(times, count)[:count] if count < len(ids) else np.arange(len(ids))
    return ids[first[np.argsort(times[first], kind="stable")]]
