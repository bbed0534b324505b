"""Flash, FedNova, FedDyn and FedDC with clients that stop early, in clusters of digits that drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import TrainTasks, Updates
from executor.executor import LocalExecutor
from experiments.build import World, build_emulation, build_executor, build_world
from experiments.config import Experiment
from experiments.locating import locator
from experiments.stopwatch import Stopwatch
from tests.experiments.small import small
from tests.fakes import MemoryLog


class Recording:
    """An executor that takes note of the pairs of client and model of each dispatch, and who remembers."""

    def __init__(self, executor: LocalExecutor) -> None:
        self._executor = executor
        self.pairs: list[dict[tuple[int, int], bool]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> Updates:
        pairs = zip(tasks.client.tolist(), tasks.model.tolist(), strict=True)
        remembers = np.any(
            [np.zeros(len(tasks)), *(rows.any(axis=1) for rows in tasks.state.values())], axis=0
        )
        self.pairs.append(dict(zip(pairs, remembers.tolist(), strict=True)))
        return self._executor.train(tasks, models, start, weights)


def drifting(method: str, clusterer: str) -> Experiment:
    """Eight clients, of which half drift at each of three data steps."""
    clusterers = {
        "fielding": {"kind": "fielding", "max_clusters": 3, "trigger": {"threshold": 0.05}},
        "static": {"kind": "static", "max_clusters": 3},
    }
    halves = [method] if method in ("feddyn", "feddc") else []
    arm = {
        "name": "only",
        "clusterer": clusterers[clusterer],
        "solver": [*halves, {"kind": "early_stopping", "gamma": 0.05}, "sgd"],
        "aggregator": method,
        "training": {"local_epochs": 3},
    }
    drift = {"kind": "label_mix", "move_probability": 0.5}
    return small(trace={"clients": 8, "drift": drift}, round={"rounds": 6}, arm=[arm])


@pytest.fixture(scope="module")
def world() -> World:
    """That of all arms, which differ in nothing else."""
    return build_world(drifting("fednova", "static"), 0, locator(None, None))


@pytest.mark.parametrize("clusterer", ["fielding", "static"])
@pytest.mark.parametrize("method", ["flash", "fednova", "feddyn", "feddc"])
def test_a_method_plays_to_the_end_and_what_clients_remember_ends_with_its_model(
    method: str, clusterer: str, world: World
) -> None:
    """A client remembers what it has learned with a model, and nothing of one that has replaced it."""
    experiment, log = drifting(method, clusterer), MemoryLog()
    [arm] = experiment.arm
    executor = Recording(build_executor(experiment, arm, world))
    emulation = build_emulation(experiment, arm, world, executor, log, (), Stopwatch())
    emulation.run()
    records, bank = log.records, emulation.coordinator.federation.bank
    assert len(records) == len(executor.pairs) == 6
    assert any(record.reclustered for record in records) == (clusterer == "fielding")
    completed: set[tuple[int, int]] = set()
    for record, pairs in zip(records, executor.pairs, strict=True):
        remembering = {pair for pair, remembers in pairs.items() if remembers}
        assert remembering <= completed
        if clusterer == "static" and method in ("feddyn", "feddc"):  # where nobody moves
            assert remembering == completed & pairs.keys()
        completed |= {(client, model) for client, model in pairs if client in record.completed}
        assert record.noted is not None
        assert 1 <= record.noted["epochs"] <= 3
        assert record.noted.get("disparity", 0) > 0 if method == "flash" else "disparity" not in record.noted
    assert np.isfinite(bank.parameters).all()
    models = {model for pairs in executor.pairs for _, model in pairs}
    assert len(models) > 3 if clusterer == "fielding" else len(models) == 3
    remembers = any(any(pairs.values()) for pairs in executor.pairs)
    assert remembers == (method in ("feddyn", "feddc"))
