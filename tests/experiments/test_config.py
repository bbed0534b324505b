from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from coordinator.clusterers import CLUSTERERS
from coordinator.detectors import DETECTORS
from emulator.errors import ConfigurationError
from experiments.config import Experiment, Round, parse_experiment
from experiments.reading import load_experiment
from experiments.results.reading.deciding import run_identities
from experiments.shipped import shipped_files
from tests.experiments.small import MINIMAL, merged, small, small_table

SHIPPED = list(shipped_files().values())
WITHOUT_SWEEP = ["sweep={}"]
TARGET_RULE = 'must be an accuracy above 0, at most 1, or "reference"'

pytestmark = pytest.mark.usefixtures("beside_the_files")


def refusal(table: dict[str, Any]) -> str:
    """The message of the error that `table` raises, which is one line."""
    with pytest.raises(ConfigurationError) as refused:
        parse_experiment(table, "x.toml")
    message = str(refused.value)
    assert "\n" not in message
    return message


# -- two looks ----------------------------------------------------------------------------------------------


# -- defaults -----------------------------------------------------------------------------------------------


def test_omitted_settings_have_the_documented_defaults() -> None:
    experiment = parse_experiment(MINIMAL, "x.toml")
    assert experiment.seeds == (0, 1, 2, 3, 4)
    resolved = experiment.resolved()
    assert resolved["devices"] == {
        "profile": "smartphones",
        "availability": {"kind": "always"},
        "time_model": "driftscale",
        "model_factor": "flops",
        "assign": "draw",
        "unmatched": "refuse",
        "jitter": {"compute": 0.0, "network": 0.0, "model": 0.0},
    }
    assert resolved["report"] == {"window": 5, "targets": []}
    assert resolved["round"] | {"rounds": 1, "participants": 1} == {
        "rounds": 1,
        "participants": 1,
        "over_commit": 1.3,
        "min_online": 1,
        "max_wait_days": 30.0,
        "hear": "online",
        "evaluate_every": 1,
        "nonfinite_updates": "drop",
        "accuracies": [],
        "log_client_accuracy": False,
        "log_model_accuracy": False,
        "log_visits": False,
        "client_distance": {"kind": "label"},
    }
    [arm] = resolved["arm"]
    assert arm["clusterer"] == {"kind": "single"}
    assert arm["selector"] == {"kind": "random"}
    assert arm["detectors"] == {"changed": {"kind": "changed"}}
    assert [rule["kind"] for rule in arm["solver"]] == ["sgd"]
    assert (arm["aggregator"]["kind"], arm["pacing"]["kind"], arm["memory"]["kind"]) == (
        "fedavg",
        "sync",
        "held",
    )


def test_a_part_is_its_name_or_a_table_with_its_name() -> None:
    by_name = small(training={"model": "mlp"})
    by_table = small(training={"model": {"kind": "mlp"}})
    assert by_name == by_table


# -- the training of an arm ---------------------------------------------------------------------------------


def test_the_training_of_an_arm_overrides_the_shared_one_key_by_key() -> None:
    training = {"learning_rate": 0.5, "model": {"kind": "mlp", "hidden": [3]}}
    experiment = small(
        training={"learning_rate": 0.25}, arm=[{"name": "shared"}, {"name": "override", "training": training}]
    )
    shared, override = (arm.training for arm in experiment.arm)
    assert shared == experiment.training
    assert (shared.learning_rate, shared.model.kind, shared.local_steps) == (0.25, "linear", 2)
    assert (override.learning_rate, override.model.kind, override.local_steps) == (0.5, "mlp", 2)


