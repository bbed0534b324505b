"""The configurations of Fielding's figures compare what docs/fielding.md says of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

import experiments
from coordinator.population import Hear
from emulator.storage.bounded import read_toml
from experiments.config import parse_experiment
from experiments.reading import load_experiment, read_table
from traces.building import BUILDERS
from traces.shared_sets import SharedSet

SAMPLES = "samples_per_step"
FOLDER = Path(experiments.__file__).parent / "configs" / "fielding"
PATHS = sorted(FOLDER.glob("*.toml"))
NOT_ON_FIVE_SEEDS = {"retention": list(range(10)), "depth": [0, 1, 2], "fashion-resnet18": [0, 1]}
ALGORITHM_OF_ITS_OWN = {"figure-07-concepts"}  # FedDrift's test bed is trained with Adam
RIVALS = [f"figure-04-rivals-{data}" for data in ("digits", "covid", "buckets", "portal", "one-label")]
WITH_BASELINES = [
    *(f"figure-04-rivals-{data}" for data in ("digits", "covid", "buckets")),
    *("figure-10-rivals", "figure-12-digits", "figure-12-covid", "figure-13-three"),
]
SELECTORS = ["random", "oort", "distance"]
# Each arm has the best of twelve settings of its own.
TUNED = {*RIVALS, "figure-10-rivals", *(f"figure-05-{name}" for name in SELECTORS), "figure-06-optimisers"}


def swept(name: str) -> dict[str, Any]:
    return dict(read_table(FOLDER / f"{name}.toml")["sweep"])


def arms(name: str) -> dict[str, Any]:
    table = read_table(FOLDER / f"{name}.toml")
    table.pop("sweep", None)
    resolved = parse_experiment(table, name).resolved()
    return {arm["name"]: arm for arm in resolved["arm"]}


def test_every_name_is_that_of_the_file() -> None:
    assert [read_table(path)["name"] for path in PATHS] == [f"fielding-{path.stem}" for path in PATHS]


def test_reported_seeds_are_not_those_on_which_settings_were_chosen() -> None:
    for path in PATHS:
        assert read_table(path)["seeds"] == NOT_ON_FIVE_SEEDS.get(path.stem, [0, 1, 2, 3, 4]), path.stem


def test_all_arms_train_with_fedprox_and_are_averaged_uniformly() -> None:
    for path in PATHS:
        parts = read_table(path)["parts"]
        assert parts["aggregator"] == {"kind": "fedavg", "weighting": "uniform"}, path.stem
        if path.stem not in ALGORITHM_OF_ITS_OWN:
            assert parts["solver"] == [{"kind": "fedprox", "mu": 0.1}, "sgd"], path.stem
        if path.stem not in TUNED:
            searched = read_toml(path).get("chosen", {})
            for arm in read_table(path)["arm"]:
                if f"arm.{arm['name']}.training.learning_rate" in searched:
                    assert set(arm.pop("training")) == {"learning_rate"}
                assert not {"solver", "aggregator", "training"} & set(arm), f"{path.stem}, {arm['name']}"


def test_tuned_arms_differ_in_the_rates_of_their_training_but_not_in_its_amount() -> None:
    for name in sorted(TUNED):
        table = read_table(FOLDER / f"{name}.toml")
        assert (table["training"]["local_steps"], table["training"]["batch_size"]) == (10, 20), name
        for arm in table["arm"]:
            prox, optimiser = arm["solver"]
            assert (set(arm["training"]), prox["kind"], optimiser) == ({"learning_rate"}, "fedprox", "sgd")


def test_tuned_arms_have_forty_participants_a_round_or_all_clients() -> None:
    participants = {name: read_table(FOLDER / f"{name}.toml")["round"]["participants"] for name in TUNED}
    assert participants.pop("figure-04-rivals-portal") == 24
    assert set(participants.values()) == {40}


@pytest.mark.parametrize("name", [*RIVALS, "figure-10-rivals"])
def test_fielding_has_both_rivals_and_auxo_its_split_rounds(name: str) -> None:
    compared = arms(name)
    plain = [arm for arm in compared.values() if arm["adaptation"]["kind"] == "none"]
    assert [arm["clusterer"]["kind"] for arm in plain] == ["single", "fielding", "auxo", "flexcfl"]
    assert isinstance(compared["auxo"]["clusterer"]["split_rounds"], list)


@pytest.mark.parametrize("name", WITH_BASELINES)
def test_rivals_without_clusters_differ_from_one_model_in_the_adaptation_alone(name: str) -> None:
    """And so does Fielding with an adaptation from Fielding without: the same as a rival's."""
    compared = arms(name)
    baselines = {key: arm for key, arm in compared.items() if arm.get("baseline")}
    assert [key for key in ("global", "prior", "tuned", "alone") if key not in baselines] == []
    adapted = {key: arm for key, arm in compared.items() if "-" in key and key not in baselines}
    assert {"prior", "tuned"} <= {key.rpartition("-")[2] for key in adapted}
    for key, arm in (baselines | adapted).items():
        plain = "global" if key in baselines else key.rpartition("-")[0]
        if plain in compared and plain != key:
            rival = compared[key if key in baselines else key.rpartition("-")[2]]
            assert arm["adaptation"] == rival["adaptation"], key
            unlike = ("name", "adaptation", "baseline")
            assert {k: v for k, v in arm.items() if k not in unlike} == {
                k: v for k, v in compared[plain].items() if k not in unlike
            }, key


