"""Runs of every objective come to the same bytes with stops, kills, threads and ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import driftscale
from emulator.storage.runlog import read_log
from executor.objectives import OBJECTIVES
from experiments.build import build_world
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from tests.executor.meeting import together
from tests.experiments import own_objective
from tests.experiments.small import SMALL, merged
from tests.reliability.kills import Killing
from tests.reliability.replaying import SMALL_GROUPS, play_by_ranks
from tests.reliability.stops import Stopped

TEXTS = {"source": "markov_text", "clients": 8, "length": 6, "texts": 20, "rounds_per_step": 2}
TARGETS = {"source": "file", "folder": "targets", "rounds_per_step": 2, "retain_rounds": 4}
LSTM = {"kind": "char_lstm", "embedding": 3, "hidden": 4, "layers": 1}
MLP = {"kind": "mlp", "hidden": [4]}

KINDS: Mapping[str, tuple[Any, Mapping[str, Any], Mapping[str, Any]]] = {
    "next_token": ("next_token", TEXTS, LSTM),
    "multi_label": ("multi_label", TARGETS, MLP),
    "squared_error": ({"kind": "squared_error", "tolerance": 0.3, "unit": "MW"}, TARGETS, MLP),
    "absolute_error": ({"kind": "absolute_error", "tolerance": 0.3}, TARGETS, MLP),
    "own": (f"{own_objective.__name__}:Still", SMALL["trace"], MLP),
}
"""The objective, the trace and the model of a run of each kind."""


def experiment(kind: str, **changes: Any) -> Experiment:
    """A run of clusters by gradients, after whose rounds clients are scored, too."""
    objective, trace, model = KINDS[kind]
    table = {
        **SMALL,
        "trace": trace,
        "training": {"objective": objective, "model": model, "local_steps": 2, "batch_size": 4},
        "round": {"rounds": 6, "participants": 4, "evaluate_every": 2},
        "arm": [{"name": kind, "clusterer": {"kind": "ifca", "num_models": 2}, "memory": "claimed"}],
    }
    return parse_experiment(merged(merged(table, SMALL_GROUPS), changes), kind)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace `targets`: three numbers of 0 or 1 of each sample, which features tell."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    features = rng.standard_normal((320, 5)).astype(np.float32)
    columns = {"client": np.arange(320) % 8, "step": np.arange(320) // 80}
    targets = (features[:, :3] + features[:, 2:] > 0).astype(np.float32)
    driftscale.write_trace(
        folder / "targets", features, columns, client="client", step="step", targets=targets
    )
    return folder


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stopped]:
    """The run of a kind, played at once in one process by one thread."""

    @cache
    def whole(kind: str) -> Stopped:
        of_kind = experiment(kind)
        world = build_world(of_kind, 0, locator(data, None))
        run = Stopped(of_kind, world, tmp_path_factory.mktemp("whole"))
        run.play()
        return run

    return whole


def test_every_objective_but_labels_is_run() -> None:
    """Labels are those of all other files."""
    assert {*KINDS, "labels"} == {*OBJECTIVES.names(), "own"}


def test_an_objective_of_ones_own_about_labels_is_what_trains_scores_and_evaluates(
    whole: Callable[[str], Stopped],
) -> None:
    header, records = read_log(whole("own").log_path)
    assert header["objective"] == {"kind": KINDS["own"][0], "word": "quarters"}
    assert header["strategy"] == "stacked"
    of_rounds = [(record.train_loss, record.loss, record.accuracy) for record in records]
    assert of_rounds == [(2, None, None), (2, 2, 0.25)] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_stops_and_threads_change_no_byte(kind: str, whole: Callable[[str], Stopped], tmp_path: Path) -> None:
    draw, at_once = np.random.default_rng(0), whole(kind)
    by_two = experiment(kind, executor={"threads": 2})
    run = Stopped(by_two, at_once.world, tmp_path)
    log = run.play_with_stops(lambda: int(draw.integers(1, 6)), lambda: int(draw.integers(0, 6)))
    assert (log, run.kept) == (at_once.log, at_once.kept)
    assert run.resumes > 3
    assert run.notes == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_change_no_byte(kind: str, whole: Callable[[str], Stopped], tmp_path: Path) -> None:
    at_once = whole(kind)
    played = together(2, lambda ranks: play_by_ranks(ranks, at_once.experiment, at_once.world, tmp_path))
    assert played == [at_once.kept, None]
    assert (tmp_path / kind / "seed-0" / "log.jsonl").read_bytes() == at_once.log


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["next_token", *(pytest.param(kind, marks=pytest.mark.sweep) for kind in [*KINDS][1:])]
)
def test_a_kill_changes_no_byte(
    kind: str, whole: Callable[[str], Stopped], data: Path, tmp_path: Path
) -> None:
    config, out = tmp_path / "run.toml", tmp_path / "out"
    config.write_text(tomli_w.dumps(experiment(kind).resolved()))
    killed = Killing(config, out, "--data", str(data))
    killed.kill_at_random(1, 6, np.random.default_rng(0))
    assert killed.kills == 1
    assert any("resuming from round" in stderr for stderr in killed.stderr)
    assert (out / kind / "seed-0" / "log.jsonl").read_bytes() == whole(kind).log
