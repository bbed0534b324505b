from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.traces.building.table.tables import built, refused, write, write_parquet
from traces.files import ARRIVALS

DAY_US = 86_400 * 10**6


def times(tmp_path: Path, *texts: str) -> list[int]:
    lines = "".join(f"x,0,{text},1\n" for text in texts)
    folder = built(write(tmp_path, f"who,kind,t,a\n{lines}"), time="t", test_share=0)
    return folder.rows.at.tolist()


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-02", DAY_US),
        ("1970-01-02T00:00", DAY_US),
        ("1970-01-02 00:00:01.5", DAY_US + 1_500_000),
        ("1970-01-02T00:00:00Z", DAY_US),
        ("1970-01-02T01:30:00+01:30", DAY_US),
        ("1970-01-01T22:00-0200", DAY_US),
        ("1969-12-31", -DAY_US),
    ],
)
def test_texts_in_iso_8601_are_times(tmp_path: Path, text: str, microseconds: int) -> None:
    assert times(tmp_path, text) == [microseconds]


def test_zero_offsets_are_utc(tmp_path: Path) -> None:
    assert times(tmp_path, "1970-01-02T00:00Z", "1970-01-02T00:00+00:00") == [DAY_US, DAY_US]


def test_times_with_a_zone_are_written_as_utc(tmp_path: Path) -> None:
    folder = built(write(tmp_path, "who,kind,t,a\nx,0,1970-01-02T01:00:00+01:00,1\n"), time="t")
    assert pq.read_schema(folder.path / ARRIVALS).field("time").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "text", ["1970-1-2", "02/01/1970", "1970-01", "1970-01-02T25:00", "noon", "19700102"]
)
def test_other_texts_are_not(tmp_path: Path, text: str) -> None:
    message = refused(write(tmp_path, f"who,kind,t,a\nx,0,{text},1\n"), time="t")
    assert message.startswith(f"table.csv, row 1: t = {text!r}: must be a date or a timestamp in ISO 8601")


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        (pa.array(["2015-01-01", "0000-12-31"]), {}),
        (pa.array([0, 2**62], pa.timestamp("ms")), {}),
        (pa.array([0, 2**31 - 1], pa.date32()), {}),
        (pa.array([0, 2**40]), {"unix_seconds": True}),
    ],
)
def test_a_time_that_a_trace_cannot_hold_is_refused_by_its_row(
    tmp_path: Path, column: Any, settings: dict[str, Any]
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"] * 2, "kind": [0, 1], "a": [1.0, 2.0], "t": column})
    wanted = "table.parquet, row 2: t is out of range: years 1 to 9999 are read"
    assert refused(table, time="t", **settings) == wanted


def test_whole_seconds_are_times_on_request(tmp_path: Path) -> None:
    table = write(tmp_path, "who,kind,t,a\nx,0,86400,1\n")
    assert built(table, time="t", unix_seconds=True).rows.at.tolist() == [DAY_US]
    beyond = write(tmp_path, f"who,kind,t,a\nx,0,{2**62},1\n", "b.csv")
    assert refused(beyond, time="t", unix_seconds=True) == (
        f"b.csv, row 1: t = {2**62}: is no time in seconds since 1970"
    )


@pytest.mark.parametrize(
    "stamps",
    [
        pa.array([1], pa.int32()).cast(pa.date32()),
        pa.array([86_400]).cast(pa.timestamp("s")),
        pa.array([86_400 * 10**9]).cast(pa.timestamp("ns", "Europe/Paris")),
    ],
    ids=["a date", "seconds", "nanoseconds with a zone"],
)
def test_dates_and_timestamps_of_a_parquet_are_times(tmp_path: Path, stamps: pa.Array[Any]) -> None:
    folder = built(write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0], "t": stamps}), time="t")
    assert folder.rows.at.tolist() == [DAY_US]
