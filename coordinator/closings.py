"""When each lane of a batch of ends is full, by columns: each end counts in its own lane alone.

For pacings that declare what their rules look at (`Pacing.sees`): arrays of (n,) ends and of (lanes,) lanes,
never of both. `coordinator.visits` has the reference for any rules, over (n, lanes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Ints

Flags = Callable[[Ints, Ints, Ints, Floats], Bools]
"""A rule of the pacing: `full` or `absorbs`, of (quota, out, back, elapsed_s)."""


@dataclass(frozen=True)
class Batch:
    """Ends of visits in their order, and the counts before the first of them.

    `lane` (n,) is the lane of each end's visit, `arrives` (n,) whether it returns, and `elapsed_s` (n,) its
    virtual seconds since dispatch. `quota`, `out` and `back` (lanes,) are as in `Pacing`.
    """

    lane: Ints
    arrives: Bools
    elapsed_s: Floats
    quota: Ints
    out: Ints
    back: Ints


def closed_together(batch: Batch, full: Flags) -> Ints:
    """(lanes,) the index of the end at which all lanes are full, by a rule over sums; n: at none of them."""
    left = batch.out.sum() - np.arange(1, batch.lane.size + 1)
    arrived = batch.back.sum() + batch.arrives.cumsum()
    flags = full(batch.quota.sum()[None], left[:, None], arrived[:, None], batch.elapsed_s[:, None])[:, 0]
    first = int(flags.argmax())
    closes: Ints = np.full(batch.out.size, batch.lane.size)
    if flags[first]:
        closes[batch.out > 0] = first
    return closes


def closed_alone(batch: Batch, full: Flags) -> Ints:
    """(lanes,) the index of the end at which each lane is full, by a rule over its own numbers; n: at none.

    A lane's numbers change at its own ends only. It may be full at the first end of all, though another's.
    """
    count, num_lanes = batch.lane.size, batch.out.size
    closes: Ints = np.full(num_lanes, count)
    by_lane = np.arange(count) if num_lanes == 1 else batch.lane.argsort(kind="stable")
    lane, arrived = batch.lane[by_lane], batch.arrives[by_lane].cumsum()
    starts = lane.searchsorted(lane)  # of each end, the first one of its lane
    arrived -= (arrived - batch.arrives[by_lane])[starts]  # since the first end of the lane
    left = batch.out[lane] - (np.arange(1, count + 1) - starts)
    elapsed_s = batch.elapsed_s[by_lane]
    flags = full(batch.quota[lane], left[None], (batch.back[lane] + arrived)[None], elapsed_s[None])[0]
    # Of the ends of a lane, the last one assigned is the first one in time.
    filling = by_lane[flags][::-1]
    closes[batch.lane[filling]] = filling
    if num_lanes > 1:
        at_once = full(batch.quota, batch.out[None], batch.back[None], batch.elapsed_s[:1, None])[0]
        at_once = at_once & (batch.out > 0)
        at_once[batch.lane[0]] = False
        closes[at_once] = 0
    return closes


def sums_after(batch: Batch, closes: Ints, counted: Bools) -> tuple[Ints, Ints]:
    """(n,) visits out and (n,) visits back over all lanes, after each end, if lanes close as `closes` says.

    `counted` (n,) are the ends that are not of visits abandoned before.
    """
    count = batch.lane.size
    closing = (closes < count).nonzero()[0]
    ended = np.bincount(batch.lane[counted], minlength=len(closes))[closing]
    abandoned = np.bincount(closes[closing], weights=batch.out[closing] - ended, minlength=count)
    left = batch.out.sum() - (counted + abandoned.astype(np.int64)).cumsum()
    return left, batch.back.sum() + (batch.arrives & counted).cumsum()
