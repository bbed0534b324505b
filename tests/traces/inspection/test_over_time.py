from __future__ import annotations

import numpy as np
import pytest

from emulator.errors import InputError
from traces.inspection.observations import Observations, counted
from traces.inspection.over_time import (
    chosen_clients,
    distance_from_start,
    of_clients,
    of_different_size,
    shares_over_time,
)

NAN = float("nan")

# Client, window, label, count. Client 1 is never observed; client 2 has too few in window 1.
ROWS = [
    (0, 0, 0, 4),
    (0, 1, 0, 2),
    (0, 1, 1, 2),
    (0, 3, 2, 5),
    (2, 1, 0, 1),
    (2, 2, 1, 3),
    (2, 2, 2, 1),
    (2, 3, 1, 1),
    (2, 3, 2, 3),
    (3, 0, 2, 100),
]


def observations(names: tuple[str, ...] = ()) -> Observations:
    client, window, label, count = np.array(ROWS).T
    return counted(client, window, label, count.astype(float), shape=(4, 4, 3), client_names=names)


def test_shares_are_those_of_windows_with_enough_samples() -> None:
    shares = shares_over_time(observations(), 2, min_samples=2)
    assert shares.windows.tolist() == [2, 3]
    assert shares.shares.tolist() == [[0, 0.75, 0.25], [0, 0.25, 0.75]]
    assert shares_over_time(observations(), 2, min_samples=1).windows.tolist() == [1, 2, 3]
    assert shares_over_time(observations(), 1, min_samples=1).windows.tolist() == []


def test_distances_are_from_the_first_observed_window_and_blank_where_there_is_none() -> None:
    distances = distance_from_start(observations(), np.arange(4), min_samples=2)
    # (1, 0, 0) to (1/2, 1/2, 0) is 1, to (0, 0, 1) it is 2; (0, 3/4, 1/4) to (0, 1/4, 3/4) is 1.
    assert distances == pytest.approx(
        np.array([[0, 1, NAN, 2], [NAN] * 4, [NAN, NAN, 0, 1], [0, NAN, NAN, NAN]]), nan_ok=True
    )
    # With the single sample of window 1 as the start, the others are as far from it as can be.
    assert distance_from_start(observations(), np.array([2]), min_samples=1) == pytest.approx(
        np.array([[NAN, 0, 2, 2]]), nan_ok=True
    )


def test_distances_agree_with_those_of_dense_shares() -> None:
    generator = np.random.default_rng(0)
    client, window, label = generator.integers(0, [7, 9, 5], (400, 3)).T
    rows = counted(client, window, label, shape=(7, 9, 5))
    dense = np.zeros((7, 9, 5))
    np.add.at(dense, (client, window, label), 1.0)
    some = np.array([1, 4, 6])
    distances = distance_from_start(rows, some, min_samples=6)
    for row, one in enumerate(some.tolist()):
        seen = np.flatnonzero(dense[one].sum(axis=1) >= 6)
        shares = dense[one] / np.maximum(dense[one].sum(axis=1, keepdims=True), 1)
        wanted = np.full(9, NAN)
        wanted[seen] = np.abs(shares[seen] - shares[seen[0]]).sum(axis=1)
        assert distances[row] == pytest.approx(wanted, nan_ok=True)


def test_rows_of_some_clients_are_theirs_alone() -> None:
    some = of_clients(observations(), np.array([1, 2]))
    assert list(zip(some.client.tolist(), some.window.tolist(), some.label.tolist(), strict=True)) == [
        row[:3] for row in ROWS if row[0] == 2
    ]


def test_clients_of_different_size_go_from_the_largest_to_the_smallest() -> None:
    # Sizes 13, -, 9 and 100.
    assert of_different_size(observations(), 4, min_samples=2) == [3, 0, 2]
    assert of_different_size(observations(), 2, min_samples=2) == [3, 2]
    assert of_different_size(observations(), 4, min_samples=50) == [3]
    assert of_different_size(observations(), 4, min_samples=500) == []


def test_clients_are_chosen_by_their_names_or_else_by_number() -> None:
    assert chosen_clients(observations(), ["3", "0", "3"]) == [3, 0]
    assert chosen_clients(observations(("a", "b", "c", "d")), ["b"]) == [1]
    with pytest.raises(InputError, match=r"^--clients: there is no client '0'; there are 4: a, b, c, d$"):
        chosen_clients(observations(("a", "b", "c", "d")), ["b", "0"])
