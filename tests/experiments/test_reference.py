from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from emulator.errors import ConfigurationError
from executor.flops import forward_flops
from experiments import reference
from experiments.build import World, build_executor, build_world, run_header
from experiments.checks import arms as arms_module
from experiments.checks.arms import check_arms
from experiments.config import Experiment
from experiments.locating import locator
from experiments.reference import build_measuring, build_reference
from tests.experiments.small import small


def reporting(*representations: Any, **more: Any) -> Experiment:
    """An experiment with an arm of Fielding for each representation."""
    arms = [
        {"name": f"arm{number}", "clusterer": {"kind": "fielding"}, "representation": representation}
        for number, representation in enumerate(representations)
    ]
    return small(arm=arms, **more)


def world(experiment: Experiment, seed: int = 0) -> World:
    return build_world(experiment, seed, locator(None, None))


SHORT = {"epochs": 2, "per_label": 4}


def test_a_reference_model_is_trained_on_rows_that_clients_hold_at_step_0_with_their_labels() -> None:
    experiment = reporting({"kind": "embedding", **SHORT})
    shared = world(experiment)
    built = build_reference(experiment, experiment.arm[0], shared)
    assert built is not None
    rows = shared.trace.reference_rows(4)
    assert built.samples.tolist() == np.bincount(shared.trace.labels(rows), minlength=10).tolist()
    assert (built.samples <= 4).all()
    trainer = build_executor(experiment, experiment.arm[0], shared)
    by_hand = trainer.pretrained(rows, epochs=2, batch_size=20, learning_rate=0.01)
    assert np.array_equal(built.parameters, by_hand)


def test_arms_of_one_seed_share_a_reference_model_and_other_seeds_have_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = reporting({"kind": "embedding", **SHORT}, {"kind": "gradient", "sketch": 5, **SHORT})
    shared = world(experiment)
    first = build_reference(experiment, experiment.arm[0], shared)
    monkeypatch.setattr(type(shared.trace), "reference_rows", None)  # nothing is trained again
    second = build_reference(experiment, experiment.arm[1], shared)
    monkeypatch.undo()
    other = build_reference(experiment, experiment.arm[0], world(experiment, 1))
    assert first is not None
    assert second is not None
    assert other is not None
    assert first.parameters is second.parameters
    assert not np.array_equal(first.parameters, other.parameters)


def test_arms_of_one_model_are_checked_with_one_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = reporting("label", {"kind": "gradient", "at": "global"}, "label")
    shared, built = world(experiment), []
    build = arms_module.build_executor
    monkeypatch.setattr(arms_module, "build_executor", lambda *args: built.append(args) or build(*args))
    check_arms(experiment, [arm.name for arm in experiment.arm], shared)
    assert len(built) == 1


@pytest.mark.parametrize("representation", ["label", {"kind": "gradient", "at": "global"}])
def test_reports_that_need_no_reference_model_have_none(representation: Any) -> None:
    experiment = reporting(representation)
    assert build_reference(experiment, experiment.arm[0], world(experiment)) is None


def test_an_arm_in_which_no_part_needs_reports_trains_no_reference_model() -> None:
    experiment = small(parts={"representation": "embedding"})
    assert build_reference(experiment, experiment.find_arm("global"), world(experiment)) is None


def test_a_model_of_its_own_costs_as_much_longer_as_it_has_flops() -> None:
    own = {"kind": "mlp", "hidden": [50]}
    experiment = reporting({"kind": "gradient", "model": own, **SHORT}, {"kind": "gradient", **SHORT})
    shared = world(experiment)
    other, same = (build_reference(experiment, arm, shared) for arm in experiment.arm)
    assert other is not None
    assert same is not None
    assert same.cost == 1
    arm = experiment.arm[0]
    spec = arm.reference_model(arm.representation.build().reference).build()
    linear = arm.training.model.build()
    assert other.cost == forward_flops(spec, (8, 8), 10) / forward_flops(linear, (8, 8), 10)
    assert len(other.parameters) == 64 * 50 + 50 + 50 * 10 + 10


def test_the_header_of_the_log_has_the_samples_of_each_label() -> None:
    experiment = reporting({"kind": "embedding", **SHORT})
    shared, arm = world(experiment), experiment.arm[0]
    built = build_reference(experiment, arm, shared)
    assert built is not None
    header = run_header(experiment, arm, shared, build_executor(experiment, arm, shared), built)
    assert header["reference"] == {"per_label": 4, "samples": built.samples.tolist()}


EMBEDDED = {"kind": "embedding", "model": {"kind": "mlp", "hidden": [3]}, **SHORT}


def test_the_header_states_in_what_the_distance_of_clients_is_unless_it_is_label_shares() -> None:
    experiment = reporting("label", round={"client_distance": EMBEDDED})
    shared, arm = world(experiment), experiment.arm[0]
    measuring = build_measuring(experiment, arm, shared)
    assert measuring is not None
    executor = build_executor(experiment, arm, shared)
    header = run_header(experiment, arm, shared, executor, None, measuring)
    assert header["client_distance"] == {
        "kind": "embedding",
        "distance": "squared_euclidean",
        "reference": {"per_label": 4, "samples": measuring.samples.tolist()},
    }
    plain = reporting("label")
    assert build_measuring(plain, arm, shared) is None
    assert "client_distance" not in run_header(plain, arm, shared, executor)