def test_every_arm_has_its_whole_training_in_the_resolved_configuration() -> None:
    experiment = small(arm=[{"name": "a"}, {"name": "b", "training": {"batch_size": 9}}])
    first, second = (arm["training"] for arm in experiment.resolved()["arm"])
    assert first == experiment.resolved()["training"]
    assert second == {**first, "batch_size": 9}
    assert_survives_a_round_trip(experiment)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"arm": [{"name": "a", "training": {"learning_rate": 0}}]},
            "x.toml: arm.a.training.learning_rate = 0: input should be greater than 0",
        ),
        ({"arm": [{"name": "a", "training": 3}]}, "x.toml: arm.a.training = 3: must be a table"),
        ({"training": 3}, "x.toml: training = 3: must be a table"),
        (
            {"arm": [{"name": "a", "detectors": "changed"}]},
            "x.toml: arm.a.detectors = 'changed': must be a table of detectors by names of your own, as in "
            "{ mine = 'changed' }",
        ),
        (
            {"parts": {"detectors": {"kind": "changed"}}},
            "x.toml: parts.detectors: must be a table of detectors by names of your own, as in "
            "{ mine = 'changed' }",
        ),
        (
            {"training": {"batches": "shuffled"}},
            "x.toml: training.batches = 'shuffled': input should be 'reshuffled' or 'fixed'",
        ),
        (
            {"training": {"local_steps": 7, "local_epochs": 3}},
            "x.toml: training: local_steps = 7 beside local_epochs = 3: a visit is of steps or of epochs; "
            "give one of them",
        ),
        (
            {"arm": [{"name": "a", "training": {"local_steps": 7, "local_epochs": 3}}]},
            "x.toml: arm.a.training: local_steps = 7 beside local_epochs = 3: a visit is of steps or of "
            "epochs; give one of them",
        ),
        (
            {"training": {"last": "short"}},
            "x.toml: training: last = 'short': needs local_epochs, whose passes have a last batch",
        ),
        (
            {"arm": [{"name": "a", "training": {"local_epochs": 3, "last": "short", "batches": "fixed"}}]},
            "x.toml: arm.a.training: last = 'short': needs batches = 'reshuffled', since fixed batches are "
            "drawn",
        ),
        (
            {"training": {"local_epochs": 0}, "arm": [{"name": "a"}]},
            "x.toml: training.local_epochs = 0: input should be greater than or equal to 1",
        ),
        (
            {"arm": [{"name": "a", "training": {"rate": 1}}]},
            "x.toml: arm.a.training: unknown key 'rate'; choices: batch_norm, batch_size, "
            "batches, last, learning_rate, local_epochs, local_steps, model, objective, start",
        ),
        (
            {"training": {"rate": 1}},
            "x.toml: training: unknown key 'rate'; choices: batch_norm, batch_size, batches, last, "
            "learning_rate, local_epochs, local_steps, model, objective, start",
        ),
    ],
)
def test_an_error_in_a_training_names_its_key(changes: dict[str, Any], message: str) -> None:
    assert refusal(small_table(**changes)) == message


@pytest.mark.parametrize(
    ("shared", "own", "whole"),
    [
        ({"local_steps": 7}, {"local_epochs": 3}, {"local_epochs": 3, "last": "filled"}),
        ({"local_steps": 7}, {"local_epochs": 3, "last": "short"}, {"local_epochs": 3, "last": "short"}),
        ({"local_epochs": 3, "last": "short"}, {"local_steps": 7}, {"local_steps": 7}),
        ({"local_epochs": 3, "last": "short"}, {"local_epochs": 4}, {"local_epochs": 4, "last": "short"}),
        ({"local_epochs": 3, "last": "short"}, {"last": "filled"}, {"local_epochs": 3, "last": "filled"}),
    ],
)
def test_the_epochs_of_an_arm_replace_the_steps_of_all_and_the_other_way_round(
    shared: dict[str, Any], own: dict[str, Any], whole: dict[str, Any]
) -> None:
    arms = [{"name": "a"}, {"name": "b", "training": own}]
    experiment = parse_experiment({**MINIMAL, "training": shared, "arm": arms}, "x.toml")
    resolved = experiment.resolved()
    counted = [
        {key: training[key] for key in ("local_steps", "local_epochs", "last") if key in training}
        for training in (resolved["training"], *(arm["training"] for arm in resolved["arm"]))
    ]
    assert counted == [shared, shared, whole]
    assert_survives_a_round_trip(experiment)


def test_runs_with_batches_drawn_in_another_way_are_other_runs() -> None:
    one, other = (
        run_identities(small(training={"batches": batches}).resolved()) for batches in ("reshuffled", "fixed")
    )
    assert one == run_identities(small().resolved())
    assert all(one[arm] != other[arm] for arm in one)


def test_a_configuration_recorded_before_batches_were_a_setting_means_reshuffled_ones() -> None:
    recorded = small().resolved()
    for training in (recorded["training"], *(arm["training"] for arm in recorded["arm"])):
        assert training.pop("batches") == "reshuffled"
    assert parse_experiment(recorded, "experiment.toml") == small()


# -- schedules ----------------------------------------------------------------------------------------------


def test_an_arm_has_no_schedules_one_or_a_list() -> None:
    arms = [
        {"name": "a"},
        {"name": "b", "schedules": "adaptive_lr"},
        {"name": "c", "schedules": ["adaptive_lr"]},
    ]
    experiment = small(arm=arms)
    assert [[chosen.kind for chosen in arm.schedules] for arm in experiment.arm] == [
        [],
        ["adaptive_lr"],
        ["adaptive_lr"],
    ]
    assert_survives_a_round_trip(experiment)
    assert "unknown schedule 'adaptiv'" in refusal(small_table(arm=[{"name": "a", "schedules": "adaptiv"}]))


# -- published values ---------------------------------------------------------------------------------------


def test_a_published_value_is_a_mean_or_a_mean_and_a_standard_deviation() -> None:
    values = {"global": 52.11, "fielding": [97.5, 0.1]}
    experiment = small(report={"published": {"accuracy_omitting_drift": values}})
    assert experiment.resolved()["report"]["published"] == {
        "accuracy_omitting_drift": {"global": [52.11], "fielding": [97.5, 0.1]},
        "accuracy_including_drift": {},
    }
    assert_survives_a_round_trip(experiment)


