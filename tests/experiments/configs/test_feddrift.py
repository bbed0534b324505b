"""The shipped configurations of FedDrift's table: their arms, their settings, and that they can be built."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import experiments
from experiments.build import build_parts, build_world
from experiments.config import Experiment, parse_experiment
from experiments.locating import locator
from experiments.reading import load_experiment
from experiments.results.statistics.drift.accuracy import last_evaluations
from experiments.running.plan import plan_run
from experiments.running.runner import run_plan
from tests.experiments.small import Story
from traces.patterns import drift_cells, named_pattern

FOLDER = Path(experiments.__file__).parent / "configs" / "feddrift"
SHORT = ["mnist-2-short", "mnist-4-short", "mnist-l-4-short", "mnist-r-short"]
NAMES = ["circle-2", *SHORT, "sea-2", "sea-4", "sine-2"]
ARMS = (
    "oblivious, driftsurf, kue, aue, aue-pc, window, window-2, weighted-linear, weighted-exp, "
    "adaptive-fedavg, cfl, cfl-w, ifca-t, ifca, ifca-w, feddrift-eager, feddrift, feddrift-c, "
    "feddrift-eager-w, feddrift-w, oracle, oracle-w"
)
SETTINGS_BY_DATA = {  # hidden units, learning rate, delta, pattern
    "sine-2": (4, 0.01, 0.20, "Y"),
    "circle-2": (4, 0.01, 0.10, "Y"),
    "sea-2": (6, 0.01, 0.04, "Y"),
    "sea-4": (6, 0.01, 0.04, "F"),
    "mnist-2-short": (1568, 0.001, 0.10, "Y"),
    "mnist-4-short": (1568, 0.001, 0.10, "F"),
    "mnist-r-short": (1568, 0.001, 0.10, "R"),
    "mnist-l-4-short": (1568, 0.001, 0.10, "F"),
}


@cache
def shipped(name: str) -> Experiment:
    return load_experiment(FOLDER / f"{name}.toml")


@pytest.fixture(params=NAMES)
def experiment(request: pytest.FixtureRequest) -> Experiment:
    return shipped(request.param)


def test_all_eight_configurations_exist_under_their_names() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == NAMES
    assert [shipped(name).name for name in NAMES] == NAMES


def test_each_has_all_methods_in_the_order_of_the_table(experiment: Experiment) -> None:
    assert ", ".join(arm.name for arm in experiment.arm) == ARMS
    assert experiment.seeds == tuple(range(3 if experiment.name in SHORT else 10))


@pytest.mark.slow
def test_the_slowest_method_is_evaluated_before_the_horizon(tmp_path: Path) -> None:
    """KUE trains and scores ten models: without an evaluation by then, it could not be compared."""
    experiment = parse_experiment(
        {
            **shipped("sine-2").resolved(),
            "trace": {
                "source": "concepts",
                "concepts": "sine",
                "pattern": ["0" * 10] * 2,
                "rounds_per_step": 20,
            },
            "round": {"rounds": 20, "participants": 10, "over_commit": 1, "evaluate_every": 20},
            "seeds": [0],
        },
        "sine-2",
    )
    plan = plan_run(experiment, tmp_path / "run", ["kue"], locator(None, None), fresh=False)
    run_plan(plan, Story())
    (run,) = plan.directory.reported_runs()
    assert experiment.report.horizon_s is not None
    assert run.records[-1].closed_s < experiment.report.horizon_s / 2


def shares_outside(experiment: Experiment) -> np.ndarray:
    """(10 steps, 10 clients) the share of each client's test samples with label 1, outside the circle."""
    trace, clients = build_world(experiment, 0, locator(None, None)).trace, range(10)
    tested = [trace.held(np.array(clients), "test", step) for step in range(10)]
    return np.array([[trace.labels(held.rows(client)).mean() for client in clients] for held in tested])


def test_the_constant_answer_scores_85_5_on_circle_2_and_86_1_omitting_drift() -> None:
    # 41 of pattern Y's cells are tested on concept 0, and 59 on concept 1, all ten drift cells among them.
    first, second = 1 - np.pi * 0.15**2, 1 - np.pi * 0.25**2  # the areas outside the circles
    including, omitting = (41 * first + 59 * second) / 100, (41 * first + 49 * second) / 90
    assert (including, omitting) == pytest.approx((0.8552, 0.8609), abs=5e-5)
    outside = shares_outside(shipped("circle-2"))
    # Of 50,000 drawn samples, the share outside has a standard deviation of 0.0016.
    assert outside.mean() == pytest.approx(including, abs=0.005)
    assert outside[~drift_cells(named_pattern("Y"))].mean() == pytest.approx(omitting, abs=0.005)


@pytest.mark.slow
def test_adaptive_fedavg_is_the_constant_answer_on_circle_2_and_window_is_not(tmp_path: Path) -> None:
    """Shortened to 5 rounds per step; Adaptive-FedAvg answers 1 in all evaluations at full length too."""
    shorter = ("trace.rounds_per_step=5", "round.rounds=50", "round.evaluate_every=5")
    overrides = (*shorter, "round.log_client_accuracy=true")
    experiment = load_experiment(FOLDER / "circle-2.toml", overrides, seeds=[0])
    arms = ["adaptive-fedavg", "window"]
    plan = plan_run(experiment, tmp_path / "run", arms, locator(None, None), fresh=False)
    run_plan(plan, Story())
    scored = {run.arm: last_evaluations(run.records) for run in plan.directory.reported_runs()}
    adaptive, window = (np.array([record.client_accuracy for record in scored[arm]]) for arm in arms)
    outside = shares_outside(experiment)
    assert adaptive == pytest.approx(outside)
    assert window[-1].mean() > outside[-1].mean() + 0.02


