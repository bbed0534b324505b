from __future__ import annotations

import numpy as np

from traces.inspection.observations import Observations, counted
from traces.inspection.presence import arrivals, presence, samples_of_clients, samples_of_labels


def some_rows() -> Observations:
    """Client 0 is there throughout, 1 joins, 2 leaves, 3 is absent for two windows, and 4 never comes."""
    rows = [
        *[(0, window, 0, 2) for window in range(5)],
        *[(1, window, 1, 1) for window in (3, 4)],
        *[(2, window, 0, 3) for window in (0, 1)],
        (2, 1, 1, 4),
        *[(3, window, 1, 1) for window in (0, 3, 4)],
    ]
    client, window, label, count = np.array(rows).T
    return counted(client, window, label, count.astype(np.float64), shape=(5, 5, 3))


def test_a_client_joins_with_its_first_and_leaves_with_its_last_samples() -> None:
    when = presence(some_rows())
    assert when.first.tolist() == [0, 3, 0, 0, -1]
    assert when.last.tolist() == [4, 4, 1, 4, -1]
    assert when.gaps.tolist() == [0, 0, 0, 2, 0]


def test_arrivals_are_counted_by_window() -> None:
    each = arrivals(some_rows())
    assert each.samples.tolist() == [6, 9, 2, 4, 4]
    assert each.clients.tolist() == [3, 2, 1, 3, 3]
    assert each.joining.tolist() == [3, 0, 0, 1, 0]
    assert each.leaving.tolist() == [0, 1, 0, 0, 3]


def test_samples_are_counted_by_client_and_by_label() -> None:
    assert samples_of_clients(some_rows()).tolist() == [10, 2, 10, 3, 0]
    assert samples_of_labels(some_rows()).tolist() == [16, 9, 0]


def test_a_trace_without_samples_has_clients_that_never_come() -> None:
    none = np.zeros(0, dtype=np.int64)
    rows = counted(none, none, none, shape=(2, 3, 1))
    assert presence(rows).first.tolist() == [-1, -1]
    assert arrivals(rows).samples.tolist() == [0, 0, 0]
    assert samples_of_clients(rows).tolist() == [0, 0]
