from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import DataFileError
from emulator.storage.tables import read_table
from tests.traces.availability.online_fraction import online_fraction
from traces.availability import AVAILABILITIES, IntervalAvailability
from traces.availability import intervals as reader
from traces.availability.interval_availability import DeviceIntervals


def written(path: Path, text: str) -> Path:
    """A table of the given rows, columns separated by spaces."""
    path.write_text("\n".join(",".join(line.split()) for line in text.strip().splitlines()) + "\n")
    return path


def read_intervals(windows: Path, devices: Path | None = None, **settings: Any) -> DeviceIntervals:
    """The intervals of the tables at these paths."""
    described = None if devices is None else read_table(devices)
    return reader.read_intervals(read_table(windows), described, **settings)


def source_built(folder: Path, num_clients: int = 50, **settings) -> IntervalAvailability:
    source = AVAILABILITIES.find("intervals")
    built = source(source.Settings(**settings)).build(
        num_clients, np.random.default_rng(3), lambda path: folder / path
    )
    assert isinstance(built, IntervalAvailability)
    return built


def story(availability: IntervalAvailability, num_clients: int = 50) -> list[list[float]]:
    ids = np.arange(num_clients)
    return [availability.next_offline_s(ids, time_s).tolist() for time_s in np.arange(0, 500, 5.0)]


WINDOWS = """
    device start_s end_s
    b      120     130
    a      10      20
    b      100     110
    c      7       7
"""
DEVICES = """
    device_id trace_start_s trace_end_s
    a         0             50
    b         100           200
    c         0             50
"""


def test_windows_alone_happen_once_from_time_0(tmp_path):
    intervals = read_intervals(written(tmp_path / "w.csv", WINDOWS))
    assert intervals.offsets.tolist() == [0, 1, 3, 3]
    assert intervals.start_s.tolist() == [10, 100, 120]
    assert np.isinf(intervals.period_s).all()
    assert intervals.num_dropped_empty == 1


def test_windows_may_carry_their_period(tmp_path):
    text = "device_id start_s end_s period_s\n 2 5 6 60\n 1 1 2 50\n 2 8 9 60"
    assert read_intervals(written(tmp_path / "w.csv", text)).period_s.tolist() == [50, 60]


def test_a_table_of_devices_gives_origin_and_period(tmp_path):
    windows, devices = written(tmp_path / "w.csv", WINDOWS), written(tmp_path / "d.csv", DEVICES)
    intervals = read_intervals(windows, devices)
    assert intervals.start_s.tolist() == [10, 0, 20]
    assert intervals.period_s.tolist() == [50, 100, np.inf]


def test_a_device_that_was_not_traced_may_lack_its_period(tmp_path):
    devices = written(tmp_path / "d.csv", DEVICES + "d NA NA")
    intervals = read_intervals(written(tmp_path / "w.csv", WINDOWS), devices)
    assert intervals.num_devices == 4
    assert intervals.num_never_online == 2


def test_time_of_day_puts_midnight_at_time_0(tmp_path):
    windows = written(tmp_path / "w.csv", "device start_s end_s\n a 90000 93600\n a 165600 166600")
    devices = written(tmp_path / "d.csv", "device origin_s period_s\n a 90000 86400")
    intervals = read_intervals(windows, devices, align="time_of_day")
    assert intervals.start_s.tolist() == [3600, 79200]
    assert intervals.end_s.tolist() == [7200, 80200]


def test_permuted_rows_give_identical_results(tmp_path):
    def permuted(text: str) -> str:
        head, *rows = text.strip().splitlines()
        return "\n".join([head, *rows[::-1]])

    written(tmp_path / "w.csv", WINDOWS)
    written(tmp_path / "d.csv", DEVICES)
    written(tmp_path / "w2.csv", permuted(WINDOWS))
    written(tmp_path / "d2.csv", permuted(DEVICES))
    original = story(source_built(tmp_path, windows="w.csv", devices="d.csv"))
    assert original == story(source_built(tmp_path, windows="w2.csv", devices="d2.csv"))


def test_ids_may_be_stored_as_a_dictionary(tmp_path):
    windows = tmp_path / "w.parquet"
    ids = pa.array(["b", "a"]).dictionary_encode()
    pq.write_table(pa.table({"device": ids, "start_s": [100, 0], "end_s": [110, 9]}), windows)
    intervals = read_intervals(windows, written(tmp_path / "d.csv", DEVICES))
    assert intervals.end_s.tolist() == [9, 10]


