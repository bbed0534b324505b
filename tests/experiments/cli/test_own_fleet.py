"""A fleet of one's own, from the shell: forty wearers with tables of samples, speeds and hours."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.experiments.cli.conftest import Driftscale

WEARERS = [f"wearer-{number}" for number in range(40)]
DAY_S, NIGHT_S = 86_400, 40_000
RECORDED = "round.log_visits=true"
SPEEDS = "device_id,seconds_per_sample,download_bytes_per_s,upload_bytes_per_s"

CONFIGURATION = """\
name = "wearers"
seeds = [0, 1, 2]

[trace]
source = "file"
folder = "traces/wearers"
rounds_per_step = 4

[devices]
profile = "speeds.csv"
availability = "hours.csv"
model_factor = 1

[training]
model = "linear"
local_steps = 2

[round]
rounds = 8
participants = 4
evaluate_every = 4

[[arm]]
name = "single"
clusterer = "single"
"""


def table(path: str, head: str, rows: Iterable[Iterable[object]]) -> None:
    lines = [head, *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n")


@pytest.fixture
def wearers(driftscale: Driftscale) -> Driftscale:
    """The command, in a folder with the tables; even wearers are slow, and online by night only."""
    samples = [
        (name, day, f"c{(number + k) % 2}", (number + k) % 2 + 0.1 * k)
        for number, name in enumerate(WEARERS)
        for day in range(2)
        for k in range(6)
    ]
    table("samples.csv", "wearer,day,label,x", samples)
    is_slow = {name: number % 2 == 0 for number, name in enumerate(WEARERS)}
    seconds = [(name, 30 + i if is_slow[name] else 1, 1e6, 1e6) for i, name in enumerate(WEARERS)]
    table("speeds.csv", SPEEDS, seconds)
    nights = [(name, *((0, NIGHT_S) if is_slow[name] else (NIGHT_S, DAY_S)), DAY_S) for name in WEARERS]
    table("hours.csv", "device_id,start_s,end_s,period_s", reversed(nights))
    Path("wearers.toml").write_text(CONFIGURATION)
    build = "traces build table --root samples.csv --out traces/wearers --client wearer --step day"
    assert driftscale(*build.split(), "--label", "label").code == 0
    return driftscale


def clients(run: str, seed: int) -> list[dict[str, Any]]:
    return pq.read_table(f"{run}/single/seed-{seed}/clients.parquet").to_pylist()


def speeds() -> Mapping[str, float]:
    with Path("speeds.csv").open() as file:
        return {row["device_id"]: float(row["seconds_per_sample"]) for row in csv.DictReader(file)}


@pytest.mark.slow
def test_by_name_forty_of_forty_wearers_play_on_their_own_device_in_each_seed(wearers: Driftscale) -> None:
    assert wearers("run", "wearers.toml", "--set", "devices.assign=by_name", "--out", "runs/own").code == 0
    for seed in range(3):
        rows = clients("runs/own", seed)
        assert [row["client_name"] for row in rows] == [row["device_id"] for row in rows] == sorted(WEARERS)
        assert {row["client_name"]: row["seconds_per_sample"] for row in rows} == speeds()
    exported = wearers("export", "runs/own", "--to", "csv", "--out", "frames")
    assert exported.code == 0, exported.err
    with Path("frames/clients.csv").open() as file:
        assert {row["client_name"] for row in csv.DictReader(file)} == set(WEARERS)


@pytest.mark.slow
def test_drawn_with_their_hours_no_slow_device_visits_by_day(wearers: Driftscale) -> None:
    longer = ("round.rounds=400", "trace.rounds_per_step=400", "round.evaluate_every=400", RECORDED)
    ran = wearers("run", "wearers.toml", *(f"--set={value}" for value in longer), "--out", "runs/drawn")
    assert ran.code == 0, ran.err
    by_day, by_night = set(), set()
    for seed in range(3):
        device_of = [row["device_id"] for row in clients("runs/drawn", seed)]
        assert device_of != sorted(WEARERS)
        for visit in pq.read_table(f"runs/drawn/single/seed-{seed}/visits.parquet").to_pylist():
            is_day = visit["dispatched_s"] % DAY_S >= NIGHT_S
            (by_day if is_day else by_night).add(speeds()[device_of[visit["client"]]] >= 30)
    assert (by_day, by_night) == ({False}, {True})


@pytest.mark.slow
def test_a_renamed_device_is_refused_with_both_names(wearers: Driftscale) -> None:
    Path("speeds.csv").write_text(Path("speeds.csv").read_text().replace("wearer-7,", "watch-7,"))
    refused = wearers("run", "wearers.toml", "--set", "devices.assign=by_name")
    assert refused.code == 2
    assert "speeds.csv: device_id: 1 of 40 clients have no row, by their names: 'wearer-7'" in refused.error
    assert "ids of no client: 'watch-7'" in refused.error


def test_a_template_has_a_row_for_each_client_and_is_a_profile_once_it_is_filled_in(
    wearers: Driftscale,
) -> None:
    for trace in ("traces/wearers", "wearers.toml"):
        text = wearers("profiles", "template", trace).out
        rows = list(csv.DictReader(io.StringIO(text)))
        assert text.splitlines()[0] == SPEEDS
        assert [row["device_id"] for row in rows] == sorted(WEARERS)
    Path("fleet.csv").write_text(text)
    assert "fleet.csv, row 1: seconds_per_sample = nan" in wearers("profiles", "check", "fleet.csv").error
    Path("fleet.csv").write_text(text.replace(",,,", ",0.5,1000000,500000"))
    assert wearers("profiles", "check", "fleet.csv").code == 0
    own = ("devices.profile=fleet.csv", "devices.assign=by_name")
    assert wearers("check", "wearers.toml", *(f"--set={value}" for value in own)).code == 0


@pytest.mark.slow
def test_wearers_whose_hours_are_empty_are_named(wearers: Driftscale) -> None:
    Path("hours.csv").write_text(
        Path("hours.csv").read_text().replace("wearer-7,40000,86400", "wearer-7,0,0")
    )
    checked = wearers("check", "wearers.toml", "--set", "devices.assign=by_name")
    assert checked.code == 0
    assert (
        "clients that are never online, by devices.availability, take no part: seed 0: 1 of 40 (wearer-7); "
        "seed 1: 1 of 40 (wearer-7); seed 2: 1 of 40 (wearer-7)"
    ) in checked.err
