from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.errors import DataFileError
from tests.traces.files.written import ROWS, without, write_trace
from traces.files import open_folder
from traces.files.windows import Windows
from traces.inspection.trace_folder import folder_observations


def test_rows_are_counted_by_split_client_window_and_label(tmp_path: Path) -> None:
    folder = open_folder(write_trace(tmp_path / "t", ROWS | {"count": [3, 1, 1, 1, 0, 1]}))
    windows = Windows(np.array([True] * 5 + [False]), np.array(ROWS["step"]))
    counts = folder_observations(folder, windows)
    train, test = counts["train"], counts["test"]
    assert (train.client.tolist(), train.window.tolist()) == ([0, 0, 1], [1, 2, 0])
    assert (train.label.tolist(), train.count.tolist()) == ([0, 0, 1], [3, 1, 1])
    assert (test.client.tolist(), test.window.tolist(), test.label.tolist()) == ([0], [1], [1])
    for each in (train, test):
        assert (each.num_clients, each.num_windows, each.num_labels, each.first_step) == (2, 3, 2, -1)
        assert (each.client_names, each.label_names) == (("ann", "bob"), ("0", "1"))


def test_rows_without_a_split_are_counted_together(tmp_path: Path) -> None:
    folder = open_folder(write_trace(tmp_path / "t", without("split", client=[7, 7, 7, 3, 3, 3])))
    counts = folder_observations(folder, Windows(np.ones(6, np.bool_), np.array(ROWS["step"])))
    assert list(counts) == ["observed"]
    assert counts["observed"].count.sum() == 6
    assert counts["observed"].client_names == ("3", "7")


def test_too_many_windows_are_refused(tmp_path: Path) -> None:
    folder = open_folder(write_trace(tmp_path / "t"))
    windows = Windows(np.ones(6, np.bool_), np.array([0, 0, 0, 0, 0, 2**21]))
    with pytest.raises(DataFileError, match=r"its rows span 2097153 windows; at most 1048576 are counted"):
        folder_observations(folder, windows)
