import json

import pytest

from emulator.errors import InputError
from experiments.summary import summarise, write_summary
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_record, a_run, store

FIGURES = [
    "target_accuracy",
    "final_accuracy",
    "gain_pp",
    "mean_accuracy",
    "mean_gain_pp",
    "accuracy_omitting_drift",
    "accuracy_including_drift",
    "tta_s",
    "speedup",
    "global_reclusterings",
    "mean_client_distance",
    "virtual_time_s",
    "wall_s",
    "download_bytes",
    "upload_bytes",
    "control_bytes",
    "models_sent",
    "moves",
    "dropouts",
    "abandoned",
    "crashed_visits",
    "rejected_updates",
    "relative_models_sent",
]


def summarise_arms(runs, **changes):
    settings = {"name": "synthetic", "window": 1, "reference_arm": "global", **changes}
    return summarise(runs, **settings)


@pytest.fixture
def two_arms():
    """global ends at 0.5 after 40 s; fielding is there after 20 s, in seed 1 after 10 s, and ends at 0.75."""
    return [
        a_run("global", 0, [0.125, 0.25, 0.25, 0.5]),
        a_run("global", 1, [0.125, 0.25, 0.25, 0.5]),
        a_run("fielding", 0, [0.25, 0.5, 0.5, 0.75], moved=2),
        a_run("fielding", 1, [0.5, 0.5, 0.5, 0.75], reclustered=True),
    ]


def test_the_schema_is_exactly_the_promised_one(two_arms):
    summary = summarise_arms(two_arms)
    assert list(summary) == ["version", "name", "reference_arm", "window", "arms", "finished"]
    assert summary["version"] == 3
    assert list(summary["arms"]) == ["global", "fielding"]
    for arm in summary["arms"].values():
        assert list(arm) == [
            "seeds",
            "reached",
            "seed_ids",
            "censored_seeds",
            *FIGURES,
            "reclustering_rounds",
        ]
        for figure in FIGURES:
            assert list(arm[figure]) == ["mean", "ci95", "per_seed"]
            assert len(arm[figure]["per_seed"]) == arm["seeds"] == 2


def test_figures_are_those_worked_out_by_hand(two_arms):
    fielding = summarise_arms(two_arms)["arms"]["fielding"]
    per_seed = {figure: fielding[figure]["per_seed"] for figure in FIGURES}
    assert per_seed == {
        "target_accuracy": [0.5, 0.5],
        "final_accuracy": [0.75, 0.75],
        "gain_pp": [25.0, 25.0],
        "mean_accuracy": [0.5, 0.5625],
        "mean_gain_pp": [21.875, 28.125],
        "accuracy_omitting_drift": [None, None],
        "accuracy_including_drift": [None, None],
        "tta_s": [20.0, 10.0],
        "speedup": [2.0, 4.0],
        "global_reclusterings": [0, 4],
        "mean_client_distance": [0.4, 0.4],
        "virtual_time_s": [40.0, 40.0],
        "wall_s": [2.0, 2.0],
        "download_bytes": [1600.0, 1600.0],
        "upload_bytes": [1200.0, 1200.0],
        "control_bytes": [64.0, 64.0],
        "models_sent": [28.0, 28.0],
        "moves": [8, 0],
        "dropouts": [4, 4],
        "abandoned": [0, 0],
        "crashed_visits": [0, 0],
        "rejected_updates": [0, 0],
        "relative_models_sent": [1.0, 1.0],
    }
    assert fielding["speedup"]["mean"] == pytest.approx(8**0.5)
    assert fielding["reclustering_rounds"] == [[], [0, 1, 2, 3]]


def test_the_reference_arm_reaches_its_own_target_at_a_speedup_of_one(two_arms):
    reference = summarise_arms(two_arms)["arms"]["global"]
    assert reference["reached"] == 2
    assert reference["speedup"] == {"mean": 1.0, "ci95": [1.0, 1.0], "per_seed": [1.0, 1.0]}
    assert reference["gain_pp"]["mean"] == 0.0


def test_a_seed_that_never_reaches_the_target_counts_with_the_runs_end_and_is_listed():
    runs = [a_run("global", seed, [0.25, 0.5]) for seed in (3, 4)]
    runs += [a_run("fielding", 3, [0.5, 0.5]), a_run("fielding", 4, [0.5, 0.25])]
    fielding = summarise_arms(runs)["arms"]["fielding"]
    assert fielding["reached"] == 1
    assert fielding["censored_seeds"] == [4]
    assert fielding["tta_s"]["per_seed"] == [10.0, 20.0]


