from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.storage.parquet_columns import EARLIEST_US, LATEST_US
from tests.traces.building.table.tables import build, built, refused, write, write_parquet
from traces.building.table.times.time_zones import local_times
from traces.files import ARRIVALS, open_folder

DAY_US = 86_400 * 10**6


def times(tmp_path: Path, *texts: str, **settings: Any) -> list[int]:
    """The times of the rows, which are in the order of time."""
    lines = "".join(f"x,0,{text},1\n" for text in texts)
    folder = built(write(tmp_path, f"who,kind,t,a\n{lines}"), time="t", test_share=0, **settings)
    return folder.rows.at.tolist()


def has_zone(tmp_path: Path) -> bool:
    """Whether the times of the table's trace have a time zone."""
    return pq.read_schema(tmp_path / "table.csv.trace" / ARRIVALS).field("time").type.tz is not None


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
    "text", ["1970-1-2", "02/01/1970", "1970-01", "1970-01-02T25:00", "noon", "1970 01 02"]
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


# -- offsets and zones --------------------------------------------------------------------------------------

AROUND_A_CHANGE = pd.date_range("2024-10-26T21:30Z", "2024-10-28T01:00Z", freq="30min").tz_convert(
    "Europe/Berlin"
)


def test_a_local_log_over_a_change_of_clocks_becomes_utc(tmp_path: Path) -> None:
    """Its offset is +02:00 at first, then +01:00."""
    texts = [stamp.isoformat() for stamp in AROUND_A_CHANGE]
    assert times(tmp_path, *texts) == AROUND_A_CHANGE.asi8.tolist()
    assert has_zone(tmp_path)