@pytest.mark.parametrize(
    ("published", "message"),
    [
        (
            {"accuracy_including_drift": {"fedding": 1}},
            "x.toml: report.published.accuracy_including_drift: no arm is named 'fedding'; "
            "arms: global, fielding",
        ),
        (
            {"accuracy": {"global": 1}},
            "x.toml: report.published: unknown key 'accuracy'; choices: accuracy_including_drift, "
            "accuracy_omitting_drift",
        ),
        (
            {"accuracy_omitting_drift": {"global": 101}},
            "x.toml: report.published.accuracy_omitting_drift.global = 101: input should be less than or "
            "equal to 100",
        ),
    ],
)
def test_a_published_value_of_an_unknown_arm_or_figure_is_refused(
    published: dict[str, Any], message: str
) -> None:
    assert refusal(small_table(report={"published": published})) == message


# -- the choices of an atlas -------------------------------------------------------------------------------


def test_what_was_chosen_for_the_atlas_is_recorded_as_it_was_given() -> None:
    chosen = {"seeds": [100, 101], "rival": "global", "best": {"fielding": "fielding", "mine": "global"}}
    experiment = small(atlas=chosen)
    assert experiment.resolved()["atlas"] == chosen
    assert "atlas" not in small().resolved()
    assert_survives_a_round_trip(experiment)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"rival": "globe"}, "atlas.rival = 'globe': names no arm; choices: global, fielding"),
        (
            {"best": {"fielding": "fielding+tuned"}},
            "atlas.best.fielding = 'fielding+tuned': names no arm; choices: global, fielding",
        ),
    ],
)
def test_a_rival_or_a_best_use_that_is_no_arm_is_refused_with_the_arms(
    chosen: dict[str, Any], message: str
) -> None:
    table = small_table(atlas={"seeds": [100], "rival": "global", **chosen})
    assert refusal(table) == f"x.toml: {message}"


# -- baselines and the headline ----------------------------------------------------------------------------


def test_a_baseline_is_recorded_and_one_that_is_none_leaves_no_key() -> None:
    experiment = small(arm=[{"name": "a", "baseline": True}, {"name": "b"}], report={"headline": "b"})
    assert [arm.get("baseline") for arm in experiment.resolved()["arm"]] == [True, None]
    assert_survives_a_round_trip(experiment)


@pytest.mark.parametrize(
    ("baselines", "report", "message"),
    [
        (
            ["global", "fielding"],
            {},
            "arm.fielding.baseline = True: a baseline has no clusters: its clusterer must be single, not "
            "fielding",
        ),
        (["global"], {"headline": "feeling"}, "report.headline = 'feeling': names no arm; choices: fielding"),
        (["global"], {"headline": "global"}, "report.headline = 'global': is a baseline; choices: fielding"),
    ],
)
def test_a_baseline_with_clusters_and_a_headline_on_no_arm_or_on_a_baseline_are_refused(
    baselines: list[str], report: dict[str, Any], message: str
) -> None:
    table = small_table(report=report)
    for arm in table["arm"]:
        arm["baseline"] = arm["name"] in baselines
    assert refusal(table) == f"x.toml: {message}"


@pytest.mark.parametrize(
    ("first", "changes", "message"),
    [
        ("accuracies", {}, "report.first = 'accuracies': no figure or table; choices: "),
        (
            "clients_by",
            {"log_client_accuracy": False},
            "report.first = 'clients_by': the runs do not log what it shows; "
            "set round.log_client_accuracy = true",
        ),
        (
            "timeline",
            {"log_visits": False},
            "report.first = 'timeline': the runs do not log what it shows; set round.log_visits = true",
        ),
        ("flags", {}, "report.first = 'flags': the runs do not log what it shows; add a table [detection]"),
    ],
)
def test_a_report_cannot_open_with_what_does_not_exist_or_is_not_logged(
    first: str, changes: dict[str, Any], message: str
) -> None:
    table = small_table(report={"first": first})
    table["round"] |= changes
    assert refusal(table).startswith(f"x.toml: {message}")


def test_a_report_opens_with_any_figure_or_table_whose_data_are_logged() -> None:
    for first in ("difference", "participation", "clients_by", "timeline"):
        table = small_table(report={"first": first})
        table["round"] |= {"log_client_accuracy": True, "log_visits": True}
        assert parse_experiment(table, "x.toml").report.first == first


@pytest.mark.parametrize(
    ("value", "instead"),
    [("true", ", as in true, without quotes"), ("yes", ", as in true, without quotes"), (1, "")],
)
def test_whether_an_arm_is_a_baseline_is_a_boolean(value: Any, instead: str) -> None:
    assert refusal(small_table(arm=[{"name": "a", "baseline": value}, {"name": "b"}])) == (
        f"x.toml: arm.a.baseline = {value!r}: must be true or false{instead}"
    )


