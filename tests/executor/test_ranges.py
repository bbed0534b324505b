from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emulator.messages import SampleRanges
from executor.ranges import rows_of, slabs

RANGES = st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)), max_size=3), max_size=6)


@given(RANGES, st.randoms(use_true_random=False))
def test_rows_of_many_requests_are_those_of_each(ranges, random) -> None:
    offsets = np.cumsum([0, *(len(row) for row in ranges)])
    first = np.array([start for row in ranges for start, _ in row], dtype=np.int64)
    length = np.array([count for row in ranges for _, count in row], dtype=np.int64)
    samples = SampleRanges(offsets, first, first + length, np.ones(len(first)))
    requests = np.array([i for i in range(len(ranges)) if random.random() < 0.7], dtype=np.int64)
    rows, counts = rows_of(samples, requests)
    expected = [samples.rows(int(request)) for request in requests]
    assert counts.tolist() == [len(part) for part in expected]
    assert rows.tolist() == [row for part in expected for row in part]


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(1, 9))
def test_slabs_hold_every_request_once_and_no_more_samples_than_allowed(counts, limit) -> None:
    cut = [slab.tolist() for slab in slabs(np.array(counts, dtype=np.int64), limit)]
    assert [request for slab in cut for request in slab] == list(range(len(counts)))
    for slab in cut:
        assert len(slab) == 1 or sum(counts[request] for request in slab) <= limit
