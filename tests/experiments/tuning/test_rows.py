from __future__ import annotations

from typing import Any

import pytest

from emulator.errors import ConfigurationError, UnknownNameError
from experiments.config import parse_experiment
from experiments.extending import expanded
from experiments.tuning.rows import names_of, played_table, rows_of
from tests.experiments.small import merged
from tests.experiments.tuning.hand_made import ARMS, SWAP, rows


def whole(**changes: Any) -> dict[str, Any]:
    return merged(merged(ARMS, {key: value for key, value in SWAP.items() if key != "extends"}), changes)


def test_a_row_has_each_rate_with_each_value_of_its_number_the_smaller_first() -> None:
    [ifca] = rows("ifca")
    assert [tuple(setting.values.values()) for setting in ifca.settings] == [
        (rate, number) for rate in (0.05, 0.2, 0.8) for number in (2, 3, 4)
    ]
    assert names_of(ifca.settings)[:2] == ["ifca-0.05-2", "ifca-0.05-3"]
    assert ifca.settings[1].tries[0].arm == {
        "name": "ifca-0.05-3",
        "clusterer": {"kind": "ifca", "num_models": 3},
        "training": {"model": "linear", "local_steps": 2, "batch_size": 4, "learning_rate": 0.05},
    }
    assert not ifca.is_baseline


def test_a_use_with_a_grid_has_a_try_for_each_combination_and_other_uses_have_one() -> None:
    [fedavg] = rows("fedavg")
    first = fedavg.settings[0]
    assert [(tried.name, tried.use, tried.adaptation) for tried in first.tries] == [
        ("fedavg-0.05-1", "fedavg", "none"),
        ("fedavg+tuned-0.05-1-1", "fedavg+tuned", {"kind": "tuned", "local_steps": 1}),
        ("fedavg+tuned-0.05-1-5", "fedavg+tuned", {"kind": "tuned", "local_steps": 5}),
    ]
    assert fedavg.is_baseline


def test_settings_of_a_use_that_are_not_tried_stay() -> None:
    uses = {"plain": "none", "often": {"kind": "tuned", "again": "data", "local_steps": 3}}
    [row] = rows_of({**ARMS, "arm": [{**ARMS["arm"][0], "evaluate_with": uses}]}, "x.toml", ["fedavg"])
    assert [tried.adaptation for tried in row.settings[0].tries if tried.use == "often"] == [
        {"kind": "tuned", "again": "data", "local_steps": steps} for steps in (1, 5)
    ]


def test_what_is_played_has_all_tries_as_arms_on_the_seeds_of_the_choice_and_the_same_horizon() -> None:
    table = whole(report={"horizon_s": 5.0, "headline": "ifca", "targets": [0.5]}, seeds=[0, 1])
    played = played_table(table, rows_of(table, "x.toml", ["fedavg", "ifca"]), [100, 101])
    experiment = parse_experiment(played, "x.toml")
    assert len(experiment.arm) == 9 * 3 + 9
    assert experiment.seeds == (100, 101)
    assert experiment.report.horizon_s == 5
    assert experiment.round == parse_experiment(played | {"round": table["round"]}, "x.toml").round
    assert {arm.name.partition("-")[0] for arm in experiment.arm} == {"fedavg", "fedavg+tuned", "ifca"}
    assert not any(arm.baseline for arm in experiment.arm)


def test_an_arm_without_a_named_number_is_refused_unless_it_is_not_asked() -> None:
    table = {**ARMS, "arm": [*ARMS["arm"], {"name": "alone", "tune": {}}]}
    assert [row.name for row in rows_of(table, "x.toml", ["ifca", "elsewhere"])] == ["ifca"]
    with pytest.raises(ConfigurationError, match=r"x\.toml: arm\.alone: names no number to tune") as refused:
        rows_of(table, "x.toml", ["ifca", "alone"])
    assert "\n" not in str(refused.value)


def test_a_configuration_without_tune_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"x\.toml: has no \[tune\]; add it"):
        rows_of({"arm": ARMS["arm"]}, "x.toml")


def test_settings_of_an_adaptation_that_no_arm_is_evaluated_with_are_refused() -> None:
    tune = {"learning_rate": [1], "uses": {"tunned": {}}}
    with pytest.raises(UnknownNameError) as refused:
        rows_of({**ARMS, "tune": tune}, "x.toml")
    assert str(refused.value) == (
        "x.toml: tune.uses: unknown kind in evaluate_with 'tunned'; choices: none, tuned; did you mean "
        "'tuned'?"
    )


def test_other_values_than_numbers_are_tried_in_their_order_and_are_named_by_their_place() -> None:
    arm = {"name": "wide", "tune": {"training.model.hidden": [[8], [4]]}}
    table = whole(training={"model": {"kind": "mlp", "hidden": [2]}}, arm=[arm], tune={"uses": {}})
    table["tune"]["uses"] = {}
    [wide] = rows_of(table, "x.toml")
    assert names_of(wide.settings)[:3] == ["wide-0.05-v0", "wide-0.05-v1", "wide-0.2-v0"]
    tried = [setting.tries[0].arm["training"]["model"] for setting in wide.settings[:2]]
    assert tried == [{"kind": "mlp", "hidden": [8]}, {"kind": "mlp", "hidden": [4]}]


def test_a_part_that_all_arms_share_is_tried_with_its_other_settings() -> None:
    arm = {"name": "shared", "tune": {"clusterer.num_models": [2]}}
    table = whole(parts={"clusterer": {"kind": "ifca", "metric": "loss"}}, arm=[arm])
    table["tune"]["uses"] = {}
    [shared] = rows_of(table, "x.toml")
    assert shared.settings[0].tries[0].arm["clusterer"] == {"kind": "ifca", "metric": "loss", "num_models": 2}


def test_an_arm_that_was_made_of_a_use_is_a_row_of_its_own() -> None:
    table = expanded(whole(), "x.toml")
    table["tune"]["uses"] = {}
    made = rows_of(table, "x.toml")
    assert [row.name for row in made] == ["fedavg", "fedavg+tuned", "ifca"]
    assert [len(setting.tries) for row in made for setting in row.settings] == [1] * 27
