"""Queries against a scan of every tick; the reference does not sort, merge or search."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.assigning import deal
from emulator.errors import DataFileError
from traces.availability import IntervalAvailability, from_intervals

NEVER = float("inf")
TICK_S = 0.25
LONGEST = 24  # ticks
HORIZON = 3 * (LONGEST + 5)
MERGE = '; devices.availability.overlapping = "merge" takes both together'


@dataclass
class Scan:
    """The query results of one device, by a scan tick after tick, over `laps` periods."""

    intervals: list[tuple[int, int]]  # in ticks
    period: int | None
    laps: int = 5

    def __post_init__(self) -> None:
        length = self.period or max((end for _, end in self.intervals), default=0) + 1
        lap = np.zeros(length, dtype=bool)
        for start, end in self.intervals:
            lap[start:end] = True
        self.ticks = np.tile(lap, self.laps if self.period else 1)
        self.offs = np.flatnonzero(self.ticks[:-1] & ~self.ticks[1:]) + 1
        self.ons = np.flatnonzero(~self.ticks[:-1] & self.ticks[1:]) + 1

    def online(self, tick: Fraction) -> bool:
        return int(tick) < len(self.ticks) and bool(self.ticks[int(tick)])

    def next_offline(self, tick: Fraction) -> float:
        return float(min(self.offs[self.offs > float(tick)], default=NEVER))

    def next_online(self, tick: Fraction) -> float:
        return float(min(self.ons[self.ons > float(tick)], default=NEVER))


def built(rows, periods_s, **columns) -> IntervalAvailability:
    """One client per device, in order, from rows of (device, start_s, end_s)."""
    device, start_s, end_s = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    intervals = from_intervals(
        device.astype(np.int64), start_s, end_s, np.array(periods_s, dtype=np.float64), **columns
    )
    return IntervalAvailability(intervals, np.arange(len(periods_s)))


def queried(availability: IntervalAvailability, time_s: float, ids=None) -> list[list[float]]:
    ids = np.arange(availability.num_devices) if ids is None else np.array(ids)
    return [
        availability.online(ids, time_s).tolist(),
        availability.next_offline_s(ids, time_s).tolist(),
        availability.next_online_s(ids, time_s).tolist(),
    ]


def scanned(scans: list[Scan], time_s: float, tick_s: float = TICK_S) -> list[list[float]]:
    tick = Fraction(time_s) / Fraction(tick_s)
    return [
        [scan.online(tick) for scan in scans],
        [scan.next_offline(tick) * tick_s for scan in scans],
        [scan.next_online(tick) * tick_s for scan in scans],
    ]


@st.composite
def tables(draw):
    """Devices as (intervals, period) in ticks: neither sorted nor merged, some empty, some periodic."""

    def device():
        cuts = sorted(draw(st.lists(st.integers(0, LONGEST), max_size=8)))
        intervals = [interval for interval in pairwise(cuts) if draw(st.booleans())]
        end = max([1, *cuts])
        period = draw(st.none() | st.integers(end, end + 5))
        return draw(st.permutations(intervals)), period

    return [device() for _ in range(draw(st.integers(1, 5)))]


@pytest.mark.slow
@given(tables(), st.randoms(use_true_random=False))
def test_queries_equal_a_scan_over_three_periods(table, random):
    rows = [(d, a * TICK_S, b * TICK_S) for d, (intervals, _) in enumerate(table) for a, b in intervals]
    random.shuffle(rows)
    periods_s = [NEVER if period is None else period * TICK_S for _, period in table]
    availability = built(rows, periods_s)
    scans = [Scan(intervals, period, laps=HORIZON // (period or 1) + 3) for intervals, period in table]
    for half_tick in range(2 * HORIZON):
        time_s = half_tick * TICK_S / 2
        assert queried(availability, time_s) == scanned(scans, time_s)


@pytest.mark.slow
def test_queries_equal_a_scan_of_the_ten_real_entries_over_three_periods(device_data):
    table = pq.read_table(device_data / "fedscale_availability_real_first10_intervals.parquet").to_pylist()
    devices = pq.read_table(device_data / "fedscale_availability_real_first10_devices.parquet").to_pylist()
    rows = [(row["device_id"] - 1, row["start_s"], row["end_s"]) for row in table]
    periods_s = [device["period_s"] for device in devices]
    availability = built(rows, periods_s)

    assert availability.num_dropped_empty == sum(start == end for _, start, end in rows)
    for device, period_s in enumerate(periods_s):
        intervals = [(start, end) for d, start, end in rows if d == device]
        scan = Scan(intervals, period_s)
        borders = {border for interval in intervals[:20] + intervals[-20:] for border in interval}
        ticks = [
            lap * period_s + border + off for lap in range(3) for border in borders for off in (-1, 0, 1)
        ]
        for tick in [0, *(tick for tick in ticks if tick >= 0)]:
            assert queried(availability, tick, [device]) == scanned([scan], tick, 1)


def test_an_interval_is_half_open():
    availability = built([(0, 10, 20)], [NEVER])
    online = [bool(availability.online(np.array([0]), time_s)[0]) for time_s in (9.999, 10, 19.999, 20)]
    assert online == [False, True, True, False]


def test_next_instants_are_strictly_later():
    availability = built([(0, 10, 20), (0, 30, 40)], [50])
    assert queried(availability, 10) == [[True], [20], [30]]
    assert queried(availability, 20) == [[False], [40], [30]]
    assert queried(availability, 40) == [[False], [70], [60]]


def test_next_instants_are_strictly_later_even_where_float64_rounds():
    availability = built([(0, 0.1, 0.2)], [0.3])
    time_s = 1e9
    for _ in range(20):
        later_s = availability.next_online_s(np.array([0]), time_s)[0]
        assert later_s > time_s
        time_s = later_s


def test_touching_intervals_are_one():
    assert queried(built([(0, 20, 30), (0, 10, 20)], [NEVER]), 15) == [[True], [30], [NEVER]]


def test_the_end_of_the_period_is_no_border_when_its_beginning_is_online_too():
    availability = built([(0, 80, 100), (0, 0, 10), (0, 40, 50)], [100])
    assert queried(availability, 90) == [[True], [110], [140]]
    assert queried(availability, 100) == [[True], [110], [140]]
    assert queried(availability, 60) == [[False], [110], [80]]


@pytest.mark.parametrize("rows", [[(0, 0, 100)], [(0, 40, 100), (0, 0, 40)]])
def test_a_device_online_for_its_whole_period_never_goes_offline(rows):
    assert queried(built(rows, [100]), 250) == [[True], [NEVER], [NEVER]]


def test_a_device_without_intervals_is_never_online_beside_ones_that_are():
    rows = [(1, 0, 100), (3, 5, 5), (4, 10, 20)]
    availability = built(rows, [100, 100, NEVER, 100, 50])
    assert queried(availability, 60) == [
        [False, True, False, False, True],
        [NEVER, NEVER, NEVER, NEVER, 70],
        [NEVER, NEVER, NEVER, NEVER, 110],
    ]
    assert (availability.num_never_online, availability.num_dropped_empty) == (3, 1)


def test_nobody_is_ever_online_in_a_table_of_empty_intervals():
    assert queried(built([(0, 5, 5)], [100]), 5) == [[False], [NEVER], [NEVER]]


def test_a_phase_turns_the_intervals_round_the_period():
    availability = built([(0, 1030, 1050)], [100], origin_s=np.array([1000.0]), phase_s=np.array([60.0]))
    assert queried(availability, 0) == [[True], [10], [90]]
    assert queried(availability, 95) == [[True], [110], [190]]


def test_earlier_queries_change_no_result():
    availability = built([(0, 10, 20), (1, 5, 45)], [50, 70])
    times_s = [float(t) for t in range(0, 400, 7)]
    forward = [queried(availability, t) for t in times_s]
    backward = [queried(availability, t) for t in reversed(times_s)]
    assert forward == backward[::-1]


def test_results_follow_the_given_ids():
    availability = built([(0, 0, 10), (1, 10, 20)], [20, 20])
    assert availability.online(np.array([1, 0, 1]), 5).tolist() == [False, True, False]
    assert availability.online(np.array([], dtype=np.int64), 5).tolist() == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 1, 2), (0, 5, 4)], "t.csv, row 2: end_s = 4 is before start_s = 5"),
        ([(0, -1, 2)], "t.csv, row 1: start_s = -1 must be at least 0, where its device's trace begins"),
        ([(0, 90, 101)], "t.csv, row 1: end_s = 101 must be within the period of 100 s, which begins at 0"),
        ([(0, np.nan, 2)], "t.csv, row 1: start_s = nan must be a finite number"),
        ([(0, 1, np.inf)], "t.csv, row 1: end_s = inf must be a finite number"),
        (
            [(0, 50, 60), (1, 0, 100), (0, 10, 51)],
            f"t.csv, row 3: [10, 51) overlaps [50, 60) of the same device in row 1{MERGE}",
        ),
        ([(0, 5, 6), (0, 5, 6)], f"t.csv, row 2: [5, 6) overlaps [5, 6) of the same device in row 1{MERGE}"),
    ],
)
def test_a_row_that_breaks_a_rule_is_named(rows, message):
    with pytest.raises(DataFileError) as refused:
        built(rows, [100, 100], path="t.csv")
    assert str(refused.value) == message


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 9))
def test_no_device_serves_twice_before_each_has_served_once(num_clients, num_devices, seed):
    devices = deal(num_clients, num_devices, np.random.default_rng(seed))
    for lap in range(0, num_clients, num_devices):
        served = devices[lap : lap + num_devices]
        assert len(set(served.tolist())) == len(served)


@st.composite
def overlapping_tables(draw):
    """Devices as (intervals, period) in ticks: any intervals, some of which overlap, touch or are empty."""
    ends = st.tuples(st.integers(0, LONGEST), st.integers(0, LONGEST)).map(sorted).map(tuple)

    def device():
        intervals = draw(st.lists(ends, max_size=6))
        end = max([1, *(end for _, end in intervals)])
        return intervals, draw(st.none() | st.integers(end, end + 5))

    return [device() for _ in range(draw(st.integers(1, 4)))]


@given(overlapping_tables())
def test_merged_intervals_are_online_where_any_of_them_is(table):
    rows = [(d, a * TICK_S, b * TICK_S) for d, (intervals, _) in enumerate(table) for a, b in intervals]
    periods_s = [NEVER if period is None else period * TICK_S for _, period in table]
    availability = built(rows, periods_s, overlapping="merge")
    scans = [Scan(intervals, period, laps=HORIZON // (period or 1) + 3) for intervals, period in table]
    for tick in range(LONGEST + 6):
        assert queried(availability, tick * TICK_S) == scanned(scans, tick * TICK_S)


def test_a_merged_interval_ends_with_the_latest_of_them_even_if_that_began_first():
    availability = built(
        [(0, 0, 50), (0, 10, 20), (1, 5, 30), (0, 60, 70)], [NEVER, NEVER], overlapping="merge"
    )
    assert queried(availability, 15) == [[True, True], [50, 30], [60, NEVER]]
