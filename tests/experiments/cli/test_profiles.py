from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from emulator.errors import DataFileError, InputError, UnknownNameError
from experiments.cli.profiles import app
from experiments.measuring import script
from tests.experiments.small import write_small
from tests.processes import forked

PHONES = """\
device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s
a,0.1,1000000,500000
b,0.2,1000000,500000
c,0.4,1000000,500000
"""


@pytest.fixture
def phones(tmp_path: Path) -> Path:
    path = tmp_path / "phones.csv"
    path.write_text(PHONES)
    return path


def out(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_list_names_each_profile_its_model_and_its_source() -> None:
    text = out("list")
    for name in ("smartphones", "iot", "datacenter", "uniform"):
        assert name in text
    assert "FedScale client_device_capacity" in text
    assert "MobileNet" in text


def test_list_as_json_has_the_medians_in_the_units_of_the_columns() -> None:
    listed = {row["name"]: row for row in json.loads(out("list", "--format", "json"))}
    assert listed["smartphones"]["medians"]["seconds_per_sample"] == pytest.approx(0.123)
    assert listed["smartphones"]["reference_flops"] == 0.6e9
    assert listed["datacenter"]["reference_model"].startswith("ResNet-50")


def test_show_draws_a_bar_for_each_quantile(phones: Path) -> None:
    lines = out("show", phones).splitlines()
    assert lines[0] == "name: phones"
    assert lines[1] == "reference model: -"
    [p1] = [line for line in lines if line.startswith("seconds_per_sample")]
    [p95] = [line for line in lines if line.strip().startswith("p95")]
    assert "p1" in p1
    assert "0.1" in p1
    assert "0.4" in p95
    assert p95.count("█") == 4 * p1.count("█")
    assert any(line.split() == ["latency_s", "all", "0"] for line in lines)


def test_show_as_json_has_every_quantile(phones: Path) -> None:
    shown = json.loads(out("show", phones, "--format", "json"))
    assert shown["reference_model"] is None
    quantiles = shown["quantiles"]["seconds_per_sample"]
    assert list(quantiles) == ["p1", "p5", "p25", "p50", "p75", "p95", "p99"]
    assert (quantiles["p1"], quantiles["p50"], quantiles["p99"]) == (0.1, 0.2, 0.4)


def test_show_of_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(UnknownNameError, match="choices: datacenter, iot, smartphones, uniform"):
        out("show", "toasters")


def test_check_prints_ok_and_the_counts(phones: Path) -> None:
    assert out("check", phones) == f"ok: {phones}: 3 devices\n"
    assert json.loads(out("check", phones, "--format", "json")) == {
        "ok": True,
        "path": str(phones),
        "name": "phones",
        "devices": 3,
        "notes": [],
    }


def test_check_names_the_columns_that_nothing_reads(phones: Path) -> None:
    lines = phones.read_text().splitlines()
    phones.write_text("\n".join([f"{lines[0]},os,ram_gb", *(f"{line},x,8" for line in lines[1:])]))
    assert out("check", phones) == f"ok: {phones}: 3 devices\nnot read: os, ram_gb\n"
    assert json.loads(out("check", phones, "--format", "json"))["notes"] == ["not read: os, ram_gb"]


def test_check_reads_a_table_as_it_says_and_tells_what_was_left_out(phones: Path) -> None:
    rows = [f"{row};{line}" for row, line in enumerate(PHONES.replace(",", ";").splitlines())]
    phones.write_bytes("\n".join(["# Ger\u00e4te", rows[0][1:], *rows[1:]]).encode("latin-1"))
    assert out("check", phones, "--encoding", "latin-1", "--skip-lines", "1").splitlines()[1:] == [
        "read with ';' between cells and '.' as decimal point: --separator and --decimal override",
        "column 1 has no name, and is left out: pandas' index or R's row names, perhaps",
    ]
    with pytest.raises(InputError, match="--encoding: klingon: Input should be 'utf-8', 'utf-16'"):
        out("check", phones, "--encoding", "klingon")


def test_check_of_a_bad_file_raises_its_error(phones: Path) -> None:
    phones.write_text(PHONES.replace("0.2", "-0.2"))
    with pytest.raises(DataFileError, match="row 2: seconds_per_sample"):
        out("check", phones)
    with pytest.raises(DataFileError, match=r"a table is one of \.csv, .*, or a mixture, a \.toml"):
        out("check", "smartphones")


def test_an_imported_file_is_a_profile_that_can_be_shown(tmp_path: Path) -> None:
    capacity, table = tmp_path / "client_device_capacity", tmp_path / "phones.parquet"
    capacity.write_bytes(pickle.dumps({1: {"computation": 50.0, "communication": 8.0}}, protocol=3))
    assert out("import-fedscale", capacity, "--out", table) == f"{table}: devices of 1 devices, 1 rows\n"
    shown = json.loads(out("show", table, "--format", "json"))
    assert shown["reference_model"] == "MobileNet v2 at 224x224"
    assert shown["quantiles"]["seconds_per_sample"]["p50"] == pytest.approx(0.15)


def test_an_import_prints_how_many_empty_intervals_it_dropped(tmp_path: Path) -> None:
    behaviour, table = tmp_path / "client_behave_trace", tmp_path / "online.parquet"
    entry = {"active": [0, 5, 9], "inactive": [4, 5, 12], "finish_time": 86400}
    behaviour.write_bytes(pickle.dumps({1: entry}, protocol=3))
    text = out("import-fedscale", behaviour, "--out", table)
    assert text.splitlines() == [
        f"{table}: intervals of 1 devices, 2 rows",
        "dropped 1 intervals that end where they start",
    ]
    assert json.loads(out("import-fedscale", behaviour, "--out", table, "--format", "json")) == {
        "kind": "intervals",
        "path": str(table),
        "devices": 1,
        "rows": 2,
        "empty_intervals_dropped": 1,
    }


@pytest.mark.slow
def test_the_commands_import_nothing_heavy_before_they_run() -> None:
    code = (
        "import sys, experiments.cli.profiles; "
        "print([m for m in ('torch', 'sklearn', 'scipy', 'pandas', 'pyarrow', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_device_is_measured_and_its_row_joins_a_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", forked.run)
    monkeypatch.setattr(script, "MODEL", f"\nPAUSE_S = WARM_UP_S = REPEAT_S = 1e-3\n{script.MODEL}")
    measured = ("measure", write_small(tmp_path), "--threads", "1", "--download-mbps", "40")
    ended = CliRunner().invoke(app, [*map(str, measured), "--upload-mbps", "10"])
    assert ended.exit_code == 0, ended.output
    assert "devices.model_factor = 1 and devices.jitter.model = 0" in ended.stderr
    row, fleet = tmp_path / "row.csv", tmp_path / "fleet.csv"
    row.write_text(ended.stdout)
    assert out("add", fleet, row, "--id", "mine") == f"{fleet}: 1 devices\n"
    assert "ok" in out("check", fleet)
    row.write_text(CliRunner().invoke(app, [*map(str, measured)]).stdout)
    with pytest.raises(DataFileError, match="no rates; measure again with --upload-mbps"):
        out("add", fleet, row, "--id", "second")


def test_the_script_of_a_shipped_configuration_has_its_model_layer_by_layer() -> None:
    text = out("script", "digits")
    assert "'1': nn.Linear(in_features=64, out_features=64)" in text
    compile(text, "measure.py", "exec")
