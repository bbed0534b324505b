"""Twelve files as other programs write them, each read by one command: data, profiles and hours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from device_profiles import read_profile
from device_profiles.table import TableProfile
from emulator.storage.table_paths import Given
from tests.emulator.storage.dialects.writing import FORMS, plain
from tests.experiments.cli.conftest import Driftscale
from traces.availability.intervals import Intervals, IntervalsSettings
from traces.files import ARRIVALS, open_folder

IDS = np.array(["Zoé", "007", "7", "Jörg", "10"])
KINDS = np.array(["down", "left", "up"])
each_form = pytest.mark.parametrize("name", FORMS)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(72)


@each_form
def test_data_are_those_of_a_plain_csv_and_as_many_as_pandas_reads(
    name: str, driftscale: Driftscale, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = pd.DataFrame(
        {
            "device_id": IDS[rng.integers(0, 5, 300)],
            "kind": KINDS[rng.integers(0, 3, 300)],
            "day": rng.integers(0, 8, 300),
            "a": rng.normal(size=300),
            "b": rng.normal(20, 5e6, 300),
        }
    )
    form = FORMS[name]
    path = form.written(frame, tmp_path)
    command = ("traces", "build", "table", "--client", "device_id", "--step", "day", "--label", "kind")
    assert driftscale(*command, "--root", path, "--out", "ours", *form.options(frame)).code == 0
    assert driftscale(*command, "--root", plain(frame, tmp_path), "--out", "plainly").code == 0
    ours, plainly = open_folder(tmp_path / "ours"), open_folder(tmp_path / "plainly")
    assert ours.digests == plainly.digests
    arrivals = pq.read_table(tmp_path / "ours" / ARRIVALS).to_pandas()
    back = form.back(frame, path)
    assert Counter(zip(arrivals.client, arrivals.step, strict=True)) == Counter(
        zip(back.device_id, back.day, strict=True)
    )
    np.testing.assert_allclose(ours.features.values, back[["a", "b"]], rtol=1e-6)


@each_form
def test_a_profile_is_that_of_a_plain_csv(
    name: str, driftscale: Driftscale, tmp_path: Path, rng: np.random.Generator
) -> None:
    frame = pd.DataFrame(
        {
            "device_id": IDS,
            "seconds_per_sample": rng.random(5),
            "download_bytes_per_s": rng.random(5) * 1e7,
            "upload_bytes_per_s": rng.random(5) * 1e6,
        }
    )
    form = FORMS[name]
    path = form.written(frame, tmp_path)
    shown = driftscale("profiles", "check", path, *form.options(frame), "--format", "json")
    assert json.loads(shown.out)["devices"] == len(form.back(frame, path)) == 5
    read = read_profile(path, Given.model_validate(form.given(frame)))
    plainly = read_profile(plain(frame, tmp_path))
    assert isinstance(read, TableProfile)
    assert isinstance(plainly, TableProfile)
    assert read.ids.ids == plainly.ids.ids == sorted(IDS)
    for column in frame.columns[1:]:
        assert getattr(read.devices, column).tobytes() == getattr(plainly.devices, column).tobytes()
        np.testing.assert_allclose(
            np.sort(getattr(read.devices, column)), np.sort(form.back(frame, path)[column]), rtol=1e-14
        )


@each_form
def test_hours_are_those_of_a_plain_csv(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    start = np.sort(rng.random(40) * 1e5)
    frame = pd.DataFrame(
        {"device_id": np.tile(IDS, 8), "start_s": start, "end_s": start + rng.random(40), "period_s": 2e5}
    )
    form = FORMS[name]
    path = form.written(frame, tmp_path)
    settings = {"windows": {"path": str(path), **form.given(frame)}}
    read = Intervals(IntervalsSettings.model_validate(settings)).read(Path)
    plainly = Intervals(IntervalsSettings(windows=plain(frame, tmp_path).as_posix())).read(Path)  # type: ignore[arg-type]
    assert read.ids is not None
    assert plainly.ids is not None
    assert read.ids.ids == plainly.ids.ids == sorted(IDS)
    assert read.period_s.tobytes() == plainly.period_s.tobytes()
    clients = np.arange(5)
    ours, theirs = (
        Intervals(IntervalsSettings.model_validate({"windows": table})).build(
            5, np.random.default_rng(0), Path
        )
        for table in (settings["windows"], str(tmp_path / "plain.csv"))
    )
    for instant in [0.0, *start.tolist()]:
        for query in ("next_online_s", "next_offline_s"):
            found, expected = (getattr(hours, query)(clients, instant) for hours in (ours, theirs))
            assert found.tobytes() == expected.tobytes()