def test_arms_that_are_all_baselines_are_refused() -> None:
    assert refusal(small_table(arm=[{"name": "a", "baseline": True}, {"name": "b", "baseline": True}])) == (
        "x.toml: arm.baseline: every arm is a baseline (a, b); at least one must not be, to be compared "
        "with them"
    )


# -- [parts] ------------------------------------------------------------------------------------------------


def test_parts_apply_to_every_arm_that_does_not_name_its_own() -> None:
    fedprox = {"kind": "fedprox", "mu": 0.5}
    experiment = small(
        parts={"solver": [fedprox, "sgd"], "clusterer": "static"},
        arm=[{"name": "override", "clusterer": "single"}, {"name": "shared"}],
    )
    override, shared = experiment.arm
    assert (override.clusterer.kind, shared.clusterer.kind) == ("single", "static")
    solvers = [[rule.kind for rule in arm.solver] for arm in (override, shared)]
    assert solvers == [["fedprox", "sgd"], ["fedprox", "sgd"]]
    assert "parts" not in experiment.resolved()


def test_an_error_in_parts_names_its_key() -> None:
    assert refusal(small_table(parts={"clusterer": "fieldin"}, arm=[{"name": "a"}])) == (
        "x.toml: parts.clusterer = 'fieldin': unknown clusterer 'fieldin'; "
        f"choices: {', '.join(CLUSTERERS.names())}; did you mean 'fielding'?"
    )
    assert "x.toml: parts: unknown key 'clustrer'; choices: adaptation, aggregator, clusterer" in refusal(
        small_table(parts={"clustrer": "single"})
    )
    assert "parts: unknown key 'name'" in refusal(small_table(parts={"name": "a"}))
    assert "parts = 3: must be a table" in refusal(small_table(parts=3))
    assert "parts = 3: must be a table" in refusal(small_table(parts=3, arm=[{"name": "a", "solver": "x"}]))


def test_an_arm_whose_name_is_no_line_goes_by_its_number() -> None:
    assert refusal(small_table(arm=[{"name": "a\nb"}])).startswith("x.toml: arm.0.name = 'a\\nb': string ")


def test_an_error_in_an_arm_beside_parts_names_the_key_of_the_arm() -> None:
    table = small_table(parts={"clusterer": "static"}, arm=[{"name": "a", "clusterer": "ifc"}])
    assert refusal(table).startswith("x.toml: arm.a.clusterer = 'ifc': ")


@pytest.mark.parametrize("arm", [3, "a", ["a"], {"name": "a"}, []])
def test_arms_that_are_not_a_list_of_tables_are_refused_with_and_without_parts(arm: object) -> None:
    for parts in ({}, {"parts": {"selector": "random"}}):
        assert refusal({**MINIMAL, **parts, "arm": arm}).startswith("x.toml: arm")


