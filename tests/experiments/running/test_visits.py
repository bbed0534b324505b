"""The visits of whole runs: they reproduce what the log says of each round, and a stop changes no byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from emulator.errors import ResumableError
from emulator.storage import visit_log
from emulator.storage.recorded_tables import CLIENTS, CLIENTS_OF_MODEL, OUTCOMES, PHASES, VISITS
from experiments.build import build_world
from experiments.config import Experiment
from experiments.locating import locator
from experiments.results.reading.run_directory import RunDirectory
from tests.experiments.running.played import play
from tests.experiments.small import DEVICES, WINDOWS, small
from tests.reliability.stops import Stopped

FAULTS = {"crash": 0.2, "loss": 0.1}
POOLED = {"kind": "sync", "close": "pooled"}
SETTINGS: dict[str, dict[str, Any]] = {
    "over-commitment": {"round": {"over_commit": 1.7, "participants": 5}},
    "clusters": {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "max_clusters": 3}}]},
    "faults": {"faults": FAULTS, "round": {"over_commit": 2.0}},
    "jitter": {
        "devices": {"jitter": {"compute": 0.3, "network": 0.5, "model": 0.2}},
        "faults": FAULTS,
        "round": {"over_commit": 1.5},
    },
    "deadline": {"arm": [{"name": "a", "pacing": {"kind": "sync", "deadline_s": 2.0}}]},
    "pooled": {"arm": [{"name": "a", "clusterer": "fielding", "pacing": POOLED}]},
}

BUFFERED = {"arm": [{"name": "a", "clusterer": "fielding", "pacing": {"kind": "buffered", "buffer": 1}}]}
"""Server steps of one visit."""


def logging(changes: dict[str, Any], folder: Path, rounds: int = 8) -> Experiment:
    """A small experiment that logs its visits, of phones that are slow, come and go, and are of a table."""
    (folder / "phones.csv").write_text(DEVICES)
    (folder / "online.csv").write_text(WINDOWS)
    devices = {"profile": str(folder / "phones.csv"), "availability": str(folder / "online.csv")}
    devices |= changes.get("devices", {})
    arms = {"arm": [{"name": "a"}], **changes}
    round_ = {"rounds": rounds, "participants": 4, "log_visits": True, **changes.get("round", {})}
    return small(**{**arms, "devices": devices, "round": round_})


@pytest.mark.parametrize("changes", SETTINGS.values(), ids=SETTINGS)
def test_visits_reproduce_the_end_the_clients_and_the_bytes_of_every_round(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    experiment = logging(changes, tmp_path)
    play(experiment, tmp_path / "out", tmp_path)
    directory = RunDirectory(tmp_path / "out")
    run, visits = directory.read_run("a", 0), directory.read_visits("a", 0)
    assert visits is not None
    assert visits.schema.equals(VISITS)
    assert visits["visit"].to_pylist() == list(range(len(visits)))
    download_bytes = upload_bytes = 0.0
    for record in run.records:
        rows = visits.filter(pc.equal(visits["round"], record.round))
        column = {name: np.array(rows[name].to_pylist()) for name in VISITS.names if name != "models"}
        outcome, client, end_s = column["outcome"], column["client"], column["end_s"]
        assert client.tolist() == record.participants
        assert client[outcome == "completed"].tolist() == record.completed
        assert client[outcome == "dropped"].tolist() == record.dropped
        assert client[column["crashed"]].tolist() == record.crashed
        assert (outcome == "abandoned").sum() == record.abandoned
        assert set(column["dispatched_s"].tolist()) == {record.dispatched_s}
        deadline_s = experiment.arm[0].pacing.settings.model_dump().get("deadline_s")
        if deadline_s is None or end_s.max() >= record.dispatched_s + deadline_s:
            assert end_s.max() == record.closed_s
        else:  # all visits have ended, and the pacing waits no longer
            assert end_s.max() <= record.closed_s <= record.dispatched_s + deadline_s
        planned_s = column["dispatched_s"] + column["requests_s"]
        planned_s = planned_s + (column["download_s"] + column["compute_s"] + column["upload_s"])
        completed = outcome == "completed"
        assert end_s[completed].tolist() == planned_s[completed].tolist()
        assert (end_s <= planned_s).all()
        download_bytes += float(np.sum(column["download_bytes"]))
        upload_bytes += float(np.sum(column["upload_bytes"]))
        assert download_bytes == record.download_bytes
        assert upload_bytes == record.upload_bytes
        assert set(np.concatenate(rows["models"].to_pylist()).tolist()) <= set(record.clusters)
    outcomes = set(visits["outcome"].to_pylist())
    assert "completed" in outcomes <= set(OUTCOMES)


@pytest.mark.parametrize("changes", [SETTINGS["jitter"], BUFFERED], ids=["jitter", "buffered"])
@pytest.mark.parametrize("rows_of_batch", [5, 1000])
def test_a_run_that_is_stopped_after_every_step_has_the_same_visits_to_the_last_byte(
    changes: dict[str, Any], rows_of_batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit_log, "ROWS_OF_BATCH", rows_of_batch)
    experiment = logging(changes, tmp_path)
    world = build_world(experiment, 0, locator(tmp_path, None), tmp_path)
    once, often = (Stopped(experiment, world, tmp_path / name) for name in ("once", "often"))
    once.play()
    often.play_with_stops(steps=lambda: 3, lost=lambda: 2)
    assert often.resumes > 3
    streams = [stopped.directory.run_file("a", 0, "visits.arrow").read_bytes() for stopped in (once, often)]
    assert streams[0] == streams[1]


def test_clients_have_the_row_of_their_device_in_the_table_of_the_profile(tmp_path: Path) -> None:
    experiment = logging({}, tmp_path, rounds=2)
    play(experiment, tmp_path / "out", tmp_path)
    directory = RunDirectory(tmp_path / "out")
    clients, visits = directory.read_clients("a", 0), directory.read_visits("a", 0)
    assert clients is not None
    assert visits is not None
    assert clients.schema.equals(CLIENTS)
    seconds = [0.01, 0.02, 0.05, 0.10, 0.15]  # of the table's rows
    devices = clients["device"].to_pylist()
    assert [seconds[device] for device in devices] == clients["seconds_per_sample"].to_pylist()
    assert sorted(set(devices)) == [0, 1, 2, 3, 4]
    of_visits = [devices[client] for client in visits["client"].to_pylist()]
    assert visits["device"].to_pylist() == of_visits


def test_arms_of_one_model_have_the_same_device_factors_and_the_log_names_the_deviations(
    tmp_path: Path,
) -> None:
    arms = [{"name": "a"}, {"name": "median", "aggregator": "median"}, {"name": "mlp"}]
    arms[2]["training"] = {"model": {"kind": "mlp", "hidden": [4]}}  # type: ignore[assignment]
    experiment = logging({"arm": arms, "devices": {"jitter": {"model": 0.4}}}, tmp_path, rounds=1)
    play(experiment, tmp_path / "out", tmp_path)
    directory = RunDirectory(tmp_path / "out")
    factors = {}
    for arm in ("a", "median", "mlp"):
        clients = directory.read_clients(arm, 0)
        assert clients is not None
        assert clients.schema.equals(CLIENTS_OF_MODEL)
        factors[arm] = clients["device_factor"].to_pylist()
        jitter = {"compute": 0.0, "network": 0.0, "model": 0.4}
        assert directory.read_run(arm, 0).header["jitter"] == jitter
    assert factors["a"] == factors["median"]
    assert not set(factors["a"]) & set(factors["mlp"])


def test_a_run_without_the_option_has_no_visits_and_the_same_log(tmp_path: Path) -> None:
    with_visits = logging({}, tmp_path, rounds=3)
    without = with_visits.model_copy(
        update={"round": with_visits.round.model_copy(update={"log_visits": False})}
    )
    for experiment, name in ((with_visits, "with"), (without, "without")):
        play(experiment, tmp_path / name, tmp_path)
    first, second = RunDirectory(tmp_path / "with"), RunDirectory(tmp_path / "without")
    assert (
        first.run_file("a", 0, "log.jsonl").read_bytes() == second.run_file("a", 0, "log.jsonl").read_bytes()
    )
    assert first.read_visits("a", 0) is not None
    assert second.read_visits("a", 0) is None
    assert not first.run_file("a", 0, "visits.arrow").exists()


def test_an_error_of_the_log_of_visits_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("experiments.running.attempt.write_visits", unreadable)
    with pytest.raises(ResumableError, match=r"visits\.arrow.*Input/output error"):
        play(logging({}, tmp_path, rounds=1), tmp_path / "out", tmp_path)


def test_phases_are_in_the_order_in_which_they_happen() -> None:
    assert [name for name in VISITS.names if name in PHASES] == list(PHASES)
