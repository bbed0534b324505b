"""The column `expiry` of trace folders: what the reader and the check refuse, and in which windows it is."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import DataFileError
from tests.traces.files.written import without, write_trace
from traces.files import ARRIVALS, open_folder
from traces.files.checking import check_folder
from traces.files.windows import Windows, windows_of_rows
from traces.tables.base import NEVER

ONE_AND_ONE = {"client": ["ann"] * 4 + ["bob"] * 2, "split": ["train"] * 6}
"""Four rows of ann and two of bob, with which expiry is compared."""

REFUSED: list[tuple[dict[str, Any], str]] = [
    (without(expiry=[1.5] * 6), "column 'expiry' is double; it must hold whole numbers, as 'step' does"),
    (without(expiry=[date(2015, 1, 1)] * 6), "column 'expiry' is date32[day]; it must hold whole numbers"),
    (
        without("step", time=[date(2015, 1, 1)] * 6, expiry=[1] * 6),
        "column 'expiry' is int64; it must hold dates or timestamps, as 'time' does",
    ),
    (
        without(expiry=[1, 1, 2, 2**31 - 1, 2, 3]),
        "row 4: expiry = 2147483647: must be from -2147483647 to 2147483646, or null for never",
    ),
    (without(expiry=[1, 1, 2, 0, 1, 3]), "row 5: expiry = 1: must be after the arrival, step = 1"),
    (
        without("step", time=[date(2015, 1, 2)] * 6, expiry=[None] * 5 + [date(2015, 1, 1)]),
        "row 6: expiry = 2015-01-01T00:00:00: must be after the arrival, time = 2015-01-02T00:00:00",
    ),
    (
        without(step=[0, 1, 2, 3, 0, 1], expiry=[2, 7, 5, 8, None, None], **ONE_AND_ONE),
        "row 3: expiry = 5: client 'ann' must hold the samples of a split in the order in which they arrive, "
        "but row 2, step = 1 and earlier than 2 here, expires later, at 7",
    ),
    (
        without(step=[0, 1, 2, 3, 0, 1], expiry=[2, 3, 5, 8, None, 9], **ONE_AND_ONE),
        "row 6: expiry = 9: client 'bob' must hold the samples of a split in the order in which they arrive, "
        "but row 5, step = 0 and earlier than 1 here, expires later, at never",
    ),
]


@pytest.mark.parametrize(("rows", "message"), REFUSED)
def test_a_bad_expiry_is_refused_with_its_row_and_found_by_the_check(
    tmp_path: Path, rows: Any, message: str
) -> None:
    folder = write_trace(tmp_path / "t", rows, facts={"version": 2})
    with pytest.raises(DataFileError) as refused:
        open_folder(folder)
    assert message in str(refused.value)
    assert [str(finding) for finding in check_folder(folder).violations] == [str(refused.value)]


def test_an_expiry_is_of_version_2(tmp_path: Path) -> None:
    folder = write_trace(tmp_path / "t", without(expiry=[None] * 6))
    with pytest.raises(DataFileError) as refused:
        open_folder(folder)
    assert str(refused.value) == (
        f"{folder / ARRIVALS}: column 'expiry' is of version 2 of the format, and trace.toml has "
        f"version = 1; set it to 2"
    )
    assert [str(finding) for finding in check_folder(folder).violations] == [str(refused.value)]


def test_what_arrives_together_splits_and_rows_that_never_arrive_expire_in_any_order(tmp_path: Path) -> None:
    rows = {
        "client": ["ann"] * 6,
        "step": [0, 0, 1, 2, 3, 3],
        "split": ["train", "train", "test", "train", "test", "train"],
        "expiry": [5, 3, 2, 9, None, 6],
        "count": [1, 1, 1, 0, 1, 2],
    }
    folder = write_trace(tmp_path / "t", without(**rows), facts={"version": 2})
    assert open_folder(folder).rows.expiry.tolist() == [5, 3, 2, 9, 2**31 - 1, 6]  # type: ignore[union-attr]
    assert check_folder(folder).violations == []
    # Without a split, which of them are for tests is drawn, and all must expire in order.
    del rows["split"]
    with pytest.raises(DataFileError, match=r"row 3: expiry = 2: .* but row 1, step = 0 "):
        open_folder(write_trace(folder, without("split", **rows), facts={"version": 2}))


def windows(folder: Path, **settings: Any) -> Windows:
    chosen = {"width": None, "since": None, "until": None, **settings}
    return windows_of_rows(open_folder(folder).rows, folder / ARRIVALS, key=lambda name: name, **chosen)


def test_expiry_is_rounded_down_to_a_window_and_rows_that_no_window_holds_are_left_out(
    tmp_path: Path,
) -> None:
    days = [date(2015, 1, day) for day in (1, 2, 3, 4, 5, 6)]
    until = [date(2015, 1, 2), date(2015, 1, 4), date(2015, 1, 5), date(2015, 2, 1), date(9999, 12, 31), None]
    rows = {"client": ["c"] * 6, "split": ["train"] * 6, "time": days, "expiry": until}
    folder = write_trace(tmp_path / "t", without("step", **rows), facts={"version": 2})
    found = windows(folder, width=2)
    # The first row arrives and expires in the first two days.
    assert found.kept.tolist() == [False, True, True, True, True, True]
    assert found.window[1:].tolist() == [0, 1, 1, 2, 2]
    assert found.expiry is not None
    assert found.expiry[1:-1].tolist() == [1, 2, 15, (date(9999, 12, 31) - days[0]).days // 2]
    assert found.expiry[-1] == NEVER
    assert windows(folder, width=2, since=days[1]).kept.tolist() == [False, True, True, True, True, True]
    # So many windows that no run has them are as good as never.
    assert windows(folder, width=1e-6, until=date(2015, 1, 2)).expiry[0] == 10**6  # type: ignore[index]
    assert windows(folder, width="month").kept.tolist() == [False, False, False, True, True, True]
    with pytest.raises(DataFileError, match="every row expires in the window in which it arrives; a smaller"):
        windows(folder, width="month", until=date(2015, 1, 4))


@pytest.mark.parametrize("when", ["step", "order"])
def test_steps_and_ranks_expire_in_windows_of_the_same_width(tmp_path: Path, when: str) -> None:
    rows = {"client": ["c"] * 6, "split": ["train"] * 6, when: [0, 1, 2, 3, 4, 5]}
    rows |= {"expiry": np.array([1, 3, 4, 8, 10, 10])}
    folder = write_trace(tmp_path / "t", without("step", **rows), facts={"version": 2})
    found = windows(folder, width=2)
    assert found.kept.tolist() == [False, True, True, True, True, True]
    assert found.window[1:].tolist() == [0, 1, 1, 2, 2]
    assert found.expiry is not None
    assert found.expiry[1:].tolist() == [1, 2, 4, 5, 5]
