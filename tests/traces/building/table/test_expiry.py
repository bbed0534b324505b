"""Tables with a column that says until when a client holds a row."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.traces.building.table.tables import build, built, refused, rows, write
from tests.traces.tiny import context
from traces.files import read_facts
from traces.files.checking import check_folder
from traces.sources.file import File, FileSettings

HEAD = "who,kind,at,until,part,x\n"


def steps(*lines: str) -> str:
    return HEAD + "".join(f"{line}\n" for line in lines)


STEPS = steps(
    "ann,up,0,2,train,1",
    "bob,up,1,,train,2",
    "ann,down,1,3,train,3",
    "ann,up,0,5,test,4",
    "bob,down,0,,train,5",
    "ann,down,1,2,train,6",
)
AS_STEPS = {"step": "at", "expiry": "until", "split": "part", "features": ["x"]}


def test_a_column_of_expiry_is_checked_and_written_in_version_2(tmp_path: Path) -> None:
    folder = built(write(tmp_path, STEPS), **AS_STEPS)
    assert read_facts(folder.path).version == 2
    assert rows(folder, "client", "step", "expiry", "split", "sample") == [
        ("ann", 0, 2, "train", 0),
        ("ann", 1, 2, "train", 5),  # rows that arrive together are in the order in which they expire
        ("ann", 1, 3, "train", 2),
        ("ann", 0, 5, "test", 3),
        ("bob", 0, None, "train", 4),
        ("bob", 1, None, "train", 1),
    ]
    assert check_folder(folder.path).violations == []


def test_whole_numbers_with_gaps_may_be_fractions_as_pandas_writes_them(tmp_path: Path) -> None:
    frame = pd.read_csv(write(tmp_path, STEPS))
    assert frame["until"].dtype == np.float64
    frame.to_csv(tmp_path / "again.csv", index=False)
    frame.to_parquet(tmp_path / "again.parquet", index=False)
    expected = rows(built(tmp_path / "table.csv", **AS_STEPS), "client", "step", "expiry", "sample")
    for name in ("again.csv", "again.parquet"):
        assert rows(built(tmp_path / name, **AS_STEPS), "client", "step", "expiry", "sample") == expected


@pytest.mark.parametrize("kind", ["csv", "texts", "timestamps", "unix"])
def test_times_expire_at_times_that_are_written_alike(tmp_path: Path, kind: str) -> None:
    until = ["2015-01-02", "2015-01-04", "", "2015-01-05T06:00:00", "", " "]
    at = ["2015-01-01", "2015-01-02", "2015-01-03", "2015-01-01", "2015-01-02", "2015-01-03"]
    who = ["ann"] * 3 + ["bob"] * 3
    expected = [
        (client, datetime.fromisoformat(start), datetime.fromisoformat(end) if end.strip() else None)
        for client, start, end in zip(who, at, until, strict=True)
    ]
    columns: dict[str, Any] = {"who": who, "kind": [0, 1] * 3, "at": at, "until": until, "x": range(6)}
    columns["part"] = ["train"] * 6
    frame = pd.DataFrame(columns)
    more: dict[str, Any] = {}
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    else:
        if kind == "timestamps":
            frame["at"] = pd.to_datetime(frame["at"])
            frame["until"] = pd.to_datetime(frame["until"].str.strip().replace("", None), format="ISO8601")
        if kind == "unix":
            more = {"unix_seconds": True}
            for name in ("at", "until"):
                times = pd.to_datetime(frame[name].str.strip().replace("", None), format="ISO8601")
                seconds = (times - pd.Timestamp(0)) // pd.Timedelta(seconds=1)
                frame[name] = seconds.astype("Int64")
        frame.to_parquet(tmp_path / "t.parquet", index=False)
    [root] = tmp_path.iterdir()
    folder = built(root, time="at", expiry="until", split="part", features=["x"], **more)
    assert rows(folder, "client", "time", "expiry") == expected


def test_an_order_expires_when_the_first_row_of_its_client_arrives_then_or_later(tmp_path: Path) -> None:
    text = steps(
        "ann,up,0.5,2.5,train,1",  # ranks of ann: 0.5, 1.0, 1.0, 2.5, 7
        "ann,down,1.0,7,train,2",
        "ann,up,1.0,2.6,train,3",
        "ann,down,7,,train,4",
        "ann,up,2.5,7.5,train,5",  # nothing of hers arrives at 7.5 or later
        "bob,up,3,4,train,6",
        "bob,down,4,9,train,7",
    )
    folder = built(write(tmp_path, text), order="at", expiry="until", split="part", features=["x"])
    assert rows(folder, "client", "order", "expiry", "sample") == [
        ("ann", 0, 3, 0),
        ("ann", 1, 4, 2),
        ("ann", 2, 4, 1),
        ("ann", 3, None, 4),
        ("ann", 4, None, 3),
        ("bob", 0, 1, 5),
        ("bob", 1, None, 6),
    ]


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (["ann,up,3,3,train,1"], AS_STEPS, "table.csv, row 1: until = 3: must be after at = 3"),
        (["ann,up,0,x,train,1"], AS_STEPS, "table.csv, row 1: until = 'x': must be a whole number"),
        (
            ["ann,up,0,1.5,train,1"],
            AS_STEPS,
            "row 1: until = 1.5: must be a whole number, or empty for never",
        ),
        (
            ["bob,up,0,,train,1", "ann,up,0,9,train,1", "ann,down,1,4,train,2"],
            AS_STEPS,
            "row 3: expiry = 4: client ann must hold the samples of a split in the order in which they "
            "arrive, but row 2, step = 0 and earlier than 1 here, expires later, at 9",
        ),
        (
            ["ann,up,2015-01-01,2015-01-01,train,1"],
            {**AS_STEPS, "step": None, "time": "at"},
            "row 1: until = 2015-01-01T00:00:00: must be after at = 2015-01-01T00:00:00",
        ),
        (
            ["ann,up,2015-01-01T00:00:00Z,2015-01-02,train,1"],
            {**AS_STEPS, "step": None, "time": "at"},
            "expiry: column 'until' holds times without a time zone, and 'at' times with a time zone; give",
        ),
        (
            ["ann,up,7,2015-01-02,train,1"],
            {**AS_STEPS, "step": None, "order": "at"},
            "expiry: column 'until' holds times without a time zone, and 'at' numbers; give both alike",
        ),
        ([], {**AS_STEPS, "step": None}, "expiry = until: only with time, step or order, columns that say"),
        ([], {**AS_STEPS, "expiry": "x"}, "column 'x' is named twice"),
        (["ann,up,0,1,train,1"], {**AS_STEPS, "expiry": "end"}, "expiry: unknown column 'end'; choices: at,"),
    ],
)
def test_a_bad_expiry_is_refused(tmp_path: Path, lines: list[str], settings: Any, message: str) -> None:
    root = write(tmp_path, steps(*lines))
    if lines:
        assert message in refused(root, **settings)
        return
    with pytest.raises(ValueError, match=message.split(":")[0]) as error:
        build(root, tmp_path / "t", **settings)
    assert message in str(error.value)


def test_rows_that_are_never_held_may_be_left_out_and_those_that_never_expire_are_not_bad(
    tmp_path: Path,
) -> None:
    text = steps(
        "ann,up,0,0,train,1", "ann,up,2015-01-01,,train,2", "ann,up,1,5,train,3", "ann,up,2,,train,4"
    )
    text = text.replace("2015-01-01", "1")
    folder = built(write(tmp_path, text), **AS_STEPS, skip_bad=1)
    assert rows(folder, "step", "expiry", "sample") == [(1, 5, 1), (1, None, 0), (2, None, 2)]
    # A malformed time beside rows without one: these are good.
    text = steps("ann,up,2015-01-01,soon,train,1", "ann,down,2015-01-02,,train,2")
    as_times = {**AS_STEPS, "step": None, "time": "at", "skip_bad": 1}
    folder = built(write(tmp_path / "times", text), **as_times)
    assert rows(folder, "expiry") == [(None,)]


def test_label_counts_of_each_client_and_step_equal_a_recount_of_the_table(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"who": generator.integers(0, 4, 300), "kind": generator.integers(0, 3, 300)})
    frame["at"] = generator.integers(-2, 8, 300)
    frame["until"] = (frame["at"] + 1 + frame["who"]).where(frame["at"] < 6)
    frame["part"] = np.where(generator.random(300) < 0.8, "train", "test")
    frame["x"] = 0.0
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    folder = built(tmp_path / "t.parquet", **AS_STEPS).path
    trace = File(FileSettings(folder=str(folder), rounds_per_step=1)).build(context(9))
    for step in range(9):
        held = frame[(frame["at"] <= step) & ~(frame["until"] <= step)]
        for split in ("train", "test"):
            of_split = held[held["part"] == split]
            ranges = trace.held(np.arange(4), split, step)  # type: ignore[arg-type]
            for client in range(4):
                labels = Counter(trace.labels(ranges.rows(client)).tolist())
                assert labels == Counter(of_split[of_split["who"] == client]["kind"])


def test_nothing_is_said_of_expiry_in_folders_without_it(tmp_path: Path) -> None:
    folder = built(write(tmp_path, STEPS), **{**AS_STEPS, "expiry": None})
    assert read_facts(folder.path).version == 1
    assert folder.rows.expiry is None


def test_a_column_of_expiry_may_be_empty_beside_times(tmp_path: Path) -> None:
    lines = steps("ann,up,2015-01-01,,train,1", "bob,up,2015-01-02, ,train,2")
    folder = built(write(tmp_path, lines), **{**AS_STEPS, "step": None, "time": "at"})
    assert rows(folder, "client", "expiry") == [("ann", None), ("bob", None)]


def test_the_first_of_times_of_expiry_is_the_first_that_is_written(tmp_path: Path) -> None:
    lines = steps(
        *(f"ann,up,2015-01-01,{until},train,1" for until in ("", "2016-01-01", "2016-01-01T00:00Z"))
    )
    message = refused(write(tmp_path, lines), **{**AS_STEPS, "step": None, "time": "at"})
    assert message.startswith(
        "table.csv, row 3: until = '2016-01-01T00:00Z': has an offset, and '2016-01-01' in"
    )
    assert "in table.csv, row 2 has no offset" in message


def test_a_column_of_expiry_beside_steps_holds_numbers(tmp_path: Path) -> None:
    frame = pd.read_csv(write(tmp_path, STEPS)).assign(until="soon")
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    message = refused(tmp_path / "t.parquet", **AS_STEPS)
    assert message.startswith("t.parquet: column 'until' is ")
    assert message.endswith("it must hold numbers")
