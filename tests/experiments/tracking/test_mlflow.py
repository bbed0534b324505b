"""MLflow runs, in a store in memory that has the few calls we make; in a real one where it is installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from experiments.tracking.base import Point
from experiments.tracking.mlflow import MlflowTracker, address_in_force
from tests.experiments.tracking.fakes import FACTS

POINTS = [Point(0, 0.0, {"accuracy": 0.25}), Point(1, 25.0, {"accuracy": 0.5, "num_clusters": 3.0})]


@dataclass
class StoredRun:
    experiment_id: str
    start_time: int
    tags: Mapping[str, str]
    run_name: str
    params: dict[str, str] = field(default_factory=dict)
    metrics: list[tuple[str, float, int, int]] = field(default_factory=list)
    requests: int = 0
    end: tuple[str, int] | None = None


@dataclass
class Store:
    """What `FakeClient` has stored, by address."""

    experiments: dict[str, str] = field(default_factory=dict)
    runs: dict[str, StoredRun] = field(default_factory=dict)
    created: int = 0


STORES: dict[str, Store] = {}


class FakeClient:
    """The calls of MlflowClient that a tracker makes, with its limits of a request."""

    def __init__(self, tracking_uri: str) -> None:
        self._store = STORES.setdefault(tracking_uri, Store())

    def get_experiment_by_name(self, name: str) -> Any:
        known = self._store.experiments.get(name)
        return None if known is None else SimpleNamespace(experiment_id=known)

    def create_experiment(self, name: str) -> str:
        self._store.experiments[name] = f"experiment {name}"
        return self._store.experiments[name]

    def search_runs(self, experiment_ids: list[str], filter_string: str) -> list[Any]:
        match = re.fullmatch(r"tags\.`(.+)` = '(.+)'", filter_string)
        assert match is not None
        return [
            SimpleNamespace(info=SimpleNamespace(run_id=key))
            for key, run in self._store.runs.items()
            if run.experiment_id in experiment_ids and run.tags[match[1]] == match[2]
        ]

    def delete_run(self, run_id: str) -> None:
        del self._store.runs[run_id]

    def create_run(self, experiment_id: str, start_time: int, tags: Mapping[str, str], run_name: str) -> Any:
        self._store.created += 1
        key = str(self._store.created)
        self._store.runs[key] = StoredRun(experiment_id, start_time, tags, run_name)
        return SimpleNamespace(info=SimpleNamespace(run_id=key))

    def log_batch(
        self,
        run_id: str,
        metrics: Sequence[tuple[str, float, int, int]] = (),
        params: Sequence[tuple[str, str]] = (),
    ) -> None:
        assert len(metrics) <= 1000
        assert len(params) <= 100
        assert all(len(value) <= 6000 for _, value in params)
        run = self._store.runs[run_id]
        run.metrics += metrics
        run.params.update(params)
        run.requests += 1

    def set_terminated(self, run_id: str, status: str, end_time: int) -> None:
        self._store.runs[run_id].end = (status, end_time)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store at an address, which a fake `mlflow` has."""
    parts = {
        "mlflow": {},
        "mlflow.entities": {"Param": lambda *values: values, "Metric": lambda *values: values},
        "mlflow.tracking": {"MlflowClient": FakeClient},
        "mlflow.exceptions": {"MlflowException": type("MlflowException", (Exception,), {})},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://name:secret@example.org:5000/x")
    STORES.clear()
    return STORES.setdefault("https://name:secret@example.org:5000/x", Store())


def track(root: Path, points: list[Point] = POINTS, **changes: Any) -> None:
    tracker = MlflowTracker(root, "export", "mlruns", clock=lambda: 0.0)
    tracker.begun(replace(FACTS, **changes))
    for point in points:
        tracker.round_done(point)
    tracker.ended("finished", {"mean_accuracy": 0.375})


def test_a_run_has_its_rounds_at_their_virtual_times_in_milliseconds(tmp_path: Path, store: Store) -> None:
    track(tmp_path)
    (run,) = store.runs.values()
    assert store.experiments == {"x": "experiment x"}
    assert run.run_name == "global, seed 0"
    assert run.start_time == 1  # MLflow takes 0 for "now"
    assert run.metrics == [
        ("accuracy", 0.25, 1, 0),
        ("accuracy", 0.5, 25000, 1),
        ("num_clusters", 3.0, 25000, 1),
        ("summary_mean_accuracy", 0.375, 25000, 0),
    ]
    assert run.end == ("FINISHED", 25000)
    assert run.params == {"round.rounds": "3", "arm.name": "global"}
    facts = {"version": "0.1.0", "arm": "global", "seed": "0", "directory": "/runs/x"}
    assert {key: run.tags[f"driftscale.{key}"] for key in facts} == facts


def test_a_run_is_replaced_and_another_one_is_not(tmp_path: Path, store: Store) -> None:
    for changes in ({}, {"seed": 1}, {"directory": Path("/runs/y")}, {}, {"seed": 1}):
        track(tmp_path, **changes)
    kept = [(run.tags["driftscale.directory"], run.tags["driftscale.seed"]) for run in store.runs.values()]
    assert sorted(kept) == [("/runs/x", "0"), ("/runs/x", "1"), ("/runs/y", "0")]
    assert all(len(run.metrics) == 4 for run in store.runs.values())


def test_requests_keep_to_the_limits(tmp_path: Path, store: Store) -> None:
    points = [Point(number, 1.0, {f"figure {k}": 1.0 for k in range(300)}) for number in range(10)]
    track(tmp_path, points, settings={f"key {k}": "x" * 7000 for k in range(250)})
    (run,) = store.runs.values()
    assert (len(run.params), len(run.metrics)) == (250, 3001)
    assert run.requests == 3 + 2 + 2 + 1  # parameters; twice four rounds; the rest
    assert run.params["key 0"].endswith("xx (7000 letters)")


def test_an_address_is_shown_without_its_credentials(tmp_path: Path, store: Store) -> None:
    assert address_in_force(tmp_path) == "https://example.org:5000"


@pytest.mark.skipif(find_spec("mlflow") is None, reason="pip install 'driftscale[mlflow]'")
@pytest.mark.filterwarnings("ignore")
def test_a_local_store_is_read_back_by_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    for _ in range(2):
        track(tmp_path)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(tmp_path / "export" / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("x").experiment_id])
    history = client.get_metric_history(run.info.run_id, "accuracy")
    assert [(item.step, item.timestamp, item.value) for item in history] == [(0, 1, 0.25), (1, 25000, 0.5)]
    assert (run.info.status, run.info.start_time, run.info.end_time) == ("FINISHED", 1, 25000)
    assert run.data.params == {"round.rounds": "3", "arm.name": "global"}
