import pytest

from coordinator.schedules import SCHEDULES
from experiments.results.reading.configured_arms import (
    KEEP_THE_SIZE_OF_A_VISIT,
    configured_arms,
    headline_arm,
)

ARM = {"name": "a", "clusterer": {"kind": "single"}, "training": {"local_steps": 5, "batch_size": 4}}


def configured(*arms, **tables):
    return list(configured_arms({"arm": arms, **tables}).values())


def test_an_arm_that_was_recorded_before_there_were_adaptations_has_none():
    before, today = configured(ARM, {**ARM, "name": "b", "adaptation": {"kind": "none"}, "baseline": True})
    assert (before.has_adaptation, before.is_baseline, before.has_one_model) == (False, False, True)
    assert before.beside_clusters == today.beside_clusters


def test_rounds_have_a_fixed_duration_by_their_pacing():
    before, timed = configured(ARM, {**ARM, "name": "timed", "pacing": {"kind": "fixed"}})
    assert (before.has_fixed_rounds, timed.has_fixed_rounds) == (False, True)


@pytest.mark.parametrize(
    ("clusterer", "has_trigger"),
    [
        ({"kind": "single"}, False),
        ({"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": 1 / 3}}, True),
        ({"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": "never"}}, False),
        ({"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": 0.0}}, False),
        ({"kind": "fielding", "trigger": {"kind": "pairwise", "threshold": 0}}, True),
        ({"kind": "fielding", "trigger": {"kind": "my_module:Sometimes"}}, True),
        ({"kind": "my_module:Clusters", "trigger": 3}, False),
    ],
)
def test_a_trigger_counts_if_it_may_fire_or_not(clusterer, has_trigger):
    [arm] = configured({**ARM, "clusterer": clusterer})
    assert arm.has_trigger is has_trigger


@pytest.mark.parametrize(
    ("changes", "samples"),
    [
        ({}, 20.0),
        ({"training": {"batch_size": 2}}, 6.0),  # the other key from [training]
        ({"schedules": [{"kind": "adaptive_lr", "every": "round"}]}, 20.0),
        ({"schedules": [{"kind": "my_module:Steps"}]}, None),
        ({"schedules": [{"kind": "by_cluster", "clusters": {"1": {"adam.beta1": 0.6}}}]}, 20.0),
        ({"schedules": [{"kind": "by_cluster", "clusters": {"1": {"local_steps": 6}}}]}, None),
        ({"schedules": [{"kind": "by_cluster", "clusters": 1}]}, None),
        ({"schedules": "adaptive_lr"}, None),
        ({"training": {"local_steps": True}}, None),
        ({"training": {"local_steps": 2**40}}, None),
        ({"training": {"local_epochs": 2, "batch_size": 4}}, None),
        ({"solver": [{"kind": "early_stopping", "epochs": 8}, {"kind": "sgd"}]}, None),
        ({"solver": [{"kind": "fedprox"}, {"kind": "sgd"}]}, 20.0),
        ({"solver": 3}, 20.0),
    ],
)
def test_the_samples_of_a_visit_are_known_unless_a_schedule_may_set_them_or_it_takes_epochs(changes, samples):
    [arm] = configured({**ARM, **changes}, training={"local_steps": 3, "batch_size": 9})
    assert arm.samples_per_visit == samples


def test_an_arm_may_take_steps_where_the_others_take_epochs():
    own, others = configured(
        ARM, {**ARM, "name": "b", "training": {}}, training={"local_epochs": 3, "batch_size": 9}
    )
    assert (own.samples_per_visit, others.samples_per_visit) == (20.0, None)


def test_of_our_schedules_it_is_known_which_change_the_size_of_a_visit():
    keep = {name for name in SCHEDULES.names() if SCHEDULES.find(name).sets == {"learning_rate"}}
    assert set(KEEP_THE_SIZE_OF_A_VISIT) <= keep


@pytest.mark.parametrize(
    ("baselines", "report", "headline"),
    [
        ("", {}, None),
        ("", {"headline": "b"}, "b"),
        ("a", {}, "c"),
        ("ac", {}, "b"),
        ("ac", {"headline": "b"}, "b"),
        ("abc", {}, None),
    ],
)
def test_the_headline_is_on_the_arm_that_is_named_or_on_the_last_that_is_no_baseline(
    baselines, report, headline
):
    arms = [{"name": name, **({"baseline": True} if name in baselines else {})} for name in "abc"]
    assert headline_arm({"arm": arms, "report": report}) == headline


def test_without_a_name_the_headline_skips_oracles():
    arms = [{"name": "a", "baseline": True}, {"name": "b"}, {"name": "c", "clusterer": {"kind": "oracle"}}]
    assert headline_arm({"arm": arms, "report": {}}) == "b"
    assert headline_arm({"arm": arms, "report": {"headline": "c"}}) == "c"
    assert headline_arm({"arm": arms[::2], "report": {}}) is None
