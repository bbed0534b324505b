"""`driftscale.open_trace`: features, arrivals, and what clients hold at each step, recounted by pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftscale
from emulator.errors import EmulatorError
from emulator.seeding import RandomStreams
from traces.sources.base import TraceContext
from traces.sources.file import File, FileSettings

DAY = pd.Timedelta(days=1)


def a_frame(num: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "who": rng.choice(["ann", "bob", "cleo", "dora"], num),
            "kind": rng.choice(["up", "down"], num),
            "seen": pd.Timestamp("2024-01-01", tz="UTC") + DAY * rng.integers(0, 70, num),
            "use": rng.choice(["train", "test"], num, p=[0.8, 0.2]),
            "often": rng.integers(0, 3, num),
            "mode": rng.integers(0, 2, num),
        }
    )


def written(frame: pd.DataFrame, **settings: Any) -> driftscale.TraceFolder:
    features = np.arange(2.0 * len(frame)).reshape(-1, 2)
    return driftscale.write_trace("own", features, frame, label="kind", client="who", **settings)


def as_rows(held: pd.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(held[["client", "label", "sample", "arrival"]].itertuples(index=False, name=None))


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("client", [None, "cleo"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_what_clients_hold_at_each_step_is_a_recount_of_the_frame(split: Any, client: str | None) -> None:
    # Nobody sees ann from the third week on: the trace numbers the others from 0, and their names stay.
    frame = a_frame()
    frame = frame[(frame.who != "ann") | (frame.seen < pd.Timestamp("2024-01-15", tz="UTC"))]
    written(frame, time="seen", split="use", count="often")
    folder = driftscale.open_trace("own")
    week = (frame.seen - pd.Timestamp("2024-01-15", tz="UTC")) // (7 * DAY)
    used = frame.assign(sample=(frame.often > 0).cumsum() - 1, arrival=week - 1)[
        (week >= 0) & (frame.often > 0)
    ]
    used = used.rename(columns={"who": "client", "kind": "label"})
    settings = {"step_width": 7, "since": "2024-01-15", "rounds_per_step": 5, "retain_rounds": 10}
    for step in (6, *range(8)):  # two weeks are held, and the first two at the start
        now = used[(used.arrival > step - 2) & (used.arrival <= step) & (used.use == split)]
        now = now[now.client == client] if client else now
        held = folder.held(step, split=split, client=client, **settings)
        assert as_rows(held) == as_rows(now.loc[now.index.repeat(now.often)])


def test_test_samples_that_a_seed_draws_are_those_of_a_run(tmp_path: Path) -> None:
    frame = a_frame()
    folder = written(frame, order="seen")
    (tmp_path / "own" / "arrivals.parquet").unlink()
    # A folder of version 1 without a split, as pandas writes it.
    table = pd.DataFrame({"client": frame.who, "label": frame.kind, "sample": np.arange(len(frame))})
    table.assign(order=table.groupby("client").cumcount()).to_parquet("own/arrivals.parquet")
    (tmp_path / "own" / "trace.toml").write_text("version = 1\n")
    folder = driftscale.open_trace("own")
    assert "split" not in folder.arrivals
    settings = {"step_width": 10, "retain_rounds": 20}
    trace = File(FileSettings.model_validate({"folder": "own", **settings})).build(
        TraceContext(50, RandomStreams(3), Path)
    )
    for step in range(5):
        ranges = trace.held(np.arange(4), "test", step)
        expected = np.concatenate([np.arange(*span) for span in zip(ranges.first, ranges.last, strict=True)])
        held = folder.held(step, split="test", seed=3, **settings)
        assert held["sample"].tolist() == trace.table.take("image", expected).tolist()
    assert set(held["sample"]) != set(folder.held(4, split="test", seed=4, **settings)["sample"])


def test_arrivals_are_those_of_the_file_with_the_names_of_classes() -> None:
    frame = a_frame()
    folder = written(frame, time="seen", split="use", count="often", concept="mode")
    stored = pd.read_parquet("own/arrivals.parquet")
    assert list(folder.arrivals.columns) == list(stored.columns)
    assert (folder.arrivals.label.cat.codes == stored.label).all()
    assert list(folder.arrivals.label.cat.categories) == list(folder.classes) == ["down", "up"]
    for name in ("client", "sample", "time", "split", "count", "concept"):
        assert folder.arrivals[name].tolist() == stored[name].tolist()
    assert folder.arrivals.time.dtype == stored.time.dtype
    of_frame = frame[frame.often > 0].groupby(["who", "kind"]).size()
    assert folder.arrivals.groupby(["client", "label"]).size().tolist() == of_frame.tolist()


def test_features_are_mapped_and_cannot_be_written() -> None:
    folder = written(a_frame(), step=None)
    assert folder.features.tolist() == np.load("own/features.npy").tolist()
    with pytest.raises(ValueError, match="read-only"):
        folder.features[0] = 0
    assert folder.facts["shape"] == [2]
    assert folder.facts["mean"] == pytest.approx(folder.features[folder.held(0)["sample"]].mean(axis=0))


def test_a_folder_shows_who_and_what_and_when_and_the_remarks_of_its_build() -> None:
    folder = written(a_frame(), time="seen", split="use", since="2024-01-20")
    first, *notes = repr(folder).splitlines()
    train, test = (int((folder.arrivals.split == split).sum()) for split in ("train", "test"))
    assert first == (
        f"own: 4 clients, {train} training and {test} test samples of 2 classes, shape (2,); time 2024-01-20 "
        f"to 2024-03-10"
    )
    assert tuple(notes) == folder.notes
    assert notes[0].endswith("were left out by since, until, classes, min_samples, limit or count")
    opened = driftscale.open_trace("own")
    assert repr(opened) == first
    assert opened.settings == {"source": "file", "folder": "own"}
    assert opened.held(1, **opened.settings).equals(folder.held(1))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"step": -1}, "step = -1: must be a whole number from 0 on"),
        ({"step": 0.5}, "step = 0.5: must be a whole number"),
        ({"split": "tests"}, "split = 'tests': must be train or test"),
        ({"client": "zoe"}, "client = 'zoe': no such client; the trace has 'ann', 'bob', 'cleo'"),
        ({"step_wdth": 7}, "held: unknown key 'step_wdth'; choices: "),
        ({"step_width": "week"}, "held: step_width = 'week': must be a number, or input should be"),
        ({"since": 3}, "trace.since = 3: the trace has a column time, so it must be a date"),
        ({"folder": "other"}, "folder = 'other': this is the folder own"),
        ({"step_width": 40, "retain_rounds": 50}, "own/arrivals.parquet: has 2 windows, but clients start"),
    ],
)
def test_bad_arguments_are_one_line(arguments: dict[str, Any], problem: str) -> None:
    folder = written(a_frame(), time="seen")
    with pytest.raises(EmulatorError) as error:
        folder.held(**{"step": 0, **arguments})
    assert str(error.value).startswith(problem)
    assert "\n" not in str(error.value)
    assert error.value.__suppress_context__


def test_what_is_no_trace_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="no such folder"):
        driftscale.open_trace("nowhere")
    with pytest.raises(EmulatorError, match=r"not a trace folder: it has no trace\.toml"):
        driftscale.open_trace(tmp_path)
