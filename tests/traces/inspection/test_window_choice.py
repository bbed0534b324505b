from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from traces.calendar import MICROSECONDS_PER_DAY, microseconds
from traces.files import ArrivalRows
from traces.files.windows import windows_of_rows
from traces.inspection.observations import Observations, counted
from traces.inspection.window_choice import (
    Choice,
    Rung,
    choose_width,
    days_ladder,
    grouped,
    shown_clients,
    steps_ladder,
)


def of_one_label(*counts: list[int]) -> Observations:
    """The samples of each client in each window."""
    table = np.array(counts)
    client, window = np.nonzero(table)
    zeros = np.zeros(len(client), np.int64)
    return counted(client, window, zeros, table[client, window].astype(float), shape=(*table.shape, 1))


def test_a_client_is_shown_twice_with_half_of_its_samples() -> None:
    rows = of_one_label([5, 5, 4, 4, 2], [5, 0, 4, 4, 0], [5, 5, 4, 4, 3], [0, 0, 0, 0, 0])
    assert shown_clients(rows, np.arange(5), 5).tolist() == [True, False, False, False]
    assert shown_clients(rows, np.array([0, 0, 1, 1, 2]), 5).tolist() == [True, True, True, False]


def test_the_narrowest_width_is_chosen_that_shows_half_of_the_clients_with_enough_samples() -> None:
    # The last one has too few samples for two windows, whatever their width.
    rows = of_one_label([4, 0, 4, 0], [2, 2, 2, 2], [1, 3, 1, 3], [3, 0, 0, 0])
    assert choose_width(rows, steps_ladder(4), 4) == Choice(2, 3, 3)
    assert choose_width(rows, steps_ladder(4), 2) == Choice(1, 3, 3)
    assert choose_width(of_one_label([4, 0, 4, 0], [2, 2, 2, 2]), steps_ladder(4), 4) == Choice(1, 1, 2)
    assert choose_width(rows, steps_ladder(4), 5) == Choice(None, 0, 0)
    unshown = of_one_label([9, 1, 0, 0], [0, 9, 1, 0])
    assert choose_width(unshown, steps_ladder(4), 5) == Choice(None, 0, 2)


@pytest.mark.parametrize("when", ["time", "step", "order"])
def test_rungs_are_the_windows_that_rows_arrive_in(when: str) -> None:
    generator = np.random.default_rng(0)
    days = np.sort(generator.integers(3, 1200, 400))
    start = microseconds(date(2015, 2, 11)) if when == "time" else -150 if when == "step" else 0
    at = start + days * (MICROSECONDS_PER_DAY if when == "time" else 1)
    zeros = np.zeros(len(at), np.int64)
    rows = ArrivalRows(zeros, ("a",), zeros, ("x",), zeros, when, at)  # type: ignore[arg-type]

    def windows(width: object) -> np.ndarray:
        options = {"since": None, "until": None, "key": str}
        return windows_of_rows(rows, Path("t"), width=width, **options).window  # type: ignore[arg-type]

    narrow = windows(1)
    first, num_windows = int(narrow[0]), int(narrow[-1] - narrow[0]) + 1
    ladder: list[Rung] = list(
        days_ladder(num_windows, first, int(at[0])) if when == "time" else steps_ladder(num_windows, first)
    )
    assert len(ladder) > 6
    for width, window_of in ladder:
        wide = windows(width)
        assert (window_of[narrow - first] == wide - wide[0]).all()


def test_grouped_windows_have_the_samples_of_theirs() -> None:
    rows = grouped(of_one_label([1, 2, 3, 4, 5]), 2)
    assert (rows.window.tolist(), rows.count.tolist(), rows.num_windows) == ([0, 1, 2], [3, 7, 5], 3)