def test_devices_never_online_are_left_out_on_request(tmp_path):
    written(tmp_path / "w.csv", WINDOWS)
    built = source_built(tmp_path, windows="w.csv")
    dropped = source_built(tmp_path, windows="w.csv", drop_never_online=True)
    assert (built.num_devices, built.num_never_online) == (3, 1)
    assert (dropped.num_devices, dropped.num_never_online) == (2, 0)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ("device start_s\n a 1", "w.csv: column 'end_s' is missing; it has device, start_s"),
        (
            "phone start_s end_s\n a 1 2",
            "w.csv: column 'device_id' or 'device' or 'client' is missing; it has phone, start_s, end_s",
        ),
        (
            "device device_id start_s end_s\n a a 1 2",
            "w.csv: has both device_id and device; one of them is enough",
        ),
        ("device start_s end_s perod_s\n a 1 2 3", "w.csv: unknown column 'perod_s'"),
        ("device start_s end_s period_s\n a 1 2 0", "w.csv, row 1: period_s = 0 must be greater than 0"),
        (
            "device start_s end_s period_s\n a 1 2 9\n b 1 2 8\n a 3 4 8",
            "w.csv, row 3: period_s = 8 differs from 9 of the same device in row 1",
        ),
        ("device start_s end_s\n a 1 nan", "w.csv, row 1: end_s = nan must be a finite number"),
        ("device start_s end_s\n a 3 4\n a 2 1", "w.csv, row 2: end_s = 1 is before start_s = 2"),
        (
            "device start_s end_s\n a 3 5\n a 4 6",
            "w.csv, row 2: [4, 6) overlaps [3, 5) of the same device in row 1",
        ),
        ("device start_s end_s", "w.csv: has no rows"),
    ],
)
def test_a_bad_table_of_windows_is_refused_in_one_line(tmp_path, windows, message):
    with pytest.raises(DataFileError) as refused:
        read_intervals(written(tmp_path / "w.csv", windows))
    assert str(refused.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("device period_s\n a 200\n b 200", "w.csv, row 4: device 'c' is not in {folder}/d.csv"),
        ("device period_s\n 1 200", "w.csv, row 1: device 'b' is not in {folder}/d.csv"),
        (
            "device origin_s\n a 0\n b 0\n c 0",
            "d.csv: column 'period_s' or 'trace_end_s' is missing; it has device, origin_s",
        ),
        ("device period_s\n a 9\n b 9\n a 9", "d.csv, row 3: device 'a' is also in row 1"),
        ("device period_s\n a 200\n b nan\n c 9", "d.csv, row 2: period_s = nan must be a finite number"),
        (
            "device origin_s trace_end_s\n a 0 200\n b 9 9\n c 0 9",
            "d.csv, row 2: the period must be longer than 0 s, and is 0 s",
        ),
        (
            "device origin_s period_s\n a 11 200\n b 0 200\n c 0 9",
            "w.csv, row 2: start_s = 10 must be at least 11, where its device's trace begins",
        ),
        (
            "device period_s\n a 200\n b 125\n c 9",
            "w.csv, row 1: end_s = 130 must be within the period of 125 s, which begins at 0",
        ),
    ],
)
def test_a_bad_table_of_devices_is_refused_in_one_line(tmp_path, devices, message):
    windows = written(tmp_path / "w.csv", WINDOWS)
    with pytest.raises(DataFileError) as refused:
        read_intervals(windows, written(tmp_path / "d.csv", devices))
    assert str(refused.value).startswith(f"{tmp_path}/{message}".format(folder=tmp_path))


@pytest.mark.parametrize("name", ["trace_start_s", "trace_end_s"])
def test_a_column_of_devices_that_is_there_twice_is_refused_rather_than_read_once(tmp_path, name):
    devices = f"device {name} trace_start_s trace_end_s\n a 0 0 50\n b 0 0 200\n c 0 0 50"
    with pytest.raises(DataFileError, match=f"a column name occurs twice: '{name}'"):
        read_intervals(written(tmp_path / "w.csv", WINDOWS), written(tmp_path / "d.csv", devices))


def test_a_period_in_both_tables_is_refused(tmp_path):
    windows = written(tmp_path / "w.csv", "device start_s end_s period_s\n a 1 2 9")
    with pytest.raises(DataFileError, match="period_s belongs in"):
        read_intervals(windows, written(tmp_path / "d.csv", DEVICES))


def test_nothing_is_left_when_every_window_is_empty_and_such_devices_are_left_out(tmp_path):
    written(tmp_path / "w.csv", "device start_s end_s\n a 1 1")
    with pytest.raises(DataFileError, match="no device is ever online: every interval has length 0"):
        source_built(tmp_path, windows="w.csv", drop_never_online=True)


FLASH = {"windows": "flash_availability_windows.parquet", "devices": "flash_availability_devices.parquet"}


def test_flash_is_read_as_published(device_data):
    availability = source_built(device_data, **FLASH)
    assert availability.num_dropped_empty == 844
    assert (availability.num_devices, availability.num_never_online) == (1000, 296)


@pytest.mark.slow
def test_flash_keeps_its_rhythm_of_the_day_if_aligned_by_the_clock(device_data):
    def swing(align: str) -> float:
        availability = source_built(device_data, 704, **FLASH, align=align, drop_never_online=True)
        hours = online_fraction(availability, 704, num_hours=240).reshape(-1, 24).mean(axis=0)
        return float(hours.max() / hours.min())

    assert swing("time_of_day") > 1.9
    assert swing("origin") < 1.7


@pytest.mark.slow
def test_fedscales_ten_entries_are_read_with_their_periods(device_data):
    availability = source_built(
        device_data,
        windows="fedscale_availability_real_first10_intervals.parquet",
        devices="fedscale_availability_real_first10_devices.parquet",
    )
    assert (availability.num_devices, availability.num_dropped_empty) == (10, 2)
    devices = pq.read_table(device_data / "fedscale_availability_real_first10_devices.parquet")
    published = devices["available_s"].to_numpy() / devices["period_s"].to_numpy()
    hours = online_fraction(availability, 50, num_hours=8_000, samples_per_hour=1)
    assert hours.mean() == pytest.approx(published.mean(), abs=0.005)
