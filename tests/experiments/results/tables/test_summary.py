import json
from dataclasses import replace

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.summary import summarise, write_summary
from tests.experiments.synthetic_runs import a_directory, a_drifting_run, a_record, a_run, store

ACCURACY = [
    *("mean_accuracy", "gain_pp", "gain_after_drift_pp", "final_accuracy", "final_gain_pp"),
    "adjusted_rand_index",
]
BASELINES = ["gain_over_best_pp", "gain_of_clusters_pp", "gap_closed"]
PERSONAL = [
    *("mean_personal_accuracy", "personal_gain_pp", "personal_gain_over_best_pp"),
    *("personal_gain_of_clusters_pp", "final_personal_accuracy", "final_personal_gain_pp"),
    *("mean_trained_accuracy", "mean_pooled_accuracy"),
    *("memory_age", "memory_age_90", "without_memory"),
    *(f"personal_accuracy_by_age_{band}" for band in (1, 2, 3)),
]
DRIFT = [
    f"{name}_{figure}"
    for name in ("accuracy", "personal_accuracy", "trained_accuracy", "pooled_accuracy")
    for figure in (
        *("before_drift", "after_drift", "drift_difference_pp", "drift_area_pp_h"),
        *("after_drift_gain_pp", "recovery"),
    )
]
UPDATES = [
    *("absorbed_updates", "server_steps", "mean_staleness", "largest_staleness"),
    *("without_visits", "busiest_tenth", "effective_participants"),
    *("accuracy_with_visits", "accuracy_without_visits"),
]
COSTS = [
    *("rounds", "global_reclusterings", "mean_client_distance", "final_client_distance"),
    *("download_bytes", "upload_bytes"),
    *(
        "control_bytes",
        "models_sent",
        "models_trained_per_client",
        "trained_samples_per_client",
        "adaptation_s_per_client",
        "waiting_for_responses_s",
        "clusters",
        "moves",
        "dropouts",
        "abandoned",
        "crashed_visits",
        "rejected_updates",
    ),
    *("nonfinite_reports", "virtual_time_s", "wall_s"),
]
CHANGES = [
    *("changed_cluster", "accuracy_lost_pp", "largest_loss_pp", "reclustering_dip_pp"),
    *("models_replaced", "clustering_wall_s"),
]
HONEST = ["honest_accuracy", "byzantine_accuracy"]
CLIENTS = ["mean_client_accuracy", "worst_tenth"]
BESIDE_REFERENCE = ["worst_tenth_gain_pp", "worse_off", "better_off", "unchanged", "mean_loss_pp"]
TIMES = [
    *("time_below_s", "saved_s", "below_after_drift", "first_reached_s"),
    *("held_before_s", "held_from_s", "speedup"),
]


def summarise_arms(runs, **changes):
    settings = {"name": "synthetic", "window": 1, "reference_arm": "global", **changes}
    return summarise(runs, **settings).as_json()


@pytest.fixture
def two_arms():
    """Arm global reaches 0.5 after 40 s; fielding after 20 s, in seed 1 after 10 s, and it ends at 0.75."""
    return [
        a_run("global", 0, [0.125, 0.25, 0.25, 0.5]),
        a_run("global", 1, [0.125, 0.25, 0.25, 0.5]),
        a_run("fielding", 0, [0.25, 0.5, 0.5, 0.75], moved=2),
        a_run("fielding", 1, [0.5, 0.5, 0.5, 0.75], reclustered=True),
    ]