def test_a_configured_target_holds_for_every_arm_and_seed(two_arms):
    summary = summarise_arms(two_arms, target=0.6)
    assert summary["arms"]["global"]["reached"] == 0
    assert summary["arms"]["fielding"]["target_accuracy"]["per_seed"] == [0.6, 0.6]
    assert summary["arms"]["fielding"]["tta_s"]["per_seed"] == [40.0, 40.0]


def test_arms_are_paired_on_the_seeds_they_share(two_arms):
    runs = [*two_arms[:1], *two_arms[2:]]  # global lacks seed 1
    summary = summarise_arms(runs)
    assert summary["arms"]["fielding"]["seed_ids"] == [0]
    assert summary["arms"]["fielding"]["gain_pp"] == {"mean": 25.0, "ci95": None, "per_seed": [25.0]}


def test_an_arm_that_shares_no_seed_with_the_reference_is_left_out(two_arms):
    assert list(summarise_arms([two_arms[0], two_arms[3]])["arms"]) == ["global"]


def test_without_a_finished_reference_run_nothing_is_compared_and_the_rest_is_there(two_arms):
    summary = summarise_arms(two_arms[2:])
    assert summary["arms"] == {}
    fielding = summary["finished"]["arms"]["fielding"]
    assert fielding["models_sent"]["per_seed"] == [28.0, 28.0]
    assert fielding["relative_models_sent"] == {"mean": None, "ci95": None, "per_seed": []}


def test_without_any_run_there_is_no_summary():
    with pytest.raises(InputError, match="synthetic: there is no finished run"):
        summarise_arms([])


def test_what_needs_no_reference_is_of_every_finished_run_with_how_many_data_steps_are_scored():
    runs = [
        a_drifting_run("global", 0, [0.5, 0.5], [[0, 0], [0, 0]]),
        a_drifting_run("oracle", 0, [0.75, 0.75], [[0, 0], [0, 1]], models_sent=20.0),
        a_drifting_run("oracle", 1, [1.0], [[0, 0]]),
    ]
    finished = summarise_arms(runs)["finished"]
    assert (finished["steps"], finished["scored_steps"]) == (2, 1)
    oracle = finished["arms"]["oracle"]
    assert oracle["seed_ids"] == [0, 1]
    assert oracle["accuracy_omitting_drift"]["per_seed"] == [0.75, 1.0]
    assert oracle["accuracy_including_drift"]["per_seed"] == [0.375, 0.5]
    assert oracle["relative_models_sent"]["per_seed"] == [pytest.approx(2.0)]


def test_of_a_trace_without_concepts_no_step_is_scored(two_arms):
    finished = summarise_arms(two_arms)["finished"]
    assert (finished["steps"], finished["scored_steps"]) == (None, None)
    assert finished["arms"]["global"]["accuracy_omitting_drift"]["mean"] is None


def test_distances_that_were_never_measured_are_null():
    run = a_run("global", 0, [0.5], mean_client_distance=None)
    assert summarise_arms([run])["arms"]["global"]["mean_client_distance"]["mean"] is None


def test_distances_are_averaged_over_the_rounds_that_have_one():
    run = a_run("global", 0, [0.5, None, 0.5])
    for number, distance in enumerate([0.25, None, 0.75]):
        run.records[number] = a_record(number, mean_client_distance=distance)
    assert summarise_arms([run])["arms"]["global"]["mean_client_distance"]["mean"] == 0.5


def test_the_file_has_the_configured_window_and_target_and_the_same_bytes_twice(tmp_path, two_arms):
    directory = a_directory(tmp_path, ["global", "fielding"], [0, 1], report={"window": 2, "target": 0.3})
    for run in two_arms:
        store(directory, run)
    summary = write_summary(directory, directory.finished_runs())
    first = directory.summary_path.read_bytes()
    write_summary(directory, directory.finished_runs())
    assert directory.summary_path.read_bytes() == first
    assert json.loads(first) == summary
    assert summary["window"] == 2
    assert summary["arms"]["global"]["target_accuracy"]["mean"] == 0.3
