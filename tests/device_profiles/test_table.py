from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from device_profiles.table import read_device_table
from emulator.errors import DataFileError

Generators = Callable[[], np.random.Generator]

PHONES = """\
device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s,latency_s
pixel,0.1,1000000,500000,0.02
nokia,0.7,200000,100000,0.05
moto,0.3,400000,300000,0
oppo,0.11,900000,800000,0.013
sony,0.2,2000000,700000,0.01
"""


def write(folder: Path, text: str, name: str = "phones.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_table_serves_each_device_once_before_any_twice(tmp_path: Path, generator: Generators) -> None:
    profile = read_device_table(write(tmp_path, PHONES))
    assert profile.counts == {"devices": 5}
    drawn = profile.draw(12, generator()).seconds_per_sample.tolist()
    all_five = [0.1, 0.11, 0.2, 0.3, 0.7]
    assert sorted(drawn[:5]) == all_five
    assert sorted(drawn[5:10]) == all_five
    assert len(set(drawn[10:])) == 2
    assert drawn[:5] != drawn[5:10]


def test_a_device_keeps_its_columns_together(tmp_path: Path, generator: Generators) -> None:
    fleet = read_device_table(write(tmp_path, PHONES)).draw(5, generator())
    nokia = int(np.flatnonzero(fleet.seconds_per_sample == 0.7)[0])
    assert fleet.download_bytes_per_s[nokia] == 200000
    assert fleet.upload_bytes_per_s[nokia] == 100000
    assert fleet.latency_s[nokia] == 0.05


def test_the_order_of_rows_changes_no_fleet(tmp_path: Path, generator: Generators) -> None:
    head, *rows = PHONES.splitlines(keepends=True)
    as_written = read_device_table(write(tmp_path, PHONES)).draw(12, generator())
    permuted = write(tmp_path, head + "".join(rows[i] for i in (3, 0, 4, 2, 1)), "other.csv")
    for name, values in read_device_table(permuted).draw(12, generator()).columns().items():
        assert values.tolist() == as_written.columns()[name].tolist()


def test_doubled_seconds_per_sample_double_every_drawn_one_exactly(
    tmp_path: Path, generator: Generators
) -> None:
    table = pyarrow.csv.read_csv(write(tmp_path, PHONES))
    slower = table.set_column(1, "seconds_per_sample", pa.array(2 * table[1].to_numpy()))
    pq.write_table(slower, tmp_path / "slower.parquet")
    once = read_device_table(tmp_path / "phones.csv").draw(1000, generator())
    twice = read_device_table(tmp_path / "slower.parquet").draw(1000, generator())
    assert (twice.seconds_per_sample == 2 * once.seconds_per_sample).all()
    assert (twice.upload_bytes_per_s == once.upload_bytes_per_s).all()


def test_another_seed_is_another_fleet(tmp_path: Path) -> None:
    profile = read_device_table(write(tmp_path, PHONES))
    fleets = [profile.draw(50, np.random.default_rng(seed)).seconds_per_sample.tolist() for seed in (0, 1)]
    assert fleets[0] != fleets[1]


@pytest.mark.parametrize(
    ("header", "row", "seconds", "download", "upload"),
    [
        ("seconds_per_sample,download_bytes_per_s,upload_bytes_per_s", "0.5,8,4", 0.5, 8, 4),
        ("compute_ms_per_sample,download_kbps,upload_kbps", "41,1000,80", 0.123, 125_000, 10_000),
        ("compute_ms_per_sample,download_kibit_per_s,upload_kibit_per_s", "100,1000,2", 0.3, 128_000, 256),
        ("seconds_per_sample,bandwidth_kibit_per_s", "1,1000", 1, 128_000, 128_000),
        ("seconds_per_sample,upload_kbps,download_bytes_per_s", "1,8,3", 1, 3, 1000),
        ("ms_per_sample,download_mbps,upload_mbps", "9,8,0.5", 0.009, 1_000_000, 62_500),
        ("ms_per_sample,bandwidth_mbps", "41,80", 0.041, 10_000_000, 10_000_000),
        ("seconds_per_sample,download_KiB_per_s,upload_KiB_per_s", "1,1000,3", 1, 1_024_000, 3072),
        ("seconds_per_sample,bandwidth_KiB_per_s", "1,0.5", 1, 512, 512),
        ("seconds_per_sample,download_MB_per_s,upload_MB_per_s", "1,2,0.25", 1, 2_000_000, 250_000),
        ("seconds_per_sample,bandwidth_MB_per_s", "1,3", 1, 3_000_000, 3_000_000),
    ],
)
def test_an_alias_is_converted_to_its_column(
    tmp_path: Path,
    generator: Generators,
    header: str,
    row: str,
    seconds: float,
    download: float,
    upload: float,
) -> None:
    path = write(tmp_path, f"device_id,{header}\n7,{row}\n")
    fleet = read_device_table(path).draw(1, generator())
    assert fleet.seconds_per_sample[0] == pytest.approx(seconds)
    assert fleet.download_bytes_per_s[0] == download
    assert fleet.upload_bytes_per_s[0] == upload
    assert fleet.latency_s[0] == 0


def test_whole_milliseconds_are_to_the_bit_the_seconds_that_one_would_write(
    tmp_path: Path, generator: Generators
) -> None:
    speeds, rows = "download_bytes_per_s,upload_bytes_per_s", range(1, 2000)
    in_ms = "".join(f"{number},{number},1,1,{number}\n" for number in rows)
    in_s = "".join(f"{number},{number / 1000},1,1,{number / 1000}\n" for number in rows)
    milliseconds = write(tmp_path, f"device_id,ms_per_sample,{speeds},latency_ms\n{in_ms}")
    seconds = write(tmp_path, f"device_id,seconds_per_sample,{speeds},latency_s\n{in_s}", "seconds.csv")
    fleet, plain = (read_device_table(path).draw(3000, generator()) for path in (milliseconds, seconds))
    assert fleet.seconds_per_sample.tobytes() == plain.seconds_per_sample.tobytes()
    assert fleet.latency_s.tobytes() == plain.latency_s.tobytes()


HEADER = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "phones.csv: is empty"),
        (HEADER + "\n", "phones.csv: has no rows"),
        ("device_id,seconds_per_sample\n1,2\n", "column 'download_bytes_per_s' is missing"),
        (
            HEADER.replace("device_id", "id") + "\n1,2,3,4\n",
            "column 'device_id' is missing; it has id, seconds_",
        ),
        (HEADER.replace("device_id,", "") + "\n2,3,4\n", "column 'device_id' is missing"),
        (HEADER + ",latncy_s\n1,2,3,4,5\n", "unknown column 'latncy_s'; did you mean 'latency_s'?"),
        (
            HEADER + ",latency\n1,2,3,4,5\n",
            "unknown column 'latency'; did you mean one of 'latency_ms', 'latency_s', by its unit?",
        ),
        (HEADER.upper() + "\n1,2,3,4\n", "unknown column 'DEVICE_ID'; did you mean 'device_id'?"),
        (
            HEADER.replace(",", ", ") + "\n1,2,3,4\n",
            "unknown column ' seconds_per_sample'; did you mean 'seconds_per_sample'?",
        ),
        (
            HEADER.replace("seconds_per_sample", "compute_ms") + "\n1,2,3,4\n",
            "unknown column 'compute_ms'; did you mean 'compute_ms_per_sample'?",
        ),
        (
            HEADER + ",ms_per_sample\n1,2,3,4,5\n",
            "'seconds_per_sample' and 'ms_per_sample' both give seconds_per_sample; keep one",
        ),
        (HEADER + ",latency_ms\n1,2,3,4,-1\n", "row 1: latency_ms = -1 must be at least 0"),
        (
            HEADER.replace("seconds", "ms") + "\n1,1e13,3,4\n",
            "row 1: ms_per_sample = 1e+13 must lie between 1e-12 and 1e+12",
        ),
        (HEADER + ",bandwidth_kbps\n1,2,3,4,5\n", "unknown column 'bandwidth_kbps'"),
        (
            HEADER + ",download_kbps\n1,2,3,4,5\n",
            "'download_bytes_per_s' and 'download_kbps' both give download_bytes_per_s; keep one",
        ),
        (
            "device_id,compute_ms_per_sample,bandwidth_kibit_per_s,upload_kbps\n1,2,3,4\n",
            "'bandwidth_kibit_per_s' and 'upload_kbps' both give upload_bytes_per_s; keep one",
        ),
        (HEADER + "\n1,2,3,4\n2,-2,3,4\n", "row 2: seconds_per_sample = -2 must be greater than 0"),
        (HEADER + "\n1,2,0,4\n", "row 1: download_bytes_per_s = 0 must be greater than 0"),
        (HEADER + "\n1,2,3,4\n2,2,3,nan\n", "row 2: upload_bytes_per_s = nan must be a finite number"),
        (HEADER + "\n1,2,3,4\n2,2,,4\n", "row 2: download_bytes_per_s = nan must be a finite number"),
        (HEADER + ",latency_s\n1,2,3,4,-0.1\n", "row 1: latency_s = -0.1 must be at least 0"),
        (HEADER + "\na,2,3,4\nb,2,3,4\na,2,3,4\n", "row 3: device_id 'a' is also in row 1"),
        (HEADER + "\n1,fast,3,4\n", "column 'seconds_per_sample' must hold numbers"),
    ],
)
def test_a_table_that_breaks_a_rule_is_refused_by_file_row_and_rule(
    tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataFileError) as error:
        read_device_table(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_further_columns_are_kept_and_named(tmp_path: Path) -> None:
    further = "device_name,device_model,os,brand,ram_gb,cores,soc,country,price_usd,network,battery,notes"
    row = ",".join("x" for _ in further.split(","))
    profile = read_device_table(write(tmp_path, f"{HEADER},{further}\n1,2,3,4,{row}\n"))
    assert profile.ids.notes == (f"not read: {further.replace(',', ', ')}",)
    assert profile.devices.latency_s.tolist() == [0]


def parquet(path: Path, about: dict[str, str]) -> Path:
    columns = {name: [1.0] for name in HEADER.split(",")}
    pq.write_table(pa.table(columns).replace_schema_metadata(about), path)
    return path


def test_the_metadata_of_a_parquet_file_names_the_reference_model(tmp_path: Path) -> None:
    about = {"reference_model": "LeNet", "reference_flops": "8e5", "source": "a bench"}
    profile = read_device_table(parquet(tmp_path / "lenet.parquet", about))
    assert (profile.name, profile.reference_model) == ("lenet", "LeNet")
    assert (profile.reference_flops, profile.source) == (8e5, "a bench")


def test_a_csv_has_no_reference_model(tmp_path: Path) -> None:
    profile = read_device_table(write(tmp_path, PHONES))
    assert profile.reference_model is None
    assert profile.reference_flops is None
    assert profile.source == "the table phones.csv"


def test_reference_flops_that_are_no_positive_number_are_refused(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", {"reference_flops": "many"})
    with pytest.raises(DataFileError, match="reference_flops = 'many' must be a number above 0"):
        read_device_table(path)
