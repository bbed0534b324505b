"""The clients of each lane of an assignment, and their number."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints


class Lanes:
    """The lanes of all clients: the lane of each client, and the clients of each lane.

    `lane_of_client` (N,): the lane of each client, -1 = in no lane. `sizes` (lanes,): the number of clients
    in each lane. `ids`: for each lane the ids of its clients, ascending.

    Built once per assignment and data step, since it processes every client.
    """

    def __init__(self, lane_of_client: Ints, num_lanes: int) -> None:
        self.lane_of_client = lane_of_client
        # NOTE: numpy sorts short integers in a single pass over a million.
        narrow = lane_of_client.astype(np.int16) if num_lanes < 2**15 else lane_of_client
        order = np.argsort(narrow, kind="stable")
        ends = np.searchsorted(narrow, np.arange(-1, num_lanes, dtype=narrow.dtype), "right", sorter=order)
        self.sizes: Ints = np.diff(ends).astype(np.int64)
        self.ids: list[Ints] = np.split(order, ends)[1 : num_lanes + 1]
