"""Hours as dates and Unix times, beside the same hours in virtual seconds."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import DataFileError
from tests.traces.availability.test_intervals import read_intervals
from traces.availability import AVAILABILITIES, DeviceIntervals
from traces.availability.intervals import IntervalsSettings

ZERO = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
ZERO_S = int(ZERO.timestamp())
SPELLS = [("b", 3600, 9000.5), ("a", 0, 7200), ("a", 10800.1, 90000), ("c", 60.25, 60.25)]


def columns(write: Callable[[float], object]) -> dict[str, list[object]]:
    """The spells as a table, whose instants are written by a function of their virtual second."""
    devices, starts, ends = zip(*SPELLS, strict=True)
    return {"device_id": list(devices), "start": list(map(write, starts)), "end": list(map(write, ends))}


def as_csv(write: Callable[[float], object]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        path, table = folder / "hours.csv", columns(write)
        rows = [",".join(map(str, row)) for row in zip(*table.values(), strict=True)]
        path.write_text("\n".join([",".join(table), *rows]) + "\n")
        return path

    return written


def as_parquet(kind: pa.DataType, *, encoded: bool = False) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        path = folder / "hours.parquet"
        if pa.types.is_timestamp(kind):
            table = columns(moment)
        elif pa.types.is_integer(kind):
            table = columns(milliseconds)
        else:
            table = columns(iso)
        arrays = {name: pa.array(values, kind) for name, values in table.items() if name != "device_id"}
        if encoded:
            arrays = {name: array.dictionary_encode() for name, array in arrays.items()}
        pq.write_table(pa.table({"device_id": table["device_id"], **arrays}), path)
        return path

    return written


def moment(time_s: float) -> datetime:
    return ZERO + timedelta(microseconds=round(time_s * 1e6))


def iso(time_s: float) -> str:
    return moment(time_s).isoformat().replace("+00:00", "Z")


def abroad(time_s: float) -> str:
    """As pandas writes it, by a clock that is behind UTC."""
    return (moment(time_s).replace(tzinfo=None) - timedelta(hours=3, minutes=30)).isoformat(" ") + "-03:30"


def milliseconds(time_s: float) -> int:
    return ZERO_S * 1000 + round(time_s * 1000)


def unix_seconds(time_s: float) -> str:
    return f"{ZERO_S + time_s:.6f}"


def written(folder: Path, text: str, name: str = "hours.csv") -> Path:
    """A table of the given rows, columns separated by blanks; `-` is an empty cell."""
    rows = [
        ",".join("" if cell == "-" else cell for cell in line.split()) for line in text.strip().splitlines()
    ]
    (folder / name).write_text("\n".join(rows) + "\n")
    return folder / name


def plain(folder: Path, **settings: str) -> DeviceIntervals:
    path = folder / "plain.csv"
    path.write_text("device_id,start_s,end_s\n" + "".join(f"{d},{a},{b}\n" for d, a, b in SPELLS))
    return read_intervals(path, **settings)


def content(hours: DeviceIntervals) -> list[bytes]:
    return [column.tobytes() for column in (hours.offsets, hours.start_s, hours.end_s, hours.period_s)]


def notes(hours: DeviceIntervals) -> list[str]:
    assert hours.ids is not None
    return list(hours.ids.notes)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(DataFileError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value).rpartition("/")[2]


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (as_csv(iso), "dates"),
        (as_csv(abroad), "dates"),
        (as_csv(milliseconds), "Unix milliseconds"),
        (as_csv(unix_seconds), "Unix seconds"),
        (as_parquet(pa.timestamp("ms", "UTC")), "dates"),
        (as_parquet(pa.timestamp("us", "Europe/Berlin")), "dates"),
        (as_parquet(pa.timestamp("ns", "UTC")), "dates"),
        (as_parquet(pa.int64()), "Unix milliseconds"),
        (as_parquet(pa.string()), "dates"),
        (as_parquet(pa.large_string()), "dates"),
        (as_parquet(pa.string(), encoded=True), "dates"),
    ],
)
def test_every_way_to_write_instants_is_to_the_bit_that_of_virtual_seconds(
    tmp_path: Path, write: Callable[[Path], Path], kind: str
) -> None:
    hours = read_intervals(write(tmp_path))
    assert content(hours) == content(plain(tmp_path))
    assert notes(hours) == [
        "virtual time 0 is 2026-03-01T22:30:00Z",
        f"{kind} until 2026-03-02T23:30:00Z",
    ]


def test_offsets_may_differ_from_row_to_row_and_minutes_may_be_the_last_digits(tmp_path: Path) -> None:
    hours = written(
        tmp_path,
        """
        client start                      end
        a      2026-01-01T00:00Z          2026-01-01T02:00:00+01:00
        b      2026-01-01T02:00:00+0100   2026-01-01T03:00:00.5Z
        """,
    )
    intervals = read_intervals(hours)
    assert intervals.start_s.tolist() == [0, 3600]
    assert intervals.end_s.tolist() == [3600, 10800.5]


def test_an_origin_of_ones_own_is_instant_0(tmp_path: Path) -> None:
    hours = read_intervals(as_csv(iso)(tmp_path), origin=ZERO - timedelta(minutes=30))
    assert hours.start_s.tolist() == [1800, 12600.1, 5400]
    assert notes(hours)[0] == "virtual time 0 is 2026-03-01T22:00:00Z"


def test_by_the_time_of_day_virtual_time_0_is_a_midnight_in_utc(tmp_path: Path) -> None:
    hours = read_intervals(as_csv(abroad)(tmp_path), align="time_of_day")
    assert hours.start_s.tolist() == [22.5 * 3600, 22.5 * 3600 + 10800.1, 22.5 * 3600 + 3600]
    assert notes(hours)[0] == "virtual time 0 is 2026-03-01T00:00:00Z, a midnight in UTC"


@pytest.mark.parametrize(
    "rows",
    [
        "a 2026-01-01T00:00:00Z - \n b 2026-01-01T01:00:00Z 2026-01-01T02:00:00Z",
        "a 1767225600 - \n b 1767229200 1767232800",
        "a 1767225600000 - \n b 1767229200000 1767232800000",
        "a 2026-01-01T00:00Z - \n b 2026-01-01T01:00:00+0000 2026-01-01T02:00:00Z",  # read as texts
    ],
)
def test_without_an_end_a_device_is_online_until_the_last_instant_of_the_table(
    tmp_path: Path, rows: str
) -> None:
    hours = read_intervals(written(tmp_path, f"device start end\n{rows}"))
    assert hours.start_s.tolist() == [0, 3600]
    assert hours.end_s.tolist() == [7200, 7200]
    assert notes(hours)[1].endswith(" until 2026-01-01T02:00:00Z, the end of 1 without one")


def test_the_last_instant_may_be_a_start_of_those_that_have_no_end_at_all(tmp_path: Path) -> None:
    hours = read_intervals(written(tmp_path, "device start end\n a 1767225600 -\n b 1767225660 -"))
    assert (hours.start_s.tolist(), hours.end_s.tolist()) == ([0], [60])
    assert hours.num_dropped_empty == 1
    assert notes(hours)[-1] == ("Unix seconds until 2026-01-01T00:01:00Z, the end of 2 without one")


def test_dates_may_repeat_by_a_period_in_the_table_or_in_that_of_devices(tmp_path: Path) -> None:
    rows = "device start end\n a 1767225600 1767229200\n a 1767236400 1767240000"
    of_devices = written(tmp_path, "device period_s\n a 86400", "devices.csv")
    apart = read_intervals(written(tmp_path, rows), of_devices)
    each = [f"{row} {'period_s' if number == 0 else 86400}" for number, row in enumerate(rows.splitlines())]
    within = read_intervals(written(tmp_path, "\n".join(each)))
    assert content(apart) == content(within)
    assert within.period_s.tolist() == [86400]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "start end start_s\n 1767225600 1767225660 0",
            "hours.csv: has both start and start_s; start and end hold dates or Unix times, start_s and "
            "end_s virtual seconds: keep one pair",
        ),
        ("start\n 1767225600", "hours.csv: column 'end' is missing"),
        ("start_s end\n 0 1", "hours.csv: has both end and start_s"),
        (
            "start end\n 0 100",
            "hours.csv, row 1: start = 0 is outside of 1990 to 2100 in Unix seconds, the first row's unit; "
            "virtual seconds are called start_s",
        ),
        ("start end\n 631151999 1767225660", "row 1: start = 631151999 is outside of 1990 to 2100 in Unix s"),
        ("start end\n 1767225600 1767225600000000", "row 1: end = 1767225600000000 is outside of 1990 to"),
        ("start end\n 1767225600000000 1767225600000001", "micro- or nanoseconds are to be divided first"),
        (
            "start end\n 1767225600 1767225660\n 1767225600000 1767225660",
            "row 2: start = 1767225600000 is outside of 1990 to 2100 in Unix seconds, the first row's unit",
        ),
        ("start end\n 1767225600 1e308\n 1767225600 1767225660", "row 1: end = 1e+308 is outside of 1990 to"),
        (
            "start end\n 1767225600 1767225660000",
            "hours.csv: start holds Unix seconds, and end Unix milliseconds; write both alike",
        ),
        (
            "start end\n 1767225600 2026-01-01T01:00:00Z",
            "start holds Unix seconds, and end dates; write both",
        ),
        (
            "start end\n 2026-01-01T00:00:00 2026-01-01T01:00:00",
            "hours.csv: column 'start' is timestamp[s], without a time zone; it must hold a time with a "
            "zone, as 2015-01-31T12:00:00Z (tz_localize in pandas), or Unix seconds or milliseconds",
        ),
        ("start end\n 2026-01-01 2026-01-02", "column 'start' is date32[day], without a time zone"),
        (
            "start end\n 2026-01-01T00:00Z 2026-01-02T00:00Z\n 2026-01-01T00:00 2026-01-02T00:00Z",
            "row 2: start = 2026-01-01T00:00 must be a time with a zone",
        ),
        ("start end\n 2026-01-01T00:00Z tomorrow", "row 1: end = tomorrow must be a time with a zone"),
        ("start end\n - 1767225660\n 1767225600 1767225660", "hours.csv, row 1: start is missing"),
        ("start end\n TRUE FALSE", "column 'start' is bool; it must hold a time with a zone"),
        (
            "start end\n 1767225600 1767225660\n 1767225600 1767225000",
            "row 2: end = 1767225000 is before the start",
        ),
        (
            "start end period_s\n 1767225600 1767225661.5 60",
            "row 1: end_s = 61.5 must be within the period of 60 s, which begins at 0",
        ),
        (
            "start end\n 1767225600 1767225660\n 1767225630 1767225700",
            "row 2: [2026-01-01T00:00:30Z, 2026-01-01T00:01:40Z) overlaps [2026-01-01T00:00:00Z, "
            "2026-01-01T00:01:00Z) of the same device in row 1",
        ),
        (
            "start_s end_s\n 2026-01-01T00:00:00Z 2026-01-01T01:00:00Z",
            "start_s and end_s are virtual seconds; name them start and end if they are dates",
        ),
    ],
)
def test_what_is_no_interval_is_refused_in_one_line_with_its_remedy(
    tmp_path: Path, rows: str, message: str
) -> None:
    lines = rows.splitlines()
    table = "\n".join(f"{'device_id' if number == 0 else 'a'} {row}" for number, row in enumerate(lines))
    assert message in refusal(lambda: read_intervals(written(tmp_path, table)))


def test_a_row_before_the_origin_is_named_with_both(tmp_path: Path) -> None:
    hours = written(tmp_path, "device start end\n a 1767225600 1767225660")
    assert refusal(lambda: read_intervals(hours, origin=datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))) == (
        "hours.csv, row 1: start = 1767225600 is before devices.availability.origin = 2026-01-01T00:00:01Z; "
        "set an earlier one, or leave it out"
    )


def test_an_origin_goes_with_dates_alone(tmp_path: Path) -> None:
    hours = written(tmp_path, "device start_s end_s\n a 0 60")
    assert "else leave out devices.availability.origin" in refusal(lambda: read_intervals(hours, origin=ZERO))


def test_of_dates_the_table_of_devices_has_the_period_alone(tmp_path: Path) -> None:
    hours = written(tmp_path, "device start end\n a 1767225600 1767225660")
    devices = written(tmp_path, "device origin_s period_s\n a 9 60", "devices.csv")
    assert notes(read_intervals(hours, devices))[-1] == "not read: origin_s"
    without = written(tmp_path, "device trace_end_s\n a 60", "d.csv")
    assert "d.csv: column 'period_s' is missing" in refusal(lambda: read_intervals(hours, without))


@pytest.mark.parametrize("origin", ["2026-01-01T00:00:00", "2026-01-01"])
def test_an_origin_without_a_zone_is_refused_with_the_configuration(origin: str) -> None:
    with pytest.raises(ValueError, match="should have timezone info"):
        IntervalsSettings.model_validate({"windows": "hours.csv", "origin": origin})


@pytest.mark.parametrize("origin", [ZERO, "2026-03-01T22:30:00Z", "2026-03-01 23:30:00+01:00"])
def test_an_origin_is_a_text_or_an_instant_of_toml(origin: object) -> None:
    assert IntervalsSettings.model_validate({"windows": "hours.csv", "origin": origin}).origin == ZERO


def test_an_instant_outside_of_the_years_is_refused_with_its_row(tmp_path: Path) -> None:
    kind, path = pa.timestamp("s", "UTC"), tmp_path / "hours.parquet"
    far = pa.array([ZERO_S, 10**13], pa.int64()).cast(kind)
    pq.write_table(pa.table({"device": ["a", "b"], "start": far, "end": far}), path)
    assert "hours.parquet, row 2: start" in refusal(lambda: read_intervals(path))


def test_further_columns_are_kept_and_named(tmp_path: Path) -> None:
    hours = read_intervals(written(tmp_path, "device start_s end_s os wifi\n a 0 60 x y"))
    assert notes(hours) == ["not read: os, wifi"]
    devices = written(tmp_path, "device period_s ram\n a 60 8", "devices.csv")
    both = read_intervals(written(tmp_path, "device start_s end_s os\n a 0 60 x"), devices)
    assert notes(both) == ["not read: os", "not read: ram"]


@pytest.mark.parametrize(
    ("header", "near"),
    [
        ("device start_s end_s Period_S", "period_s"),
        ("device start_s ends_s", "end_s"),
        ("device Start End", "start"),
    ],
)
def test_a_column_that_is_nearly_a_known_one_is_refused_with_that_one(
    tmp_path: Path, header: str, near: str
) -> None:
    hours = written(tmp_path, f"{header}\n a {' '.join('9' for _ in header.split()[1:])}")
    assert f"did you mean {near!r}?" in refusal(lambda: read_intervals(hours))


def test_an_origin_misspelt_among_devices_is_refused_though_it_may_be_left_out(tmp_path: Path) -> None:
    hours = written(tmp_path, "device start_s end_s\n a 9 9")
    devices = written(tmp_path, "device period_s orgin_s\n a 60 9", "d.csv")
    assert "d.csv: unknown column 'orgin_s'; did you mean 'origin_s'?" in refusal(
        lambda: read_intervals(hours, devices)
    )


def test_intervals_that_overlap_are_merged_on_request(tmp_path: Path) -> None:
    rows = "device start end\n a 1767225630 1767225700\n a 1767225600 1767225660\n b 1767225600 1767225610"
    source = AVAILABILITIES.find("intervals")
    settings = source.Settings.model_validate({"windows": "hours.csv", "overlapping": "merge"})
    written(tmp_path, rows)
    online = source(settings).build(2, np.random.default_rng(0), lambda name: tmp_path / name)
    assert sorted(online.next_offline_s(np.arange(2), 0.0).tolist()) == [10, 100]