def test_the_schema_is_exactly_the_promised_one(two_arms):
    summary = summarise_arms(two_arms, targets=[0.5, "reference"], event_rounds=[1])
    assert list(summary) == [
        *("version", "name", "reference_arm", "window"),
        *("horizon", "arms", "targets", "offline_clients_heard", "marked_seeds", "finished"),
    ]
    assert summary["version"] == 6
    assert list(summary["arms"]) == ["global", "fielding"]
    for arm in summary["arms"].values():
        assert list(arm) == [
            *("seeds", "seed_ids", *ACCURACY, *BASELINES, *PERSONAL, *DRIFT),
            *(*UPDATES, *COSTS, "reclustered_seeds", "reclustering_rounds"),
            *(*CHANGES[:2], "accuracy_lost_difference_pp", *CHANGES[2:4]),
            *("reclustering_dip_difference_pp", *CHANGES[4:]),
            *(*HONEST, "honest_gain_pp"),
            *(*CLIENTS, *BESIDE_REFERENCE),
        ]
        for figure in (
            "mean_accuracy",
            "final_accuracy",
            "adjusted_rand_index",
            *(key for key in PERSONAL if "gain" not in key),
            *COSTS,
            *CHANGES,
            *HONEST,
            *CLIENTS,
        ):
            assert list(arm[figure]) == ["mean", "ci95", "per_seed"]
            assert len(arm[figure]["per_seed"]) == arm["seeds"] == 2
    assert list(summary["arms"]["fielding"]["gain_pp"]) == ["mean", "ci95", "per_seed", "ci95_joint"]
    assert summary["arms"]["global"]["gain_pp"] is None
    assert [table["target"] for table in summary["targets"]] == [0.5, "reference"]
    for table in summary["targets"]:
        assert list(table) == ["target", "accuracy", "counted_from", "arms"]
        assert table["counted_from"] == "event"
        fielding = table["arms"]["fielding"]
        assert list(fielding) == [*TIMES, "held", "seeds"]
        for figure in TIMES:
            assert list(fielding[figure]) == ["median", "interval", "level", "per_seed"]
            assert [list(seed) for seed in fielding[figure]["per_seed"]] == [["low", "high", "status"]] * 2
        assert table["arms"]["global"]["speedup"] is None


def test_clusters_are_those_that_exist_at_the_horizon():
    splitting = a_run("global", 0, [0.25] * 4)
    grown = [replace(record, clusters=list(range(record.round + 1))) for record in splitting.records]
    summary = summarise_arms([replace(splitting, records=grown)], horizon_s=25)
    assert summary["arms"]["global"]["clusters"]["per_seed"] == [
        2.0
    ]  # rounds of 10 s: two have ended by then


def test_the_costs_of_an_arm_are_those_worked_out_by_hand(two_arms):
    fielding = summarise_arms(two_arms)["arms"]["fielding"]
    assert {figure: fielding[figure]["per_seed"] for figure in COSTS} == {
        "rounds": [4.0, 4.0],
        "global_reclusterings": [0.0, 4.0],
        "mean_client_distance": [0.4, 0.4],
        "final_client_distance": [0.4, 0.4],
        "download_bytes": [1600.0, 1600.0],
        "upload_bytes": [1200.0, 1200.0],
        "control_bytes": [64.0, 64.0],
        "models_sent": [28.0, 28.0],
        "models_trained_per_client": [None, None],
        "trained_samples_per_client": [None, None],
        "adaptation_s_per_client": [None, None],
        "waiting_for_responses_s": [4.0, 4.0],
        "moves": [8.0, 0.0],
        "clusters": [1.0, 1.0],
        "dropouts": [4.0, 4.0],
        "abandoned": [0.0, 0.0],
        "crashed_visits": [0.0, 0.0],
        "rejected_updates": [0.0, 0.0],
        "nonfinite_reports": [0.0, 0.0],
        "virtual_time_s": [40.0, 40.0],
        "wall_s": [2.0, 2.0],
    }
    assert fielding["reclustering_rounds"] == [[], [0, 1, 2, 3]]


def test_arms_are_marked_whose_clients_reported_after_the_first_round_although_offline(two_arms):
    # All clients of `fielding` register, and its changed data is checked once more; `static` only registers.
    arms = {"global": [0, 0, 0, 0], "static": [4, 0, 0, 0], "fielding": [4, 0, 3, 0]}

    def marked(hear):
        runs = [
            ReportedRun(
                arm,
                0,
                {"hear": hear},
                [a_record(number, changed=count) for number, count in enumerate(changed)],
                two_arms[0].timing,
            )
            for arm, changed in arms.items()
        ]
        return summarise_arms(runs)["offline_clients_heard"]

    assert marked("everyone") == ["fielding"]
    assert marked("check_in") == []
    assert summarise_arms(two_arms)["offline_clients_heard"] == []


def test_what_has_no_bound_is_null_in_json_and_has_the_sign_of_what_is_known(two_arms):
    (table,) = summarise_arms(two_arms, targets=[0.6])["targets"]
    assert table["arms"]["global"]["held_from_s"]["median"] == {"low": 40.0, "high": None, "status": ">="}
    assert (
        table["arms"]["fielding"]["speedup"]["per_seed"] == [{"low": 1.0, "high": None, "status": ">="}] * 2
    )


