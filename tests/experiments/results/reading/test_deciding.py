import pytest

from experiments.results.reading.deciding import deciding, differences, run_identities

TABLE = {
    "name": "digits",
    "seeds": [0, 1],
    "trace": {"source": "digits", "noise": 0.5},
    "executor": {"strategy": "auto", "threads": 2},
    "report": {"window": 5},
    "training": {"batch_size": 20},
    "arm": [
        {"name": "global", "clusterer": {"kind": "single"}, "training": {"batch_size": 20}},
        {"name": "fielding", "clusterer": {"kind": "fielding", "threshold": 0.5}, "training": {}},
    ],
}


def changed(**sections: object) -> dict[str, object]:
    return {**TABLE, **sections}


def test_seeds_reports_choices_of_an_atlas_and_threads_decide_nothing():
    other = changed(seeds=[7], report={"window": 1}, training={}, executor={"strategy": "auto", "threads": 1})
    other["atlas"] = {"seeds": [100], "rival": "global"}

    assert list(differences(deciding(TABLE), deciding(other))) == []


def test_what_arms_are_compared_with_decides_nothing():
    other = changed(
        arm=[{**TABLE["arm"][0], "baseline": True}, TABLE["arm"][1]], report={"headline": "fielding"}
    )

    assert deciding(other)["arm"] == deciding(TABLE)["arm"]
    assert run_identities(other) == run_identities(TABLE)


def test_the_command_that_builds_the_trace_decides_nothing():
    other = changed(trace={"source": "digits", "noise": 0.5, "build": "make digits"})

    assert list(differences(deciding(TABLE), deciding(other))) == []


def test_a_difference_names_its_key_and_both_values():
    other = changed(trace={"source": "digits", "noise": 1.0})

    assert list(differences(deciding(TABLE), deciding(other))) == ["trace.noise was 0.5, is 1.0"]
    scored = changed(detection={"tolerance": 3})
    assert list(differences(deciding(TABLE), deciding(scored))) == ["[detection] was left out, is given"]
    assert list(differences(deciding(scored), deciding(TABLE))) == ["[detection] was given, is left out"]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (changed(name="other", seeds=[3]), True),
        (changed(arm=TABLE["arm"][:1]), True),
        (changed(trace={"source": "digits", "noise": 1.0}), False),
        (changed(arm=[{**TABLE["arm"][0], "training": {"batch_size": 10}}]), False),
    ],
)
def test_runs_of_an_arm_are_the_same_if_only_the_name_and_other_arms_differ(other, is_same):
    assert (run_identities(TABLE)["global"] == run_identities(other)["global"]) is is_same