# -- --set --------------------------------------------------------------------------------------------------


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rond": {}},
            "x.toml: unknown key 'rond'; choices: arm, arms, atlas, checkpoint, chosen, detection, devices, "
            "executor, extends, faults, name, output, parts, report, round, seeds, trace, training, tune; "
            "did you mean 'round'?",
        ),
        (
            {"round": {"partcipants": 3}},
            "x.toml: round: unknown key 'partcipants'; choices: accuracies, client_distance, "
            "evaluate_clients, evaluate_every, evaluate_every_s, hear, log_client_accuracy, "
            "log_model_accuracy, log_visits, max_wait_days, min_online, nonfinite_updates, over_commit, "
            "participants, rounds, seconds_per_round; did you mean 'participants'?",
        ),
        (
            {"trace": {"source": "digitz"}},
            "x.toml: trace: unknown trace source 'digitz'; choices: concepts, digits, file, idx, "
            "label_replay, markov_text, synthetic; did you mean 'digits'?",
        ),
        (
            {"trace": {"drift": "lable_mix"}},
            "x.toml: trace.drift = 'lable_mix': unknown drift 'lable_mix'; choices: buckets, label_mix, "
            "none; did you mean 'label_mix'?",
        ),
        (
            {"devices": {"availability": "dirnal"}},
            "x.toml: devices.availability = 'dirnal': unknown availability 'dirnal'; "
            "choices: always, diurnal, intervals; did you mean 'diurnal'?",
        ),
        (
            {"training": {"model": "vit"}},
            "x.toml: training.model = 'vit': unknown model 'vit'; choices: char_lstm, cnn, context, linear, "
            "masked, mixture, mlp, random_features, resnet, resnet18, shufflenet_v2, vit_tiny, "
            "word_transformer",
        ),
        (
            {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "treshold": 1}}]},
            "x.toml: arm.a.clusterer: unknown key 'treshold'; choices: average, distance, follow, "
            "kmeans_clients, max_clusters, min_clusters, partition, reclustered_init, silhouette_clients, "
            "starts, trigger",
        ),
        (
            {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "threshold": 0.25}}]},
            "x.toml: arm.a.clusterer: threshold is a setting of the trigger; write trigger = "
            '{ kind = "centre_shift", threshold = 0.25 }, or trigger.threshold = 0.25',
        ),
        (
            {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "trigger": "centre"}}]},
            "x.toml: arm.a.clusterer.trigger = 'centre': unknown trigger 'centre'; choices: centre_shift, "
            "learned, pairwise; did you mean 'centre_shift'?",
        ),
        (
            {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "trigger": {"treshold": 1}}}]},
            "x.toml: arm.a.clusterer.trigger: unknown key 'treshold'; choices: shift_from, threshold; "
            "did you mean 'threshold'?",
        ),
        (
            {"arm": [{"name": "a", "clusterer": {"kind": "fielding", "representation": "label"}}]},
            "x.toml: arm.a.clusterer: representation is a part of its own: a key of [[arm]] or [parts], "
            "beside the clusterer",
        ),
        (
            {"arm": [{"name": "a", "representation": {"kind": "gradient", "sketches": 8}}]},
            "x.toml: arm.a.representation: unknown key 'sketches'; choices: at, batch_size, epochs, "
            "learning_rate, model, per_label, sketch; did you mean 'sketch'?",
        ),
        (
            {"arm": [{"name": "a", "solver": ["fedproxy"]}]},
            "x.toml: arm.a.solver.0 = 'fedproxy': unknown local rule 'fedproxy'; choices: adam, apfl, "
            "aso_memory, clip, ditto, early_stopping, feddc, feddyn, fedprox, personal_layers, scaffold, "
            "sgd; did you mean 'fedprox'?",
        ),
        (
            {"arm": [{"name": "a", "detectors": {"d": "cusum"}}]},
            "x.toml: arm.a.detectors.d = 'cusum': unknown detector 'cusum'; choices: "
            f"{', '.join(DETECTORS.names())}",
        ),
        (
            {"training": {"model": ["mlp"]}},
            "x.toml: training.model: must be a name, or a table with 'kind'; choices: char_lstm, cnn, "
            "context, linear, masked, mixture, mlp, random_features, resnet, resnet18, shufflenet_v2, "
            "vit_tiny, word_transformer",
        ),
    ],
)
def test_an_unknown_name_lists_the_choices_with_file_and_key_in_one_line(
    changes: dict[str, Any], message: str
) -> None:
    assert refusal(small_table(**changes)) == message


def test_thresholds_are_detectors_of_their_own_and_stay_so_when_they_are_recorded() -> None:
    given = {"kind": "ddm", "signal": "losses", "thresholds": [2, 2.5]}
    table = small_table(arm=[{"name": "a", "detectors": {"d": given, "jump": "loss_jump"}}])
    experiment = parse_experiment(table, "x.toml")
    detectors = {name: chosen.settings for name, chosen in experiment.arm[0].detectors.items()}
    assert list(detectors) == ["d@2", "d@2.5", "jump"]
    assert [detectors[name].threshold for name in ("d@2", "d@2.5")] == [2.0, 2.5]
    assert detectors["d@2"].signal == "losses"
    assert given["thresholds"] == [2, 2.5]  # the table is as it was
    assert parse_experiment(experiment.resolved(), "x.toml") == experiment


def test_thresholds_of_all_arms_are_those_of_parts() -> None:
    parts = {"detectors": {"d": {"kind": "eddm", "thresholds": [0.5, 0.9]}}}
    experiment = parse_experiment(small_table(parts=parts), "x.toml")
    assert [list(arm.detectors) for arm in experiment.arm] == [["d@0.5", "d@0.9"]] * 2


@pytest.mark.parametrize(
    ("detectors", "problem"),
    [
        (
            {"t": {"kind": "loss_trend", "thresholds": [1, 2]}},
            "arm.a.detectors: t.thresholds: 'loss_trend' has no threshold; leave it out, or take adwin, ddm, "
            "distance, eddm, hddm_a, hddm_w, loss_jump, page_hinkley, stepd",
        ),
        *(
            (
                {"d": {"kind": "ddm", "thresholds": values, **beside}},
                f"arm.a.detectors: d.thresholds = {values!r}: must be two different numbers or more, in the "
                "place of threshold, which is left out",
            )
            for beside, values in [
                *(({}, values) for values in (2, [], [2], [2, 2.0], [1, "2"], [1, True])),
                ({"threshold": 3}, [1, 2]),
            ]
        ),
        (
            {"d@2": "ddm", "d": {"kind": "ddm", "thresholds": [2, 3]}},
            "arm.a.detectors: two are named 'd@2'; name one of them otherwise",
        ),
        (
            {"d": {"kind": "ddm", "thresholds": [1, 0]}},
            "arm.a.detectors.d@0: input should be greater than 0",
        ),
        (
            {"d": {"kind": "dmd", "thresholds": [1, 2]}},
            "arm.a.detectors.d: unknown detector 'dmd'; choices: ",
        ),
    ],
)
def test_thresholds_that_cannot_be_played_are_refused(detectors: dict[str, Any], problem: str) -> None:
    assert refusal(small_table(arm=[{"name": "a", "detectors": detectors}])).startswith(f"x.toml: {problem}")