def test_reports_and_the_distance_of_clients_share_a_reference_model() -> None:
    experiment = reporting(EMBEDDED, round={"client_distance": EMBEDDED})
    shared, arm = world(experiment), experiment.arm[0]
    reported, measuring = build_reference(experiment, arm, shared), build_measuring(experiment, arm, shared)
    assert reported is not None
    assert measuring is not None
    assert reported.parameters is measuring.parameters


@pytest.mark.parametrize(
    ("measure", "problem"),
    [
        (
            "embeding",
            r"round\.client_distance = 'embeding': unknown representation .*did you mean 'embedding'",
        ),
        (
            {"kind": "gradient", "at": "global"},
            r'round\.client_distance: at = "global": must be "frozen", since a measure at the present models',
        ),
        ({"kind": "embedding", "model": "vit"}, r"round\.client_distance: .*unknown model 'vit'"),
    ],
)
def test_a_measure_that_cannot_be_is_refused(measure: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        reporting("label", round={"client_distance": measure})


def test_a_measure_that_does_not_fit_the_model_is_refused() -> None:
    experiment = reporting("label", round={"client_distance": {"kind": "gradient", "sketch": 1000}})
    with pytest.raises(ConfigurationError, match=r"round\.client_distance: .*must not be above the 650"):
        check_arms(experiment, ["arm0"], world(experiment))


def at_round(first: int, representation: Any, **more: Any) -> Experiment:
    arm = {"name": "a", "clusterer": {"kind": "static", "at_round": first}, "representation": representation}
    return small(arm=[arm], **more)


def test_a_round_after_the_last_cannot_be_that_of_the_clustering() -> None:
    check_arms(at_round(3, "label"), ["a"], world(at_round(3, "label")))
    experiment = at_round(4, "label")
    with pytest.raises(ConfigurationError, match=r"arm 'a': clusterer\.at_round = 4: must be below .* = 4$"):
        check_arms(experiment, ["a"], world(experiment))


def test_gradients_at_the_global_model_of_one_round_need_all_clients() -> None:
    devices = {"availability": {"kind": "diurnal"}}
    refused = at_round(2, {"kind": "gradient", "at": "global"}, devices=devices)
    with pytest.raises(ConfigurationError, match=r"at_round = 2: the reports of clients that are offline"):
        check_arms(refused, ["a"], world(refused))
    for accepted in (
        at_round(2, {"kind": "gradient", "at": "global"}, devices=devices, round={"hear": "everyone"}),
        at_round(2, {"kind": "gradient", "at": "global"}),
        at_round(2, "label", devices=devices),
    ):
        check_arms(accepted, ["a"], world(accepted))


def test_flexcfl_has_at_most_as_many_groups_as_clients_and_needs_the_shares_of_labels() -> None:
    def grouped(num_groups: int, representation: Any) -> Experiment:
        clusterer = {"kind": "flexcfl", "num_groups": num_groups}
        return small(arm=[{"name": "a", "clusterer": clusterer, "representation": representation}])

    clients = world(small()).trace.num_clients
    check_arms(grouped(clients, "label"), ["a"], world(grouped(clients, "label")))
    for refused, problem in (
        (
            grouped(clients + 1, "label"),
            rf"clusterer\.num_groups = {clients + 1}: must be at most {clients}, .*",
        ),
        (grouped(2, {"kind": "gradient"}), r"clusterer\.drift = 'l1': compares .* choices: 'label'"),
    ):
        with pytest.raises(ConfigurationError, match=rf"^arm 'a': {problem}$"):
            check_arms(refused, ["a"], world(refused))


def test_arms_of_different_models_need_one_model_to_measure_with() -> None:
    arms = [{"name": "a"}, {"name": "b", "training": {"model": "mlp"}}]
    experiment = small(arm=arms, round={"client_distance": "embedding"})
    with pytest.raises(ConfigurationError, match=r"arms 'a' and 'b' have different models and would measure"):
        check_arms(experiment, ["a"], world(experiment))
    named = small(arm=arms, round={"client_distance": EMBEDDED})
    check_arms(named, ["a", "b"], world(named))


def test_an_unknown_reference_model_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigurationError, match=r"representation.*unknown model 'vit'; choices: char_lstm"):
        reporting({"kind": "embedding", "model": "vit"})
    with pytest.raises(ConfigurationError, match=r"representation.*unknown key 'hiden'.*'hidden'"):
        reporting({"kind": "embedding", "model": {"kind": "mlp", "hiden": [3]}})
    with pytest.raises(ConfigurationError, match=r"representation: model\.hidden\.0 = 0: .* equal to 1"):
        reporting({"kind": "embedding", "model": {"kind": "mlp", "hidden": [0]}})


