from typing import Any

from experiments.results.reading.differing_keys import (
    differing_keys,
    differing_values,
    key_values,
    short_names,
)


def an_experiment(*arms: dict[str, Any], name: str = "a", **sections: Any) -> dict[str, Any]:
    fixed = {"name": name, "seeds": [0], "report": {"window": 5}, "round": {"participants": 5}}
    return {**fixed, "arm": list(arms), **sections}


def fielding(threshold: float | str, **settings: Any) -> dict[str, Any]:
    return {
        "name": "fielding",
        "clusterer": {"kind": "fielding", "threshold": threshold, "starts": 10},
        **settings,
    }


SINGLE = {"name": "global", "clusterer": {"kind": "single"}}
THRESHOLD = ("arm", "clusterer", "threshold")


def test_keys_that_no_run_depends_on_do_not_differ():
    one = an_experiment(SINGLE, name="a", seeds=[0], report={"window": 5})
    other = an_experiment(SINGLE, name="b", seeds=[1], report={"window": 1})
    assert differing_keys([one, other]) == []


def test_keys_of_the_experiment_and_of_an_arm_differ():
    one = an_experiment(SINGLE, fielding(0.1))
    other = an_experiment(SINGLE, fielding(0.5), round={"participants": 10})
    paths = differing_keys([one, other])
    assert paths == [("round", "participants"), THRESHOLD]
    assert key_values(one, paths)["fielding"] == [5, 0.1]
    assert key_values(other, paths)["global"] == [10, None]


def test_of_different_parts_only_the_kind_differs():
    one = an_experiment(fielding(0.1))
    other = an_experiment({"name": "fielding", "clusterer": {"kind": "single"}})
    paths = differing_keys([one, other])
    assert paths == [("arm", "clusterer", "kind")]
    assert short_names(paths) == ["clusterer"]


def test_settings_of_one_part_are_compared_beside_another_part():
    experiments = [
        an_experiment(fielding(0.1)),
        an_experiment(fielding(0.5)),
        an_experiment({"name": "fielding", "clusterer": {"kind": "single"}}),
    ]
    paths = differing_keys(experiments)
    assert paths == [("arm", "clusterer", "kind"), THRESHOLD]
    assert key_values(experiments[2], paths) == {"fielding": ["single", None]}


def test_an_absent_key_differs_from_a_present_one():
    one = an_experiment(SINGLE, round={"participants": 5})
    other = an_experiment(SINGLE, round={"participants": 5, "evaluate_clients": 50})
    assert differing_keys([one, other]) == [("round", "evaluate_clients")]


def with_events(*shares: float) -> dict[str, Any]:
    drift = {"kind": "label_mix", "events": [{"round": 20, "share": share} for share in shares]}
    return an_experiment(SINGLE, trace={"source": "digits", "drift": drift})


def test_entries_of_lists_that_are_equally_long_differ_by_their_keys():
    experiments = [with_events(0.1, 0.9), with_events(0.5, 0.9)]
    paths = differing_keys(experiments)
    assert paths == [("trace", "drift", "events", "0", "share")]
    assert short_names(paths) == ["share"]
    assert [key_values(experiment, paths) for experiment in experiments] == [
        {"global": [0.1]},
        {"global": [0.5]},
    ]


def test_lists_that_are_not_equally_long_differ_as_a_whole():
    experiments = [with_events(0.1), with_events(), with_events(0.1, 0.9)]
    paths = differing_keys(experiments)
    assert paths == [("trace", "drift", "events")]
    assert key_values(experiments[0], paths) == {"global": [[{"round": 20, "share": 0.1}]]}


def test_a_list_of_an_arm_is_told_apart_beside_a_longer_one_of_another_arm():
    def rules(mu: float) -> dict[str, Any]:
        chain = [{"kind": "fedprox", "mu": mu}, {"kind": "sgd"}]
        return an_experiment({"name": "prox", "solver": chain}, {**SINGLE, "solver": [{"kind": "sgd"}]})

    paths = differing_keys([rules(0.1), rules(0.2)])
    assert paths == [("arm", "solver", "0", "mu")]
    assert key_values(rules(0.2), paths) == {"prox": [0.2], "global": [None]}


def test_an_arm_that_only_one_has_makes_no_key():
    assert differing_keys([an_experiment(SINGLE), an_experiment(SINGLE, fielding(0.1))]) == []


def test_a_name_is_as_long_as_it_must_be():
    paths = [("arm", "training", "batch_size"), ("arm", "clusterer", "batch_size"), ("round", "rounds")]
    assert short_names(paths) == ["training.batch_size", "clusterer.batch_size", "rounds"]


def test_two_keys_that_could_both_have_the_name_of_a_part_have_their_own():
    paths = [("devices", "availability"), ("devices", "availability", "kind")]
    assert short_names(paths) == ["availability", "kind"]
    assert short_names([("trace", "source"), ("trace", "kind")]) == ["source", "kind"]


def test_differing_values_are_listed_with_both():
    one, other = {"source": "digits", "noise": 0.5}, {"source": "digits", "clients": 9}
    assert list(differing_values(one, other, ("trace",))) == [
        "trace.noise 0.5 and None",
        "trace.clients None and 9",
    ]