@pytest.mark.parametrize(
    ("detection", "problem"),
    [
        ({"positive": "always"}, "detection.positive = 'always'"),
        ({"positive": [4]}, "detection.positive: must be [first, last], two rounds"),
        ({"positive": {"xor": 4}}, "detection.positive.xor = 4: must be [first, last], two rounds"),
        ({"positive": 7}, "detection.positive = 7: must be 'changed', [first, last], or a table of such"),
        ({"positive": [5, 4]}, "detection: positive = [5, 4]: the last round is before the first"),
        (
            {"positive": {"xor": [0, 4]}, "first_round": 5, "last_round": 9},
            "detection: positive.xor = [0, 4]: none of these rounds is scored; those are from 5 to 9",
        ),
        ({"first_round": 3, "last_round": 2}, "detection: last_round = 2: must be at least first_round = 3"),
        ({"tolerance": -1}, "detection.tolerance = -1: input should be greater than or equal to 0"),
    ],
)
def test_scores_of_rounds_without_decisions_are_refused(detection: dict[str, Any], problem: str) -> None:
    assert refusal(small_table(detection=detection)).startswith(f"x.toml: {problem}")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"round": {"rounds": 0}}, "round.rounds = 0: input should be greater than or equal to 1"),
        ({"round": {"rounds": 2.5}}, "round.rounds = 2.5: must be a whole number"),
        ({"round": {"over_commit": 0.9}}, "round.over_commit = 0.9: input should be greater than or equal"),
        ({"round": {"over_commit": float("nan")}}, "round.over_commit = nan: input should be a finite"),
        ({"training": {"learning_rate": 0}}, "training.learning_rate = 0: input should be greater than 0"),
        (
            {"training": {"learning_rate": float("inf")}},
            "training.learning_rate = inf: input should be a fin",
        ),
        ({"training": 3}, "training = 3: must be a table"),
        (
            {"training": {"model": {"kind": "mlp", "hidden": [0]}}},
            "training.model.hidden.0 = 0: input should",
        ),
        ({"devices": {"model_factor": 0}}, "devices.model_factor = 0: input should be greater than 0"),
        (
            {"parts": {"clusterer": {"kind": "fielding", "trigger": {"threshold": "nevr"}}}},
            "parts.clusterer.trigger.threshold = 'nevr': must be a number, or \"never\"",
        ),
        (
            {"parts": {"clusterer": {"kind": "fielding", "min_clusters": 11}}},
            "parts.clusterer: min_clusters = 11 must not be above max_clusters = 10",
        ),
        (
            {"devices": {"model_factor": "flop"}},
            "devices.model_factor = 'flop': must be a number, or \"flops\"",
        ),
        (
            {"round": {"hear": "all"}},
            "round.hear = 'all': input should be 'online', 'everyone' or 'check_in'",
        ),
        (
            {"parts": {"detectors": {"moved": {"kind": "distance", "eps": -0.1}}}},
            "parts.detectors.moved.eps = -0.1: input should be greater than 0",
        ),
        (
            {"parts": {"clusterer": {"kind": "fielding", "distance": "l2"}}},
            "parts.clusterer.distance = 'l2': input should be 'l1', 'js', 'euclidean', 'squared_euclidean'",
        ),
        (
            {"parts": {"clusterer": {"kind": "fielding", "follow": "cohort"}}},
            "parts.clusterer.follow = 'cohort': input should be 'drifted' or 'participants'",
        ),
        (
            {"parts": {"pacing": {"kind": "sync", "share": "even"}}},
            "parts.pacing.share = 'even': input should be 'clients' or 'equal'",
        ),
        ({"devices": {"time_model": "wall"}}, "devices.time_model = 'wall': input should be 'driftscale' or"),
        ({"trace": {"clients": 0}}, "trace.clients = 0: input should be greater than or equal to 1"),
        ({"trace": {"noise": -1}}, "trace.noise = -1: input should be greater than or equal to 0"),
        ({"report": {"target": 1.5}}, f"report: target = 1.5: {TARGET_RULE}"),
        ({"report": {"target": 0.5, "targets": [0.5]}}, "report: target is an earlier name of targets"),
        ({"report": {"targets": [0.5, 0]}}, f"report.targets.1 = 0: {TARGET_RULE}"),
        ({"report": {"targets": [True]}}, f"report.targets.0 = True: {TARGET_RULE}"),
        ({"report": {"targets": ["best"]}}, f"report.targets.0 = 'best': {TARGET_RULE}"),
        ({"report": {"targets": [0.5, 0.5]}}, "report.targets: every target may be given only once"),
        (
            {"report": {"targets": [n / 100 for n in range(1, 22)]}},
            "report.targets: tuple should have at most",
        ),
        ({"report": {"horizon_s": 0}}, "report.horizon_s = 0: input should be greater than 0"),
        ({"executor": {"strategy": "fast"}}, "executor.strategy = 'fast': input should be 'auto', 'stacked'"),
        ({"seeds": []}, "seeds: must not be empty"),
        ({"seeds": 3}, "seeds = 3: must be a list"),
        ({"seeds": [1, -1]}, "seeds.1 = -1: input should be greater than or equal to 0"),
        ({"seeds": [1, 2, 1]}, "seeds: every seed may be given only once"),
        ({"name": "../elsewhere"}, "name = '../elsewhere': string should match pattern"),
        ({"name": 3}, "name = 3: must be a text"),
        ({"arm": []}, "arm: must not be empty"),
        ({"arm": [{"name": "a/b"}]}, "arm.a/b.name = 'a/b': string should match pattern"),
        ({"arm": [{"clusterer": "single"}]}, "arm.0.name: field required"),
        ({"arm": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, "arm: every arm needs a different name; "),
    ],
)
def test_a_wrong_type_or_range_names_file_key_value_and_rule(changes: dict[str, Any], expected: str) -> None:
    assert refusal(small_table(**changes)).startswith(f"x.toml: {expected}")


