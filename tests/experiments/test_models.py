"""The models that a run leaves have the accuracy of its log in one's own class; a run starts from one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import driftscale
from experiments.build import World, build_world
from experiments.config import Experiment
from experiments.locating import locator
from tests.executor.modules.foreign import BNMLP
from tests.experiments.small import small
from traces.trace import TraceStream

MODULE = "tests.executor.modules.foreign:BNMLP"
MODEL = {"kind": MODULE, "d_in": 64, "n_classes": 10, "hidden": 8}
ARMS: dict[str, dict[str, Any]] = {
    "one": {},
    "clusters": {"clusterer": {"kind": "fielding", "max_clusters": 3}},
    "head": {"solver": [{"kind": "personal_layers", "keep": "head"}, "sgd"]},
    "kept": {"training": {"batch_norm": "kept"}},
    "ditto": {"solver": ["ditto", "sgd"]},
    "buffered": {"aggregator": "fedbuff", "pacing": {"kind": "buffered", "buffer": 2, "concurrency": 4}},
    "alone": {"adaptation": "alone"},
}


def configured(arm: dict[str, Any], **changes: Any) -> Experiment:
    rounds = {"rounds": 7, "over_commit": 1}
    return small(
        training={"model": MODEL, "local_steps": 5}, round=rounds, arm=[{"name": "a", **arm}], **changes
    )


def run(experiment: Experiment, out: Path) -> driftscale.Results:
    return driftscale.run(experiment.resolved(), out=out)


def last_record(out: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((out / "a" / "seed-0" / "log.jsonl").read_text().splitlines()[-1])
    return record


def accuracies(modules: dict[int, nn.Module], world: World) -> list[float]:
    """The accuracy of each client's module on its own test samples at the end, as anybody computes it."""
    stream = TraceStream(world.trace)
    stream.advance_to_round(6)
    found = []
    for client, module in modules.items():
        rows = stream.held(np.array([client]), "test").rows(0)
        if len(rows) and stream.holding[client]:
            features, labels = torch.from_numpy(world.trace.features(rows)), world.trace.labels(rows)
            with torch.no_grad():
                found.append(float((module(features).argmax(1).numpy() == labels).mean()))
    return found


def loaded(state: dict[str, torch.Tensor]) -> nn.Module:
    module = BNMLP(64, 10, 8)
    module.load_state_dict(state, strict=True)
    return module.eval()


@pytest.mark.parametrize("name", ARMS)
def test_a_model_has_outside_the_accuracy_that_the_log_says(name: str, tmp_path: Path) -> None:
    experiment = configured(ARMS[name])
    results, record = run(experiment, tmp_path / "out"), last_record(tmp_path / "out")
    world = build_world(experiment, 0, locator(None, None))
    clients = range(world.trace.num_clients)
    modules = {client: loaded(results.model("a", 0, client=client)) for client in clients}
    logged = record["personal_accuracy"] if name in ("head", "kept", "ditto") else record["accuracy"]
    assert float(np.mean(accuracies(modules, world))) == pytest.approx(logged, abs=1e-12)