def test_logs_cut_after_the_horizon_give_identical_figures():
    rng = np.random.default_rng(8)
    rounds = {"global": 60, "fielding": 50}
    runs = [a_run(arm, seed, rng.random(count)) for arm, count in rounds.items() for seed in range(4)]
    cut = [
        ReportedRun(run.arm, run.seed, run.header, run.records[: 33 + run.seed], run.timing) for run in runs
    ]
    settings = {"horizon_s": 325.0, "targets": [0.4, "reference"], "event_rounds": [12], "window": 3}
    long, short = summarise_arms(runs, **settings), summarise_arms(cut, **settings)
    for summary in (long, short):  # figures of whole runs
        summary["horizon"].pop("longest_s")
        summary["horizon"].pop("warnings")
        summary.pop("finished")
        for arm in summary["arms"].values():
            arm.pop("virtual_time_s")
    assert long == short


def test_of_a_run_only_the_rounds_up_to_the_horizon_cost_anything(two_arms):
    fielding = summarise_arms(two_arms, horizon_s=25.0)["arms"]["fielding"]
    assert fielding["rounds"]["per_seed"] == [2.0, 2.0]
    assert fielding["download_bytes"]["per_seed"] == [800.0, 800.0]
    assert fielding["reclustering_rounds"] == [[], [0, 1]]
    assert fielding["virtual_time_s"]["per_seed"] == [40.0, 40.0]


def test_arms_are_paired_on_the_seeds_they_share(two_arms):
    runs = [*two_arms[:1], *two_arms[2:]]  # without seed 1 of global
    summary = summarise_arms(runs)
    assert summary["arms"]["fielding"]["seed_ids"] == [0]
    fielding = summary["arms"]["fielding"]
    assert fielding["gain_pp"]["per_seed"] == [pytest.approx(100 * (1.25 - 0.625) / 3)]
    assert fielding["final_gain_pp"]["per_seed"] == [25.0]  # 0.75 against 0.5 at the horizon


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


def costs_of(run, **settings):
    return summarise_arms([replace(run)], **settings)["arms"]["global"]


def test_models_trained_per_client_are_uploads_over_completed_visits_and_the_size_of_a_model():
    run = a_run("global", 0, [0.5, 0.5])
    run.header["num_parameters"] = 25  # models of 100 bytes: in both rounds, three visits upload 300 bytes
    assert costs_of(run)["models_trained_per_client"]["per_seed"] == [1.0]
    # Two models a visit in the first round; in the second, one of a visit that drops out half-way.
    run.records[0] = a_record(0, upload_bytes=600.0)
    run.records[1] = a_record(1, upload_bytes=650.0, completed=[], dropped=[0, 1, 2, 3])
    assert costs_of(run)["models_trained_per_client"]["per_seed"] == [pytest.approx(6.5 / 3)]
    assert costs_of(run, horizon_s=10.0)["models_trained_per_client"]["per_seed"] == [2.0]
    run.records[0] = a_record(0, completed=[], dropped=[0, 1, 2, 3])
    assert costs_of(run)["models_trained_per_client"]["per_seed"] == [None]


def test_samples_trained_per_client_are_models_uploaded_times_the_samples_of_a_visit_over_all_clients():
    run = a_run("global", 0, [0.5, 0.5])
    run.header["num_parameters"] = 25  # models of 100 bytes: in both rounds, three visits upload 300 bytes
    arm = {"name": "global", "training": {"local_steps": 5, "batch_size": 4}}
    configured = configured_arms({"arm": [arm]})
    found = costs_of(run, configured=configured)["trained_samples_per_client"]
    assert found["per_seed"] == [6 * 5 * 4 / 4]  # of four clients
    first = costs_of(run, configured=configured, horizon_s=10.0)["trained_samples_per_client"]
    assert first["per_seed"] == [3 * 5 * 4 / 4]
    unknown = configured_arms({"arm": [{**arm, "schedules": [{"kind": "theirs"}]}]})
    assert costs_of(run, configured=unknown)["trained_samples_per_client"]["per_seed"] == [None]


def test_samples_trained_are_whole_whatever_part_of_an_upload_came_and_however_bytes_were_added():
    run = a_run("global", 0, [0.5])
    run.header["num_parameters"] = 25
    configured = configured_arms(
        {"arm": [{"name": "global", "training": {"local_steps": 5, "batch_size": 4}}]}
    )

    def samples(upload_bytes):
        run.records[0] = a_record(0, upload_bytes=upload_bytes)
        return costs_of(run, configured=configured)["trained_samples_per_client"]["per_seed"]

    assert samples(300.0 - 1e-9) == samples(300.0 + 1e-9) == [15.0]
    assert samples(312.0) == [62 / 4]  # 12 bytes of 100 are 2.4 of 20 samples


