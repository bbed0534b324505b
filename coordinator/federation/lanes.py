"""The lanes of an assignment: which clients each quota is drawn from."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints


class Lanes:
    """`lane` (N,) of each client, -1 = in none; `sizes` (lanes,); `ids`, of each lane its clients, ascending.

    Made once for an assignment, since it looks at every client.
    """

    def __init__(self, lane: Ints, num_lanes: int) -> None:
        self.lane = lane
        # NOTE: numpy sorts short integers in a single pass over a million.
        narrow = lane.astype(np.int16) if num_lanes < 2**15 else lane
        order = np.argsort(narrow, kind="stable")
        ends = np.searchsorted(narrow, np.arange(-1, num_lanes, dtype=narrow.dtype), "right", sorter=order)
        self.sizes: Ints = np.diff(ends).astype(np.int64)
        self.ids: list[Ints] = np.split(order, ends)[1 : num_lanes + 1]