def test_the_rivals_on_static_data_differ_from_those_under_drift_in_the_data_alone() -> None:
    static, drifting = (
        read_table(FOLDER / f"{name}.toml") for name in ("figure-10-rivals", "figure-04-rivals-digits")
    )
    traces = [table.pop("trace") for table in (static, drifting)]
    del static["name"], drifting["name"]
    assert static == drifting
    assert traces[0].pop("static") is True
    (none, some), (held, arriving) = ([trace.pop(key) for trace in traces] for key in ("drift", SAMPLES))
    assert none == {"kind": "none", "mixes": some["mixes"], "labels_per_mix": some["labels_per_mix"]}
    window = traces[1].pop("retain_rounds") // traces[1]["rounds_per_step"]
    assert held == window * arriving
    assert traces[0].pop(f"test_{SAMPLES}") == window * traces[1].pop(f"test_{SAMPLES}")
    assert traces[0] == traces[1]


def test_each_selector_and_each_optimiser_is_played_for_one_model_and_for_fielding() -> None:
    for name in SELECTORS:
        compared = arms(f"figure-05-{name}").values()
        assert [arm["selector"]["kind"] for arm in compared] == [name, name]
        assert [arm["clusterer"]["kind"] for arm in compared] == ["single", "fielding"]
    compared = arms("figure-06-optimisers").values()
    kinds = [(arm["aggregator"]["kind"], arm["clusterer"]["kind"]) for arm in compared]
    assert kinds == list(product(["fedavg", "fedyogi", "qfedavg"], ["single", "fielding"]))


def test_the_map_varies_the_event_the_window_and_who_is_heard() -> None:
    assert swept("map") == {
        "trace.drift.events.0.share": [0.1, 0.3, 0.5, 0.7, 0.9],
        "trace.drift.events.0.mixes": [2, 4, 8],
        "trace.retain_rounds": [5, 10, 25],
        "round.hear": ["everyone", "online"],
    }
    assert list(arms("map")) == ["moves", "fielding", "fielding-last-global", "always"]


def test_sweeps_of_a_choice_have_every_choice() -> None:
    assert sorted(swept("hear")["round.hear"]) == sorted(get_args(Hear))
    assert sorted(swept("figure-09-shared")["trace.shared"]) == sorted(get_args(SharedSet))


@pytest.mark.parametrize("name", ["figure-02", "figure-02-participants"])
def test_who_follows_participants_differs_from_fielding_in_nothing_else(name: str) -> None:
    drifted, participants = (dict(arms(name)[arm]["clusterer"]) for arm in ("fielding", "participants"))
    assert (drifted.pop("follow"), participants.pop("follow")) == ("drifted", "participants")
    assert drifted == participants


def test_one_start_is_all_that_tells_those_arms_apart() -> None:
    for name in ("fielding", "always"):
        one, ten = (dict(arms("figure-02")[arm]["clusterer"]) for arm in (f"{name}-one-start", name))
        assert (one.pop("starts"), ten.pop("starts")) == (1, 10)
        assert one == ten


def test_both_columns_of_table_3_are_clustered_in_the_same_rounds() -> None:
    at_round = {name: arm["clusterer"].get("at_round") for name, arm in arms("table-3").items()}
    for rounds in (10, 20, 50, 100, 150):  # 5 to 75 % of 200
        assert at_round[f"label-{rounds}"] == at_round[f"gradient-{rounds}"] == rounds


def test_configurations_without_a_sweep_can_be_loaded_without_data() -> None:
    loaded = [load_experiment(path) for path in PATHS if "sweep" not in read_table(path)]
    assert len(loaded) > 10


@pytest.mark.parametrize(
    ("name", "rounds_per_step", "rounds", "learning_rate", "participants"),
    [
        ("fmow", 2, 2000, 0.05, 50),
        ("cityscapes", 30, 200, 0.001, 20),
        ("waymo", 20, 100, 0.001, 20),
        ("openimages", 50, 400, 0.05, 200),
    ],
)
def test_the_papers_data_sets_are_played_as_in_the_paper(
    name: str, rounds_per_step: int, rounds: int, learning_rate: float, participants: int
) -> None:
    experiment = load_experiment(FOLDER / f"{name}.toml").resolved()
    trace, training = experiment["trace"], experiment["arm"][0]["training"]
    assert (trace["source"], trace["rounds_per_step"], trace["retain_rounds"]) == (
        "file",
        rounds_per_step,
        100,
    )
    assert (training["learning_rate"], training["batch_size"], training["local_steps"]) == (
        learning_rate,
        20,
        20,
    )
    assert (experiment["round"]["rounds"], experiment["round"]["participants"]) == (rounds, participants)
    played = dict(BUILDERS.find(name).play)  # what the builder prints at its end
    assert {key: trace[key] for key in played} == played


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("fmow-resnet18", "resnet18"),
        ("cityscapes-resnet18", "resnet18"),
        ("waymo-vit", "vit_tiny"),
        ("openimages-shufflenet", "shufflenet_v2"),
    ],
)
def test_the_papers_models_are_all_that_these_configurations_change(name: str, model: str) -> None:
    ours, plain = (read_table(FOLDER / f"{name}.toml") for name in (name, name.partition("-")[0]))
    assert (ours["training"].pop("model"), ours["devices"].pop("model_factor")) == (model, "flops")
    del plain["training"]["model"], plain["devices"]["model_factor"]
    for key in ("name", "report"):  # rounds last otherwise, and so does the horizon
        del ours[key], plain[key]
    assert ours == plain