@pytest.mark.parametrize(("upload_bytes", "samples"), [(300.0, (3 * 5 * 4 + 80) / 4), (0.0, 80 / 4)])
def test_what_an_adaptation_trains_is_part_of_the_samples_and_has_its_own_time(upload_bytes, samples):
    run = a_run("global", 0, [0.5, 0.5], upload_bytes=upload_bytes)
    run.header["num_parameters"] = 25
    run.records[0] = replace(run.records[0], adaptation_samples=40.0, adaptation_s=2.0)
    run.records[1] = replace(run.records[1], adaptation_samples=80.0, adaptation_s=6.0)
    arm = {"name": "global", "training": {"local_steps": 5, "batch_size": 4}}
    found = costs_of(run, configured=configured_arms({"arm": [arm]}))
    assert found["trained_samples_per_client"]["per_seed"] == [samples]
    assert found["adaptation_s_per_client"]["per_seed"] == [1.5]


def test_waiting_is_from_the_end_of_a_round_to_the_next_dispatch():
    run = a_run("global", 0, [0.5, 0.5, 0.5])
    # Dispatch 3 s after 0 s, 1 s after 10 s, and 6 s after 20 s, of which 4 s are before the round opens.
    run.records[0] = a_record(0, dispatched_s=3.0)
    run.records[2] = a_record(2, opened_s=24.0, dispatched_s=26.0)
    assert costs_of(run)["waiting_for_responses_s"]["per_seed"] == [10.0]
    assert costs_of(run, horizon_s=20.0)["waiting_for_responses_s"]["per_seed"] == [4.0]


def test_distances_that_were_never_measured_are_null():
    run = a_run("global", 0, [0.5], mean_client_distance=None)
    figures = summarise_arms([run])["arms"]["global"]
    assert figures["mean_client_distance"]["mean"] is None
    assert figures["final_client_distance"]["mean"] is None


def test_distances_are_averaged_over_the_rounds_that_have_one_and_the_last_one_is_that_at_the_horizon():
    run = a_run("global", 0, [0.5, None, 0.5, None])
    for number, distance in enumerate([0.25, None, 0.75, None]):
        run.records[number] = a_record(number, mean_client_distance=distance)
    figures = summarise_arms([run])["arms"]["global"]
    assert figures["mean_client_distance"]["mean"] == 0.5
    assert figures["final_client_distance"]["mean"] == 0.75


def test_the_file_has_what_the_configuration_reports_and_the_same_bytes_twice(tmp_path, two_arms):
    report = {"window": 2, "targets": [0.3, "reference"], "horizon_s": 35.0}
    drift = {"kind": "label_mix", "events": [{"round": 2, "share": 0.5, "mixes": 2}]}
    directory = a_directory(
        tmp_path, ["global", "fielding"], [0, 1], report=report, trace={"source": "digits", "drift": drift}
    )
    for run in two_arms:
        store(directory, run)
    summary = write_summary(directory, directory.reported_runs()).as_json()
    first = directory.summary_path.read_bytes()
    write_summary(directory, directory.reported_runs())
    assert directory.summary_path.read_bytes() == first
    assert json.loads(first) == json.loads(json.dumps(summary))
    assert summary["window"] == 2
    assert summary["horizon"]["horizon_s"] == 35.0
    assert [table["accuracy"]["per_seed"] for table in summary["targets"]] == [[0.3, 0.3], [0.25, 0.25]]
    assert summary["arms"]["fielding"]["gain_after_drift_pp"] is not None


def test_no_figure_of_an_arm_with_a_trigger_has_a_t_interval():
    trigger = {"kind": "fielding", "trigger": {"kind": "centre_shift", "threshold": 0.5}}
    configured = configured_arms({"arm": [{"name": "global", "clusterer": trigger}, {"name": "static"}]})
    runs = [a_run(arm, seed, [0.1 * seed, 0.5]) for arm in configured for seed in range(3)]
    summary = summarise_arms(runs, targets=["reference"], configured=configured)
    assert summary["targets"][0]["accuracy"]["ci95"] is None
    finished = summary["finished"]["arms"]
    assert finished["global"]["models_sent"]["ci95"] is None
    assert finished["static"]["models_sent"]["ci95"] is not None
    assert finished["static"]["relative_models_sent"]["ci95"] is None  # beside an arm with one