@pytest.mark.parametrize("how", ["offsets", "unix"])
def test_with_a_zone_days_are_local_ones(tmp_path: Path, how: str) -> None:
    """The hour that clocks show twice is there twice; days are those of pandas."""
    shown = AROUND_A_CHANGE.tz_convert("UTC") if how == "offsets" else AROUND_A_CHANGE.asi8 // 10**6
    found = times(tmp_path, *(str(stamp) for stamp in shown), zone="Europe/Berlin")
    local = AROUND_A_CHANGE.tz_localize(None)
    assert found == sorted(local.asi8.tolist())
    assert [time // DAY_US for time in found] == (local.normalize().asi8 // DAY_US).tolist()
    assert not has_zone(tmp_path)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"])
def test_local_times_are_those_of_pandas(zone: str) -> None:
    """From before there were zones, around every change of clocks, and at the ends of what a trace holds."""
    generator = np.random.default_rng(0)
    changes = pd.date_range("1890-01-01", "2100-01-01", freq="h", tz="UTC").tz_convert(zone)
    offsets = np.diff(changes.tz_localize(None).asi8 - changes.asi8)
    around = changes.asi8[1:][offsets != 0]
    instants = np.concatenate([around + step for step in (-3_600_000_000, -1, 0, 1)])
    instants = np.concatenate([instants, generator.integers(EARLIEST_US, LATEST_US, 500)])
    wanted = pd.DatetimeIndex(instants.astype("M8[us]"), tz="UTC").tz_convert(ZoneInfo(zone))
    assert local_times(instants, ZoneInfo(zone)).tolist() == wanted.tz_localize(None).asi8.tolist()


def test_bounds_are_local_days_with_a_zone(tmp_path: Path) -> None:
    texts = ("2024-01-01T22:59:59Z", "2024-01-01T23:00:00Z")
    found = times(tmp_path, *texts, zone="Europe/Berlin", since="2024-01-02")
    assert found == [pd.Timestamp("2024-01-02").value // 1000]


# -- formats ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("%d.%m.%Y %H:%M", ["03.04.2024 10:00", "3.4.2024 10:01"]),
        ("%m/%d/%y %I:%M %p", ["04/03/24 12:05 AM", "04/03/24 12:05 PM"]),
        ("%Y%m%d", ["20240403", "20241231"]),
        ("%Y%m%d%H%M%S.%f", ["20240403101112.5"]),
        ("%d %b %Y", ["3 Apr 2024", "04 apr 2024"]),
        ("%Y-%j", ["2024-060"]),
        ("%d.%m.%Y %H:%M%z", ["03.04.2024 10:00+0200", "03.04.2024 10:00Z"]),
        ("100%% %Y", ["100% 2024"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_format_says_how_texts_are_written(
    tmp_path: Path, kind: str, pattern: str, texts: list[str]
) -> None:
    stamps = [datetime.strptime(text, pattern) for text in texts]
    wanted = [pd.Timestamp(stamp).value // 1000 for stamp in stamps]
    if kind == "csv":
        assert times(tmp_path, *texts, time_format=pattern) == wanted
        assert has_zone(tmp_path) == ("%z" in pattern)
        return
    column: list[Any] = [int(text) for text in texts] if pattern == "%Y%m%d" else texts
    num = len(texts)
    table = write_parquet(tmp_path, {"who": ["x"] * num, "kind": [0] * num, "a": [1.0] * num, "t": column})
    assert built(table, time="t", time_format=pattern, test_share=0).rows.at.tolist() == wanted


@pytest.mark.parametrize(
    "text", ["now", "today", "2024111", "20240230", "20240101x", "x20240101", "2024 01 01", "nan"]
)
def test_a_whole_text_must_be_written_as_the_format_says(tmp_path: Path, text: str) -> None:
    table = write(tmp_path, f"who,kind,t,a\nx,0,20240101,1\nx,0,'{text}',1\n".replace("'", ""))
    message = refused(table, time="t", time_format="%Y%m%d")
    assert message.startswith("table.csv, row 2: t ")


def test_rows_are_ordered_by_texts_of_a_format_or_with_several_offsets(tmp_path: Path) -> None:
    lines = "x,0,02.01.2024,1\nx,0,01.02.2024,2\nx,0,01.01.2024,3\n"
    folder = built(write(tmp_path, f"who,kind,t,a\n{lines}"), order="t", time_format="%d.%m.%Y", test_share=0)
    assert folder.features.values[folder.rows.sample][:, 0].tolist() == [3, 1, 2]
    lines = "x,0,2024-01-01T00:00-01:00,1\nx,0,2024-01-01T00:30Z,2\n"
    folder = built(write(tmp_path, f"who,kind,t,a\n{lines}", "b.csv"), order="t", test_share=0)
    assert folder.features.values[folder.rows.sample][:, 0].tolist() == [2, 1]


# -- Unix times ---------------------------------------------------------------------------------------------

WHOLE_S = [1_700_000_000, 1_700_000_001, 1_800_000_000]


@pytest.mark.parametrize(("unit", "per_s"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("told", ["by the sizes", "by the option"])
def test_numbers_are_unix_times_of_a_unit(tmp_path: Path, unit: str, per_s: int, told: str) -> None:
    table = write(
        tmp_path, "who,kind,t,a\n" + "".join(f"x,0,{second * per_s},{second}\n" for second in WHOLE_S)
    )
    settings: dict[str, Any] = {} if told == "by the sizes" else {"unix": unit}
    notes = build(table, tmp_path / "out", time="t", features=["a"], test_share=0, **settings).notes
    assert open_folder(tmp_path / "out").rows.at.tolist() == [second * 10**6 for second in WHOLE_S]
    name = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
    wanted = (
        f"t: the numbers are Unix {name}, 2023-11-14T22:13:20Z to 2027-01-15T08:00:00Z; --unix UNIT says "
        f"otherwise"
    )
    assert (wanted in notes) == (told == "by the sizes")


@pytest.mark.parametrize(
    ("column", "settings", "microseconds"),
    [
        ([1.7e9 + 0.25], {}, 1_700_000_000_250_000),
        ([1.7e12 + 0.5], {}, 1_700_000_000_000_500),
        (
            [-1_700_000_000_000_000_001],
            {"unix": "ns"},
            -1_700_000_000_000_001,
        ),  # nanoseconds are rounded down
        ([100], {"unix": "ms"}, 100_000),
        (pa.array([-(2**31)], pa.int32()), {"unix": "s"}, -(2**31) * 10**6),
        ([10**11 - 1], {"unix": "s"}, (10**11 - 1) * 10**6),
        ([10**11], {"unix": "ms"}, 10**14),
        (pa.array([1_700_000_000], pa.uint64()), {}, 1_700_000_000_000_000),
        (["1700000000123"], {"unix": "ms"}, 1_700_000_000_123_000),
    ],
)
def test_the_unit_is_told_by_the_size_and_microseconds_are_kept(
    tmp_path: Path, column: Any, settings: dict[str, Any], microseconds: int
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0], "t": column})
    assert built(table, time="t", **settings).rows.at.tolist() == [microseconds]


@pytest.mark.parametrize(
    ("number", "unit", "instant"),
    [
        (-1_700_000_000_000_000_001, "nanoseconds", "1916-02-18T01:46:39Z"),
        (-(2**31), "seconds", "1901-12-13T20:45:52Z"),
        (10**11 - 1, "seconds", "5138-11-16T09:46:39Z"),
        (10**11, "milliseconds", "1973-03-03T09:46:40Z"),
        (631_151_999, "seconds", "1989-12-31T23:59:59Z"),
        (4_133_980_800, "seconds", "2101-01-01T00:00:00Z"),
        (49_105_962_326_000, "milliseconds", "3526-02-09T01:05:26Z"),
        (638_396_640_000_000_000, "nanoseconds", "1990-03-25T20:24:00Z"),
    ],
)
def test_numbers_that_are_hardly_unix_times_are_refused_unless_their_unit_is_given(
    tmp_path: Path, number: int, unit: str, instant: str
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"], "kind": [0], "a": [1.0], "t": [number]})
    assert refused(table, time="t").startswith(
        f"table.parquet, row 1: t = {number}: by its size {unit} since 1970, yet {instant} is not in "
        f"{1991 if unit == 'nanoseconds' else 1990} to 2100: give --unix "
    )
    short = {"seconds": "s", "milliseconds": "ms", "nanoseconds": "ns"}[unit]
    [microseconds] = built(table, time="t", unix=short, test_share=0).rows.at.tolist()
    assert f"{np.datetime64(microseconds, 'us').astype('datetime64[s]')}Z" == instant


@pytest.mark.parametrize(
    ("number", "reading"),
    [
        (49_105_962_326_000, "13.6 hours in nanoseconds since the start of a device"),
        (
            638_396_640_000_000_000,
            "2024-01-01T00:00:00Z in .NET ticks: write (t - 621355968000000000) / 10, and give --unix us",
        ),
    ],
)
def test_the_readings_that_fit_are_named(tmp_path: Path, number: int, reading: str) -> None:
    message = refused(write(tmp_path, f"who,kind,t,a\nx,0,{number},1\n"), time="t")
    assert message.endswith(
        f"; it may be {reading}; give --order instead of --time for numbers that only order rows"
    )


@pytest.mark.parametrize("second", [631_152_000, 4_133_980_799])
def test_the_first_and_the_last_second_of_what_is_taken_for_unix_times(tmp_path: Path, second: int) -> None:
    assert times(tmp_path, f"{second}") == [second * 10**6]


def test_a_date_that_is_written_is_what_it_says(tmp_path: Path) -> None:
    assert times(tmp_path, "1916-02-18T01:46:39") == [-1_700_000_001 * 10**6]


def test_fractions_in_a_csv_are_unix_times_too(tmp_path: Path) -> None:
    assert times(tmp_path, "1700000000.25", "1700000001.0") == [1_700_000_000_250_000, 1_700_000_001_000_000]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ([1_700_000_000, 12], "t = 12: too small for a Unix time"),
        (
            [1.7e9, np.inf],
            "t = inf: must be a finite number",
        ),
        ([1.7e9, np.nan], "t is missing"),
        (pa.array([1_700_000_000, None]), "t is missing"),
        ([1_700_000_000, -(2**63)], f"t = -{2**63}: has the size of Unix nanoseconds"),
        (
            pa.array([1_700_000_000_000_000_000, 2**64 - 1], pa.uint64()),
            f"t = {2**64 - 1}: is no time in nano",
        ),
    ],
)
def test_a_number_that_is_no_unix_time_of_the_unit_is_refused_by_its_row(
    tmp_path: Path, column: Any, problem: str
) -> None:
    table = write_parquet(tmp_path, {"who": ["x"] * 2, "kind": [0, 1], "a": [1.0, 2.0], "t": column})
    assert refused(table, time="t").startswith(f"table.parquet, row 2: {problem}")


def test_numbers_that_are_too_small_may_be_left_out(tmp_path: Path) -> None:
    assert times(tmp_path, "0", "1700000000", "", skip_bad=2) == [1_700_000_000_000_000]


# -- dates and timestamps -----------------------------------------------------------------------------------


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
