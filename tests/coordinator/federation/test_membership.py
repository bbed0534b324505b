from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.federation.membership import Lanes
from tests.fakes import ints


def test_each_lane_has_its_clients_in_ascending_order_and_clients_in_no_lane_are_left_out() -> None:
    lanes = Lanes(ints(2, -1, 0, 2, 0, -1), num_lanes=4)
    assert [ids.tolist() for ids in lanes.ids] == [[2, 4], [], [0, 3], []]
    assert lanes.sizes.tolist() == [2, 0, 2, 0]


def test_without_lanes_no_client_is_in_one() -> None:
    assert Lanes(ints(-1, -1), num_lanes=0).ids == []


@pytest.mark.slow
@given(st.lists(st.integers(-1, 5), max_size=30), st.sampled_from([6, 40_000]))
def test_lanes_equal_those_of_a_scan_for_each_lane(lane_of_client: list[int], num_lanes: int) -> None:
    lanes = Lanes(np.array(lane_of_client, dtype=np.int64), num_lanes)
    assert len(lanes.ids) == len(lanes.sizes) == num_lanes
    for row in range(6):
        assert lanes.ids[row].tolist() == [
            client for client, lane in enumerate(lane_of_client) if lane == row
        ]
    assert lanes.sizes.tolist() == [len(ids) for ids in lanes.ids]
