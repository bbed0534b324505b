"""A measured row joins a fleet, or is refused, and the fleet stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_profiles import read_profile
from device_profiles.adding import add_device
from device_profiles.table import TableProfile
from emulator.errors import DataFileError

HEADER = "device_id,seconds_per_sample,sd_of_log,peak_memory_bytes,download_mbps,upload_mbps,latency_ms\n"
ROW = f"{HEADER}vm,0.002,0.03,300000000,40.0,10.0,5.0\n"


@pytest.fixture
def row(tmp_path: Path) -> Path:
    path = tmp_path / "row.csv"
    path.write_text(ROW)
    return path


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return tmp_path / "fleet.csv"


def test_rows_make_a_fleet_that_a_run_reads(fleet: Path, row: Path) -> None:
    assert add_device(fleet, row, "pi, by the window").counts == {"devices": 1}
    row.write_text(ROW.replace("0.002", "0.004"))
    assert add_device(fleet, row, "laptop").counts == {"devices": 2}
    profile = read_profile(fleet)
    assert isinstance(profile, TableProfile)
    assert profile.devices.ids == ["pi, by the window", "laptop"]
    columns = {name: values.tolist() for name, values in profile.devices.columns().items()}
    assert columns == {
        "seconds_per_sample": [0.004, 0.002],  # in the order of ids
        "download_bytes_per_s": [5e6, 5e6],
        "upload_bytes_per_s": [1.25e6, 1.25e6],
        "latency_s": [0.005, 0.005],
    }
    assert "sd_of_log" in " ".join(profile.ids.notes)


def test_columns_may_be_in_another_order(fleet: Path, row: Path) -> None:
    turned = [",".join(reversed(line.split(","))) for line in ROW.replace("vm", "a").splitlines()]
    fleet.write_text("\n".join(turned))
    add_device(fleet, row, "b")
    assert fleet.read_text().splitlines() == [*turned, turned[1].replace(",a", ",b")]


def without(*columns: str) -> str:
    kept = [number for number, name in enumerate(HEADER.strip().split(",")) if name not in columns]
    return "\n".join(",".join(line.split(",")[number] for number in kept) for line in ROW.splitlines())


@pytest.mark.parametrize(
    ("has", "measured", "said"),
    [
        (
            None,
            without("download_mbps", "upload_mbps"),
            "no rates; measure again with --download-mbps and --up",
        ),
        (None, without("upload_mbps"), "row.csv: has no rates; measure again with --upload-mbps"),
        (None, HEADER, "row.csv: has no rows"),
        (None, ROW + ROW.splitlines()[1], "row.csv: has 2 rows"),
        (None, ROW.replace("40.0", "-1"), "fleet.csv, row 1: with this row: download_mbps"),
        (ROW.replace("vm", "new"), ROW, "fleet.csv, row 2: with this row: .*'new'"),
        (
            without("latency_ms"),
            ROW,
            "fleet.csv: its columns .* only one has latency_ms; measure with the opt",
        ),
        (ROW.replace("download_mbps", "download_kbps"), ROW, "only one has download_kbps, download_mbps; "),
        (ROW.replace("seconds_per_sample", "compute_ms_per_sample"), ROW, "compute_ms_per_sample x 3 / 1000"),
        (ROW.replace(",", ";"), ROW, "fleet.csv: must be a .csv in UTF-8, with commas"),
        (None, ROW.replace(",", ";"), "row.csv: must be a .csv in UTF-8, with commas"),
        ("", ROW, "fleet.csv"),
    ],
)
def test_a_row_that_does_not_fit_is_one_line_and_the_fleet_stays(
    fleet: Path, row: Path, has: str | None, measured: str, said: str
) -> None:
    if has is not None:
        fleet.write_text(has)
    row.write_text(measured)
    with pytest.raises(DataFileError, match=said) as refused:
        add_device(fleet, row, "new")
    assert len(str(refused.value).splitlines()) == 1
    assert (fleet.read_text() if fleet.exists() else None) == has


def test_a_missing_row_is_one_line(fleet: Path, tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"none\.csv"):
        add_device(fleet, tmp_path / "none.csv", "new")
    assert not fleet.exists()


def test_a_row_in_another_encoding_is_one_line(fleet: Path, row: Path) -> None:
    row.write_bytes(ROW.replace("vm", "Gerät").encode("latin-1"))
    with pytest.raises(DataFileError, match="in UTF-8, with commas"):
        add_device(fleet, row, "new")


@pytest.mark.parametrize(
    ("name", "said"), [("fleet.parquet", "must be a .csv"), ("none/fleet.csv", "none: no such folder")]
)
def test_a_fleet_is_a_csv_in_a_folder(tmp_path: Path, row: Path, name: str, said: str) -> None:
    with pytest.raises(DataFileError, match=said):
        add_device(tmp_path / name, row, "new")
    assert [*tmp_path.iterdir()] == [row]


def test_blanks_around_cells_do_not_matter(fleet: Path, row: Path) -> None:
    row.write_text(ROW.replace(",", ", "))
    add_device(fleet, row, " a ")
    assert fleet.read_text() == ROW.replace("vm", "a")


def test_a_link_to_a_fleet_is_followed(fleet: Path, row: Path, tmp_path: Path) -> None:
    fleet.write_text(ROW)
    link = tmp_path / "link.csv"
    link.symlink_to(fleet)
    add_device(link, row, "a")
    assert link.is_symlink()
    assert fleet.read_text() == ROW + ROW.splitlines()[1].replace("vm", "a") + "\n"