@pytest.mark.parametrize("key", ["name", "trace", "round", "arm"])
def test_a_key_without_a_default_is_required(key: str) -> None:
    table = small_table()
    del table[key]
    assert refusal(table) == f"x.toml: {key}: field required"


# -- paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["online.csv", "online.parquet"])
def test_a_table_as_availability_means_its_intervals(name: str) -> None:
    experiment = small(devices={"availability": name})
    assert experiment.resolved()["devices"]["availability"] == {
        "kind": "intervals",
        "windows": name,
        "align": "origin",
        "overlapping": "refuse",
        "drop_never_online": False,
    }


def test_an_origin_of_hours_needs_a_time_zone() -> None:
    hours = {"kind": "intervals", "windows": "log.csv", "origin": "2026-01-31T12:00:00"}
    assert refusal(small_table(devices={"availability": hours})) == (
        "x.toml: devices.availability.origin = '2026-01-31T12:00:00': must have a time zone, as "
        "2026-01-31T12:00:00Z"
    )


# -- the resolved configuration -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_resolved_toml_of_a_shipped_configuration_is_the_same_experiment(path: Path) -> None:
    assert_survives_a_round_trip(load_experiment(path, WITHOUT_SWEEP))


def test_defaults_and_unusual_settings_survive_a_round_trip_too() -> None:
    assert_survives_a_round_trip(parse_experiment(MINIMAL, "x"))
    unusual = small(
        parts={"pacing": {"kind": "sync", "deadline_s": 12.5}},
        trace={"drift": {"kind": "label_mix", "events": [{"round": 2, "share": 0.5}]}},
        devices={"availability": "w.csv", "model_factor": "flops"},
        report={"targets": [0.5, "reference"], "horizon_s": 7200.0},
    )
    assert_survives_a_round_trip(unusual)


def assert_survives_a_round_trip(experiment: Experiment) -> None:
    text = experiment.to_toml()
    again = parse_experiment(tomllib.loads(text), "again")
    assert again.resolved() == experiment.resolved()
    arms = tuple(arm.model_copy(update={"evaluate_with": None, "tune": {}}) for arm in experiment.arm)
    written_out = experiment.model_copy(update={"parts": {}, "tune": None, "arm": arms})
    assert again.model_copy(update={"parts": {}}) == written_out
    assert again.to_toml() == text


@pytest.mark.parametrize(
    ("value", "windows"),
    [
        ("w.csv", "w.csv"),
        ({"path": "w.csv", "separator": ";"}, {"path": "w.csv", "separator": ";"}),
        ({"kind": "w.csv", "overlapping": "merge"}, "w.csv"),  # what --set makes of the path
        ({"kind": "w.csv", "windows": {"separator": ";"}}, {"path": "w.csv", "separator": ";"}),
    ],
)
def test_hours_are_the_path_of_a_table_also_with_its_reading_and_with_settings(
    value: object, windows: object
) -> None:
    hours = small(devices={"availability": value}).resolved()["devices"]["availability"]
    assert (hours["kind"], hours["windows"]) == ("intervals", windows)
    assert hours["overlapping"] == ("merge" if "merge" in str(value) else "refuse")


@pytest.mark.parametrize("written", ["2021-07-01", '"2021-07-01"'])
def test_a_date_is_the_same_as_toml_date_and_as_text(tmp_path: Path, written: str) -> None:
    table = small_table()
    table["trace"] = {
        "source": "label_replay",
        "table": "t.csv",
        "images": "i",
        "group": "g",
        "time": "t",
        "label": "l",
    }
    path = tmp_path / "c.toml"
    path.write_text(tomli_w.dumps(table))
    experiment = load_experiment(path, [f"trace.until={written}"])
    assert experiment.trace.settings.model_dump()["until"] == date(2021, 7, 1)
    assert experiment.resolved()["trace"]["until"] == "2021-07-01"
    with pytest.raises(ConfigurationError, match=r"trace\.until = '2021-7-40': input should be a valid date"):
        load_experiment(path, ["trace.until=2021-7-40"])


