from __future__ import annotations

import numpy as np
import pytest

from tests.traces.tiny import Row, trace_of
from traces.inspection import observations as module
from traces.inspection.observations import Observations, counted, trace_observations


def listed(rows: Observations) -> list[tuple[int, ...]]:
    columns = (rows.client, rows.window, rows.label, rows.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_equal_rows_are_added_up_and_empty_ones_left_out() -> None:
    client, window, label = np.array([[2, 0, 2, 0], [1, 3, 1, 0], [0, 1, 0, 1]])
    counts = np.array([2.5, 1.0, 4.0, 0.0])
    assert listed(counted(client, window, label, counts, shape=(3, 4, 2))) == [
        (0, 3, 1, 1.0),
        (2, 1, 0, 6.5),
    ]
    assert listed(counted(client, window, label, shape=(3, 4, 2))) == [
        (0, 0, 1, 1.0),
        (0, 3, 1, 1.0),
        (2, 1, 0, 2.0),
    ]


def test_no_rows_are_no_observations() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert listed(counted(none, none, none, shape=(3, 4, 2))) == []


# Client 0 owns two samples of label 1 from before step 0, and client 1 receives more at step 2.
ROWS: list[Row] = [
    (0, 0, -1, 1),
    (0, 0, -1, 1),
    (0, 0, 0, 0),
    (0, 1, 0, 2),
    (1, 0, 0, 0),
    (1, 1, 0, 0),
    (1, 0, 2, 2),
    (1, 1, 2, 0),
]


@pytest.mark.parametrize("chunk_rows", [1, 2**18])
def test_the_windows_of_a_trace_are_its_data_steps(monkeypatch: pytest.MonkeyPatch, chunk_rows: int) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", chunk_rows)
    trace = trace_of(ROWS)
    train = trace_observations(trace, "train")
    assert listed(train) == [(0, 0, 1, 2), (0, 1, 0, 1), (1, 1, 0, 1), (1, 3, 2, 1)]
    assert (train.num_clients, train.num_windows, train.num_labels, train.first_step) == (2, 4, 3, -1)
    assert listed(trace_observations(trace, "test")) == [(0, 1, 2, 1), (1, 1, 0, 1), (1, 3, 0, 1)]
