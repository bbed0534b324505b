"""Runs of trace folders whose samples expire."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.errors import DataFileError
from emulator.ports import Split
from emulator.seeding import RandomStreams
from tests.traces.files.written import write_trace
from tests.traces.tiny import context
from traces.changes.changed import with_changes
from traces.changes.settings import Change
from traces.sources.file import File, FileSettings
from traces.trace import Trace, TraceStream

FIRST = date(2015, 1, 1)


def build(folder: Path, rounds: int, **settings: Any) -> Trace:
    given = {"folder": str(folder), "rounds_per_step": 1, "retain_rounds": 1, **settings}
    return File(FileSettings.model_validate(given)).build(context(rounds))


def held(trace: Trace, client: int, split: Split, step: int) -> Counter[int]:
    """How often a client holds each sample, by the row of features.npy."""
    ranges = trace.held(np.array([client]), split, step)
    return Counter(trace.table.take("image", ranges.rows(0)).tolist())


Row = tuple[str, str, int, int | None, int]
"""(client, split, arrival, expiry, count) in days or steps."""

ROWS: list[Row] = [
    ("ann", "train", 0, 2, 1),
    ("ann", "train", 0, 4, 2),
    ("ann", "train", 3, 5, 1),
    ("ann", "train", 3, 5, 0),
    ("ann", "train", 4, None, 1),
    ("ann", "test", 0, None, 1),
    ("bob", "train", 0, 1, 1),
    ("bob", "train", 2, 4, 3),
    ("bob", "test", 1, 3, 1),
    ("bob", "test", 3, 9, 1),
]


def folder_of(path: Path, rows: list[Row], when: str) -> Path:
    def at(step: int | None) -> Any:
        return step if when != "time" or step is None else FIRST + timedelta(days=step)

    client, split, arrival, expiry, count = zip(*rows, strict=True)
    number = np.arange(len(rows))
    columns = {"client": client, "label": number % 2, "sample": number, when: [at(step) for step in arrival]}
    columns |= {"expiry": [at(step) for step in expiry], "split": split, "count": count}
    return write_trace(path, columns, np.zeros((len(rows), 1), np.uint8), {"version": 2})


def expected(client: str, split: str, step: int) -> Counter[int]:
    return Counter(
        {
            number: row[4]
            for number, row in enumerate(ROWS)
            if row[:2] == (client, split) and row[2] <= step < (99 if row[3] is None else row[3]) and row[4]
        }
    )


@pytest.mark.parametrize("when", ["step", "time", "order"])
@pytest.mark.parametrize("retain", [1, "all"])
def test_samples_are_held_from_their_arrival_to_their_expiry_as_often_as_they_are_counted(
    tmp_path: Path, when: str, retain: int | str
) -> None:
    width = {"step_width": 1} if when == "order" else {}
    trace = build(folder_of(tmp_path / "t", ROWS, when), 8, retain_rounds=retain, **width)
    for step in range(8):
        for number, client in enumerate(("ann", "bob")):
            assert held(trace, number, "train", step) == expected(client, "train", step)
            assert held(trace, number, "test", step) == expected(client, "test", step)


def test_clients_start_with_the_windows_of_retain_rounds_and_what_expired_before_is_left_out(
    tmp_path: Path,
) -> None:
    trace = build(folder_of(tmp_path / "t", ROWS, "time"), 3, retain_rounds=3)
    for step in range(3):
        for number, client in enumerate(("ann", "bob")):
            assert held(trace, number, "train", step) == expected(client, "train", step + 2)
    assert 0 not in trace.columns().image  # it expired as the third window began


def test_clients_are_tested_on_what_arrives_next_however_long_it_is_kept(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "train", 0, None, 1)] + [("ann", "test", step, 9, 1) for step in range(4)]
    trace = build(folder_of(tmp_path / "t", rows, "step"), 3, test_on="next")
    assert [held(trace, 0, "test", step) for step in range(3)] == [Counter([2]), Counter([3]), Counter([4])]


def test_a_longer_run_of_the_same_folder_has_the_same_digest_and_another_expiry_another_one(
    tmp_path: Path,
) -> None:
    folder = folder_of(tmp_path / "t", ROWS, "step")
    digest = build(folder, 8).digest()
    assert build(folder, 9).digest() == digest
    other = folder_of(tmp_path / "other", [*ROWS[:-1], (*ROWS[-1][:3], 8, 1)], "step")
    assert build(other, 8).digest() != digest


def test_without_a_split_nothing_is_certain_of_other_seeds(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = folder_of(tmp_path / "t", [row for row in ROWS if row[1] == "train"], "step")
    path = folder / "arrivals.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["split"]), path)
    source = File(FileSettings(folder=str(folder), rounds_per_step=1, test_share=0.5))
    assert source.certain_holders(source.build(context(4)), context(4, seed=1)) is None


CHANGES = [
    {"what": {"swap": [[0, 1]]}, "at_step": 3, "clients": {"names": ["ann"]}, "on": "held"},
    {"what": {"swap": [[0, 1]]}, "at_step": 2, "clients": {"names": ["bob"]}, "on": "arrivals"},
    {"what": "own_swap", "at_step": 3, "every": 3, "clients": {"share": 1.0}, "on": "held"},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_sample_that_is_sent_anew_expires_when_it_would_have(tmp_path: Path, change: Any) -> None:
    plain = build(folder_of(tmp_path / "t", ROWS, "step"), 8)
    trace = with_changes(plain, [Change.model_validate(change)], 8, RandomStreams(0), names=["ann", "bob"])
    stream = TraceStream(trace)
    for step in range(8):
        stream.advance_to_round(step)
        for number, client in enumerate(("ann", "bob")):
            assert held(trace, number, "train", step) == expected(client, "train", step)
            rows = trace.held(np.array([number]), "train", step).rows(0)
            shares = np.bincount(trace.labels(rows), minlength=2) / max(1, len(rows))
            assert np.allclose(stream.label_histograms(np.array([number])), shares)
    rows = trace.held(np.array([0]), "train", 3).rows(0)
    changed = change["clients"] != {"names": ["bob"]}  # at step 3 ann holds both labels, which are swapped
    assert (trace.labels(rows) == (trace.table.take("image", rows) + changed) % 2).all()


def test_a_folder_of_which_every_sample_expires_before_the_start_is_refused(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "train", -5, 0, 1), ("ann", "test", -5, 0, 1)]
    with pytest.raises(DataFileError, match="no training sample that is left is ever held"):
        build(folder_of(tmp_path / "t", rows, "step"), 3)