def test_the_shipped_default_stays_within_reach_of_a_laptop() -> None:
    digits = next(path for path in SHIPPED if path.name == "digits.toml")
    experiment = load_experiment(digits)
    updates = experiment.round.rounds * experiment.round.participants
    rivals = [arm for arm in experiment.arm if arm.adaptation.kind != "none"]
    assert updates * (len(experiment.arm) - len(rivals)) * len(experiment.seeds) <= 60_000
    arms = ["global", "prior", "tuned", "alone", "static"]
    assert [arm.name for arm in experiment.arm if arm.baseline] == arms[:4]
    arms += ["moves", "always", "fielding", "fielding-last-global"]
    assert [arm.name for arm in experiment.arm] == arms


def test_more_runs_and_targets_than_a_summary_may_have_are_refused() -> None:
    targets = [number / 100 for number in range(1, 17)]
    assert small(seeds=list(range(1024)), arm=[{"name": "only"}], report={"targets": targets}).seeds
    with pytest.raises(
        ConfigurationError, match="1 arms x 1025 seeds x 16 targets: an experiment has at most 16384"
    ):
        small(seeds=list(range(1025)), arm=[{"name": "only"}], report={"targets": targets})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_configuration_has_a_horizon(path: Path) -> None:
    assert load_experiment(path, WITHOUT_SWEEP).report.horizon_s is not None


def test_merging_changes_leaves_the_shared_table_alone() -> None:
    before = small_table()
    merged(before, {"round": {"rounds": 9}})
    assert before == small_table()


def test_a_rule_that_is_alone_needs_no_list() -> None:
    [rule] = small(arm=[{"name": "a", "solver": {"kind": "sgd", "momentum": 0.5}}]).arm[0].solver
    assert rule.kind == "sgd"
    assert small(arm=[{"name": "a", "solver": "sgd"}]).arm[0].solver[0].kind == "sgd"


def test_parts_that_no_arm_uses_are_checked_too() -> None:
    arms = [{"name": "a", "clusterer": "single"}]
    with pytest.raises(ConfigurationError, match=r"parts\.clusterer.*unknown clusterer 'fieldin'"):
        small(arm=arms, parts={"clusterer": "fieldin"})


@pytest.mark.parametrize("name", ["summary.json", "report.html", "experiment.toml", "../x", ""])
def test_an_arm_cannot_take_the_name_of_a_file_of_the_run_directory(name: str) -> None:
    with pytest.raises(ConfigurationError, match="arm"):
        small(arm=[{"name": name}])


def test_evaluations_follow_rounds_or_virtual_time() -> None:
    by_time = small(round={"rounds": 4, "participants": 3, "evaluate_every_s": 600})
    assert by_time.round.evaluate_every_s == 600
    again = parse_experiment(by_time.resolved(), "again")
    assert again == by_time
    assert again.resolved() == by_time.resolved()
    problem = r"round: evaluate_every = 2 beside evaluate_every_s = 600: evaluations follow rounds or virtual"
    with pytest.raises(ConfigurationError, match=problem):
        small(round={"rounds": 4, "participants": 3, "evaluate_every": 2, "evaluate_every_s": 600})


@pytest.mark.parametrize("key", ["seconds_per_round", "evaluate_every_s"])
def test_no_time_passes_between_what_is_every_0_seconds(key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"round\.{key} = 0: input should be greater than 0"):
        small(round={"rounds": 4, "participants": 3, key: 0})


@pytest.mark.parametrize(
    ("closed", "now_s", "reached"),
    [(0, 0, 0), (5, 599, 1), (5, 600, 2), (316, 1199.9, 3), (317, 1200, 4), (318, 1201, 4)],
)
def test_of_nominal_rounds_as_many_are_done_as_have_passed(closed: int, now_s: float, reached: int) -> None:
    timed = Round(rounds=4, participants=3, seconds_per_round=300)
    assert timed.reached(closed, now_s) == reached
    assert Round(rounds=400, participants=3).reached(closed, now_s) == closed


def test_arms_have_one_objective() -> None:
    own = [{"name": "a"}, {"name": "b", "training": {"objective": "multi_label"}}]
    assert "arm 'b': training.objective: arms are compared by one objective; set it in [training] alone" in (
        refusal(small_table(arm=own))
    )
    both = small_table(training={"objective": "multi_label"}, arm=[{"name": "a"}, {"name": "b"}])
    assert {arm.training.objective.kind for arm in parse_experiment(both, "x.toml").arm} == {"multi_label"}