def test_each_plays_ten_steps_with_all_clients_of_a_hundred_rounds_or_five(experiment: Experiment) -> None:
    resolved, rounds = experiment.resolved(), 5 if experiment.name in SHORT else 100
    samples = 350 if experiment.name == "mnist-l-4-short" else 500
    assert (resolved["trace"]["samples_per_step"], resolved["trace"]["rounds_per_step"]) == (samples, rounds)
    assert (experiment.round.rounds, experiment.round.evaluate_every) == (10 * rounds, min(20, rounds))
    assert (experiment.round.participants, experiment.round.over_commit) == (10, 1)
    assert resolved["trace"]["data_seed"] == 0


@pytest.mark.parametrize("name", SHORT)
def test_the_published_length_can_be_set_as_the_comment_says(name: str) -> None:
    path = FOLDER / f"{name}.toml"
    full = load_experiment(path, re.findall(r"--set (\S+=\S+)", path.read_text().partition('"')[0]))
    resolved = full.resolved()
    assert full.name == name.removesuffix("-short")
    assert (resolved["trace"]["rounds_per_step"], full.round.rounds, full.round.evaluate_every) == (
        100,
        1000,
        20,
    )
    assert full.report.horizon_s == 320_300


def test_the_published_size_of_mnist_l_4_can_be_set_as_its_comment_says() -> None:
    path = FOLDER / "mnist-l-4-short.toml"
    assert shipped("mnist-l-4-short").resolved()["trace"]["concepts"]["reuse"] is False
    published = load_experiment(path, re.findall(r"--set (\S+=\w+)", path.read_text())).resolved()["trace"]
    assert (published["samples_per_step"], published["concepts"]["reuse"]) == (500, True)


def test_each_has_the_settings_of_its_data(experiment: Experiment) -> None:
    hidden, learning_rate, delta, pattern = SETTINGS_BY_DATA[experiment.name]
    resolved = experiment.resolved()
    assert resolved["trace"]["pattern"] == pattern
    arms = {arm["name"]: arm for arm in resolved["arm"]}
    for name, arm in arms.items():
        training, solver = arm["training"], arm["solver"][-1]
        assert (training["local_steps"], training["batch_size"]) == (50, 50)
        model = training["model"]["inner"] if name == "kue" else training["model"]
        assert model == {"kind": "mlp", "hidden": [hidden]}
        if name == "adaptive-fedavg":
            assert solver["kind"] == "sgd"
            assert training["learning_rate"] == (0.1 if experiment.name == "sine-2" else 0.01)
        else:
            assert training["learning_rate"] == learning_rate
            assert (solver["kind"], solver["amsgrad"], solver["weight_decay"]) == ("adam", True, 0.001)
            assert solver["keep"] == "step"
        if name.startswith("feddrift"):
            assert arm["clusterer"]["delta"] == delta
    concepts = 2 if experiment.name.removesuffix("-short").endswith("-2") else 4
    assert {arms[name]["clusterer"]["num_models"] for name in ("ifca", "ifca-t", "ifca-w")} == {concepts}


def test_forms_named_w_use_only_the_newest_step(experiment: Experiment) -> None:
    for arm in experiment.resolved()["arm"]:
        if re.fullmatch(r".*-w|window", arm["name"]):
            assert arm["memory"]["window"] == 1, arm["name"]


def test_published_values_are_those_of_the_paper() -> None:
    published = {name: (shipped(name).resolved()["report"]).get("published") for name in NAMES}
    assert [name for name, values in published.items() if values] == [
        "mnist-2-short",
        "mnist-4-short",
        "sea-2",
        "sine-2",
    ]
    assert published["sine-2"]["accuracy_omitting_drift"]["adaptive-fedavg"] == [74.10, 10.03]
    assert published["sine-2"]["accuracy_including_drift"] == {}
    assert published["mnist-4-short"]["accuracy_omitting_drift"]["feddrift"] == [93.80, 0.08]
    assert published["mnist-4-short"]["accuracy_including_drift"]["feddrift"] == [85.44, 0.08]
    for name in ("mnist-2-short", "mnist-4-short", "sea-2", "sine-2"):
        assert len(published[name]["accuracy_omitting_drift"]) == 22
    assert len(published["sea-2"]["accuracy_including_drift"]) == 18


def test_every_arm_can_be_built(experiment: Experiment) -> None:
    for arm in experiment.arm:
        parts = build_parts(experiment, arm)
        lane, none = np.array([10]), np.array([0])
        assert parts.pacing.opens(parts.pacing.quota(lane), lane, none, none).tolist() == [10]
        assert (len(parts.schedules) == 1) is (arm.name == "adaptive-fedavg")
        assert [rule.build() for rule in arm.solver]
        assert arm.training.model.build()