def test_a_sketch_above_the_parameters_is_refused_with_the_arm() -> None:
    experiment = reporting({"kind": "gradient", "sketch": 1000})
    with pytest.raises(ConfigurationError, match=r"arm .arm0.: .*sketch = 1000: must not be above the 650"):
        check_arms(experiment, ["arm0"], world(experiment))


@pytest.mark.parametrize(
    ("representation", "detectors", "clusterer", "where"),
    [
        ("gradient", None, {"distance": "js"}, "clusterer.distance = 'js'"),
        (
            "embedding",
            {"far": {"kind": "distance", "eps": 0.1, "distance": "js"}},
            {},
            "detectors.far.distance",
        ),
        ("label", {"far": {"kind": "distance", "eps": 0.1, "distance": "js"}}, {"distance": "js"}, None),
        ("gradient", None, {"distance": "cosine"}, None),
    ],
)
def test_a_distance_between_shares_is_refused_for_other_reports(
    representation: Any, detectors: Any, clusterer: dict[str, Any], where: str | None
) -> None:
    arm = {"name": "a", "representation": representation, "clusterer": {"kind": "fielding", **clusterer}}
    experiment = small(arm=[arm if detectors is None else {**arm, "detectors": detectors}])
    refused = pytest.raises(ConfigurationError, match=f"arm 'a': {where}.*choices: cosine, euclidean, l1, sq")
    with nullcontext() if where is None else refused:
        check_arms(experiment, ["a"], world(experiment))


def selecting_by_distance(representation: Any, **arm: Any) -> Experiment:
    parts = {"selector": {"kind": "distance", **arm.pop("selector", {})}, "representation": representation}
    return small(arm=[{"name": "a", **parts, **arm}])


def test_a_selector_that_compares_reports_is_refused_a_distance_between_shares_for_others() -> None:
    refused = selecting_by_distance("embedding", selector={"distance": "js"})
    with pytest.raises(
        ConfigurationError, match=r"arm 'a': selector\.distance = 'js': .*choices: cosine, eucl"
    ):
        check_arms(refused, ["a"], world(refused))
    accepted = selecting_by_distance("label", selector={"distance": "js"})
    check_arms(accepted, ["a"], world(accepted))


def test_a_selector_that_compares_reports_is_refused_where_nobody_reports_new_data() -> None:
    refused = selecting_by_distance("label", detectors={})
    with pytest.raises(
        ConfigurationError,
        match=r"arm 'a': selector = 'distance': .*without detectors.*; choices: changed, d",
    ):
        check_arms(refused, ["a"], world(refused))
    for accepted in (
        # All report at the present models, whatever detectors find.
        selecting_by_distance({"kind": "gradient", "at": "global"}, detectors={}),
        # Clients report for the selector from the start.
        selecting_by_distance("label", clusterer={"kind": "static", "at_round": 3}),
        small(arm=[{"name": "a", "detectors": {}}]),
    ):
        check_arms(accepted, ["a"], world(accepted))


@pytest.mark.parametrize(
    ("representation", "size", "way_out"),
    [
        ("gradient", 650, "; set representation.sketch, or take a smaller model"),
        ({"kind": "gradient", "sketch": 500}, 500, "; lower representation.sketch, or take a smaller model"),
        ("embedding", 64, "; take a smaller model"),
    ],
)
def test_reports_beyond_memory_are_refused_with_their_size_and_a_way_out(
    monkeypatch: pytest.MonkeyPatch, representation: Any, size: int, way_out: str
) -> None:
    experiment = reporting(representation)
    shared = world(experiment)
    needed = arms_module.REPORT_COPIES * 8 * 12 * size
    monkeypatch.setattr(arms_module, "available_bytes", lambda: needed)
    check_arms(experiment, ["arm0"], shared)
    monkeypatch.setattr(arms_module, "available_bytes", lambda: needed - 1)
    with pytest.raises(ConfigurationError, match=rf"12 clients by reports of {size} numbers.*{way_out}$"):
        check_arms(experiment, ["arm0"], shared)


def test_of_a_large_fleet_only_the_clustered_reports_are_reckoned_many_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twelve clients, of which ten are clustered: 12 + 6 x 10 reports of 10 labels."""
    experiment = small(arm=[{"name": "a", "clusterer": {"kind": "fielding", "kmeans_clients": 10}}])
    shared = world(experiment)
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 8 * 72 * 10)
    check_arms(experiment, ["a"], shared)
    monkeypatch.setattr(arms_module, "available_bytes", lambda: 8 * 72 * 10 - 1)
    with pytest.raises(ConfigurationError, match=r"12 clients by reports of 10 numbers.*take fewer labels"):
        check_arms(experiment, ["a"], shared)


def test_the_module_trains_nothing_before_a_run_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = reporting({"kind": "embedding", "epochs": 10**6})
    monkeypatch.setattr(reference, "build_reference", None)
    check_arms(experiment, ["arm0"], world(experiment))
