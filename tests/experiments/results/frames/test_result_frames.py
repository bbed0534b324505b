"""Frames of run directories and folders: closed forms worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.errors import InputError
from emulator.messages import NamedNumbers, PairwiseTrigger, Trigger
from emulator.storage.recorded_tables import CLIENTS, VISITS, VISITS_OF_STEPS
from experiments.cli.app import export
from experiments.results.frames.frame_files import as_csv, as_parquet
from experiments.results.frames.result_frames import FRAMES, MADE, NotRecordedError, ResultFrames
from experiments.results.frames.rounds_table import rounds_table
from tests.experiments.results.statistics.detection.test_scores import DECIDED, DRIFTS, FLAGGED
from tests.experiments.synthetic_runs import a_detecting_run, a_directory, a_run, store

CLIENTS_OF_FOUR = {
    "client": [0, 1, 2, 3],
    "device": [7, 7, None, 5],
    "seconds_per_sample": [0.1, 0.1, 0.2, 0.3],
    "download_bytes_per_s": [1e6] * 4,
    "upload_bytes_per_s": [1e5] * 4,
    "latency_s": [0.0] * 4,
    "client_name": ["anna", "bo", "cy", "di"],
    "device_id": ["pixel", "pixel", None, "moto"],
}
A_VISIT = {
    "round": [0],
    "visit": [0],
    "client": [3],
    "device": [None],
    "lane": [0],
    "models": [[0, 2]],
    "dispatched_s": [1.0],
    "requests_s": [0.0],
    "download_s": [2.0],
    "compute_s": [3.0],
    "upload_s": [4.0],
    "end_s": [10.0],
    "outcome": ["completed"],
    "crashed": [False],
    "download_bytes": [40.0],
    "upload_bytes": [40.0],
    "payload_bytes": [80.0],
}


def written(path, arms=("global", "fielding"), seeds=(0, 1), accuracies=(0.25, 0.75), **changes):
    directory = a_directory(path, arms, seeds, **changes)
    for arm in arms:
        for seed in seeds:
            store(directory, a_run(arm, seed, accuracies))
    return directory


def changed(run, number, **changes):
    records = [replace(record, **changes) if record.round == number else record for record in run.records]
    return replace(run, records=records)


def test_the_last_accuracy_of_each_arm_is_grouped_in_the_order_of_the_configuration(tmp_path):
    written(tmp_path / "run", arms=("static", "global"))

    last = ResultFrames.read(tmp_path / "run").frame("rounds").groupby("arm", observed=False).accuracy.last()

    assert last.to_dict() == {"static": 0.75, "global": 0.75}
    assert list(last.index) == ["static", "global"]


def test_rounds_have_the_columns_of_rounds_parquet_with_types_that_do_not_depend_on_the_data(tmp_path):
    run = a_run("global", 0, [0.5, None])
    store(a_directory(tmp_path, ["global"], [0]), changed(run, 1, holding=3))

    rounds = ResultFrames.read(tmp_path).frame("rounds")

    assert list(rounds.columns) == rounds_table([run]).column_names
    assert rounds.holding.dtype == "Int64"
    assert rounds.holding.to_list() == [pd.NA, 3]
    kinds = {"round": "int64", "drift_cells": "Int64", "trigger_fired": "boolean", "closed_s": "float64"}
    assert rounds.dtypes[list(kinds)].map(str).to_dict() == kinds
    assert rounds.accuracy.isna().to_list() == [False, True]


def test_a_bound_of_a_time_is_never_its_value(tmp_path):
    # Evaluations at 10 s and 20 s; the target of 0.9 is never held, that of 0.5 from the first evaluation on.
    written(tmp_path, ("global",), (0,), (0.6, 0.6), report={"window": 1, "targets": [0.9, 0.5]})

    summary = ResultFrames.read(tmp_path).frame("summary").set_index(["figure", "target"])

    never, early = summary.loc[("held_from_s", 0.9)], summary.loc[("held_from_s", 0.5)]
    assert (never.low, never.high, never.status) == (20.0, math.inf, ">=")
    assert (early.low, early.high, early.status) == (0.0, 10.0, "<=")
    assert math.isnan(never.value)
    assert math.isnan(early.value)


def test_the_summary_has_the_figures_of_every_seed(tmp_path):
    directory = a_directory(tmp_path, ["global"], [3, 5])
    for seed, accuracy in ((3, 0.25), (5, 0.75)):
        store(directory, a_run("global", seed, [accuracy, accuracy]))

    frames = ResultFrames.read(tmp_path)
    accuracy = frames.frame("summary")[frames.frame("summary").figure == "mean_accuracy"]

    assert accuracy.seed.to_list() == [3, 5]
    assert accuracy.value.to_list() == [0.25, 0.75]
    assert frames.frame("table").mean_accuracy.to_list() == [0.5]
    assert frames.frame("table").seeds.to_list() == [2]
    assert frames.frame("table").mean_accuracy_low.isna().all()  # no interval with two seeds


def test_frames_name_the_arm_that_a_gain_is_over_if_that_is_not_the_reference_arm(tmp_path):
    arms = [{"name": name, "clusterer": {"kind": "single"}, "baseline": True} for name in ("global", "prior")]
    arms += [{"name": "fielding", "clusterer": {"kind": "fielding"}}]
    directory = a_directory(tmp_path, [], [0], arm=arms, report={"window": 1})
    for name, accuracy in (("global", 0.25), ("prior", 0.5), ("fielding", 0.75)):
        store(directory, a_run(name, 0, [accuracy, accuracy]))

    frames = ResultFrames.read(tmp_path)
    rows = frames.frame("summary")[(frames.frame("summary").arm == "fielding")].set_index("figure")
    row = frames.frame("table").set_index("arm").loc["fielding"]

    assert rows.over["gain_over_best_pp"] == "prior"
    assert rows.value["gain_over_best_pp"] == row.gain_over_best_pp == 25.0
    assert row.gain_over_best_pp_over == "prior"
    assert pd.isna(rows.over["gain_pp"])
    assert "gain_pp_over" not in frames.frame("table")
    assert "gain_of_clusters_pp_over" not in frames.frame("table")  # two arms are alike: nothing was measured
    for frame in (frames.frame("summary"), frames.frame("table")):
        kept = pq.read_table(pa.BufferReader(as_parquet(frame))).to_pydict()
        assert "prior" in kept["over" if "over" in kept else "gain_over_best_pp_over"]
    assert b"fielding,0,gain_over_best_pp,,25.0,25.0,25.0,=,prior\n" in as_csv(frames.frame("summary"))


def test_the_summary_has_each_figure_per_seed_of_summary_json(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding"], [0, 1])
    for arm, score in (("global", 0.25), ("fielding", 0.5)):
        for seed in (0, 1):
            scores = np.full(4, score, dtype=np.float32)
            store(directory, changed(a_run(arm, seed, [0.5]), 0, client_accuracy=scores))

    frames = ResultFrames.read(tmp_path)

    known = (
        frames.frame("summary")[frames.frame("summary").target.isna()]
        .set_index(["arm", "figure", "seed"])
        .value
    )
    arms = frames.experiments[0].summary.as_json()["arms"]
    figures = {
        (arm, name, seed): value
        for arm, content in arms.items()
        for name, figure in content.items()
        if isinstance(figure, dict)
        for seed, value in zip(content["seed_ids"], figure["per_seed"], strict=True)
    }
    assert figures["fielding", "worst_tenth_gain_pp", 1] == 25.0
    for position, value in figures.items():
        assert known[position] == pytest.approx(math.nan if value is None else value, abs=0, nan_ok=True)


def test_a_client_has_the_accuracy_of_the_last_evaluation_by_the_horizon(tmp_path):
    scores = np.array([0.25, np.nan, 0.5, 1.0], dtype=np.float32)
    run = changed(
        a_run("global", 0, [0.5, 0.5, 0.5]), 1, client_accuracy=scores, client_label=np.array([2, -1, 0, 1])
    )
    run = changed(
        run, 2, client_accuracy=np.ones(4, dtype=np.float32), client_label=np.zeros(4, dtype=np.int64)
    )
    report = {"window": 1, "horizon_s": 25.0}  # rounds close at 10, 20 and 30 s
    directory = a_directory(tmp_path, ["global"], [0], report=report)
    store(directory, run)
    pq.write_table(pa.table(CLIENTS_OF_FOUR, CLIENTS), directory.run_file("global", 0, "clients.parquet"))

    clients = ResultFrames.read(tmp_path).frame("clients")

    np.testing.assert_array_equal(clients.accuracy, [0.25, np.nan, 0.5, 1.0])
    assert clients.label.to_list() == [2, pd.NA, 0, 1]
    assert clients.participations.to_list() == [2, 2, 2, 2]
    assert clients.completed.to_list() == [2, 2, 2, 0]
    assert clients.device.to_list() == [7, 7, pd.NA, 5]
    assert list(clients.columns[2:4]) == ["client", "client_name"]
    assert clients.client_name.to_list() == CLIENTS_OF_FOUR["client_name"]
    assert clients.device_id.fillna("none").to_list() == ["pixel", "pixel", "none", "moto"]
    own = pd.DataFrame({"name": ["cy", "anna"], "age": [30, 40]})
    joined = clients.merge(own, left_on="client_name", right_on="name")
    assert joined.set_index("client").age.to_dict() == {0: 40, 2: 30}
    assert clients.seconds_per_sample.to_list() == [0.1, 0.1, 0.2, 0.3]


def test_scores_of_a_sample_of_clients_stand_at_its_clients(tmp_path):
    scores = np.array([0.25, 1.0], dtype=np.float32)
    run = changed(a_run("global", 0, [0.5]), 0, client_accuracy=scores, members=np.array([0, -1, 4, 4]))
    store(
        a_directory(tmp_path, ["global"], [0], round={"evaluate_clients": 2, "log_client_accuracy": True}),
        replace(run, header={"scored_clients": np.array([1, 3])}),
    )

    frames = ResultFrames.read(tmp_path)

    np.testing.assert_array_equal(frames.frame("clients").accuracy, [np.nan, 0.25, np.nan, 1.0])
    assert frames.frame("clients").cluster.to_list() == [0, pd.NA, 4, 4]
    assert frames.missing_columns is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"participants": [-1]}, "client -1 is not one of the 4"),
        ({"participants": [2**40]}, "client 1099511627776 is not one of the 4"),
        ({"members": np.zeros(5, dtype=np.int64)}, "it has the clusters of 5 clients, and there are 4"),
    ],
)
def test_clients_that_a_run_does_not_have_are_refused_in_one_line(tmp_path, changes, problem):
    directory = a_directory(tmp_path, ["global"], [0])
    store(directory, changed(a_run("global", 0, [0.5]), 0, **changes))
    pq.write_table(pa.table(CLIENTS_OF_FOUR, CLIENTS), directory.run_file("global", 0, "clients.parquet"))

    with pytest.raises(InputError, match=f"arm 'global', seed 0: its log is damaged, {problem}"):
        ResultFrames.read(tmp_path).frame("clients")


def test_clients_that_were_not_scored_have_no_column_and_the_option_is_named(tmp_path):
    written(tmp_path, ("global",), (0,))

    frames = ResultFrames.read(tmp_path)

    assert "accuracy" not in frames.frame("clients")
    assert "round.log_client_accuracy = true" in frames.missing_columns


def test_visits_that_were_not_recorded_are_refused_in_one_line_that_names_the_option(tmp_path):
    written(tmp_path)

    with pytest.raises(
        NotRecordedError, match=r"recorded no visits; with round\.log_visits = true"
    ) as refusal:
        ResultFrames.read(tmp_path).frame("visits")

    assert "\n" not in str(refusal.value)


def test_visits_have_the_columns_of_their_file(tmp_path):
    directory = written(tmp_path, ("global", "fielding"), (4,))
    for arm in ("global", "fielding"):
        pq.write_table(pa.table(A_VISIT, VISITS), directory.run_file(arm, 4, "visits.parquet"))

    visits = ResultFrames.read(tmp_path).frame("visits")

    assert list(visits.columns) == ["arm", "seed", *VISITS.names]
    assert visits.arm.to_list() == ["global", "fielding"]
    assert visits.seed.to_list() == [4, 4]
    assert visits.device.dtype == "Int64"
    assert visits.outcome.dtype == "category"
    assert [list(models) for models in visits.models] == [[0, 2], [0, 2]]


def test_of_visits_of_steps_the_dispatch_and_the_staleness_are_whole_numbers_beside_others(tmp_path):
    directory = written(tmp_path, ("global", "buffered"), (4,))
    pq.write_table(pa.table(A_VISIT, VISITS), directory.run_file("global", 4, "visits.parquet"))
    of_steps = pa.table({**A_VISIT, "dispatch": [7], "staleness": [2]}, VISITS_OF_STEPS)
    pq.write_table(of_steps, directory.run_file("buffered", 4, "visits.parquet"))

    frames = ResultFrames.read(tmp_path)

    assert list(frames.frame("visits").columns) == ["arm", "seed", *VISITS_OF_STEPS.names]
    for name, value in (("dispatch", 7), ("staleness", 2)):
        assert frames.frame("visits")[name].dtype == "Int64"
        assert frames.frame("visits")[name].to_list() == [pd.NA, value]
    assert frames.columns("visits").set_index("column").meaning["dispatch"].startswith("number of the disp")


def test_triggers_have_what_was_compared_with_which_limit(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding"], [0])
    store(directory, a_run("global", 0, [0.5] * 4))
    run = a_run("fielding", 0, [0.5] * 4)
    run = changed(run, 0, silhouettes={2: 0.25, 3: None}, clusters=[0, 1])
    run = changed(run, 1, trigger=Trigger(1.0, 4.0, 0.5, 2, False))
    run = changed(run, 2, trigger=PairwiseTrigger(3.0, 2.5, 2, True))
    store(directory, changed(run, 3, trigger=Trigger(1.0, None, 0.5, 1, False)))

    triggers = ResultFrames.read(tmp_path).frame("triggers")

    assert triggers.arm.to_list() == ["fielding"] * 4
    assert triggers["round"].to_list() == [0, 1, 2, 3]
    np.testing.assert_array_equal(triggers["shift"], [np.nan, 1.0, 3.0, 1.0])
    np.testing.assert_array_equal(triggers.limit, [np.nan, 2.0, 2.5, np.nan])
    assert triggers.fired.to_list() == [pd.NA, False, True, False]
    assert triggers.chosen_k.to_list() == [2, pd.NA, pd.NA, pd.NA]
    assert triggers.silhouettes[0] == {2: 0.25, 3: None}


def test_frames_have_the_numbers_that_a_trigger_named(tmp_path):
    directory = a_directory(tmp_path, ["fielding"], [0])
    run = changed(a_run("fielding", 0, [0.5] * 3), 0, trigger=Trigger(1.0, 4.0, 0.5, 2, False))
    run = changed(run, 1, trigger=NamedNumbers({"spread": 0.5, "far": [1.0, 3.5]}, 2, True))
    numbers = {"measured": 2.0, "limit": 3, "spread": 1.5}
    store(directory, changed(run, 2, trigger=NamedNumbers(numbers, 1, False)))

    frames = ResultFrames.read(tmp_path)

    named = [f"trigger.{name}" for name in ("spread", "far", "measured", "limit")]
    assert list(frames.frame("rounds").columns[-5:]) == ["num_abandoned", *named]
    triggers = frames.frame("triggers")
    assert list(triggers.columns[-5:]) == ["silhouettes", *named]
    np.testing.assert_array_equal(triggers["trigger.spread"], [np.nan, 0.5, 1.5])
    assert [None if item is None else list(item) for item in triggers["trigger.far"]] == [
        None,
        [1.0, 3.5],
        None,
    ]
    np.testing.assert_array_equal(triggers["shift"], [1.0, np.nan, 2.0])
    np.testing.assert_array_equal(triggers.limit, [2.0, np.nan, 3.0])
    assert b"1.0 3.5" in as_csv(triggers)
    kept = pq.read_table(pa.BufferReader(as_parquet(triggers)))
    assert kept["trigger.far"].to_pylist() == [None, [1.0, 3.5], None]


def test_between_squared_distances_the_limit_has_the_squared_threshold(tmp_path):
    clusterer = {"kind": "fielding", "representation": "label", "distance": "squared_euclidean"}
    arm = {"name": "fielding", "clusterer": clusterer, "selector": {"kind": "random"}}
    directory = a_directory(tmp_path, ["fielding"], [0], arm=[arm])
    store(directory, changed(a_run("fielding", 0, [0.5]), 0, trigger=Trigger(1.0, 4.0, 0.5, 2, True)))

    assert ResultFrames.read(tmp_path).frame("triggers").limit.to_list() == [1.0]


def test_frames_of_a_folder_begin_with_the_experiment_and_the_keys_that_differ(tmp_path):
    for participants in (20, 40):
        written(
            tmp_path / f"p{participants}",
            ("global",),
            (0,),
            name=f"p{participants}",
            round={"participants": participants},
        )

    frames = ResultFrames.read(tmp_path)

    for name in ("summary", "rounds", "clients", "triggers"):
        assert list(frames.frame(name).columns[:4]) == ["experiment", "participants", "arm", "seed"]
    rounds = frames.frame("rounds")
    assert rounds.participants.dtype == "int64"
    assert rounds.groupby("experiment").participants.first().to_dict() == {"p20": 20, "p40": 40}


def test_frames_of_experiments_with_other_arms_and_figures_are_put_below_each_other(tmp_path):
    written(tmp_path / "one", ("global",), (0,), name="one", report={"window": 1, "targets": [0.5]})
    written(tmp_path / "two", ("static", "global"), (0,), name="two", report={"window": 1})

    frames = ResultFrames.read(tmp_path)

    assert list(frames.frame("summary").arm.cat.categories) == ["global", "static"]
    assert frames.frame("summary").figure.dtype == "category"
    assert frames.frame("table").experiment.to_list() == ["one", "two", "two"]
    assert frames.frame("table").mean_accuracy.to_list() == [0.25, 0.25, 0.25]


def test_the_value_of_an_arms_key_stands_beside_that_arm(tmp_path):
    for size in (1, 2):
        arms = [
            {"name": name, "clusterer": {"kind": "single"}, "training": {"batch_size": batch}}
            for name, batch in (("global", 8), ("fielding", 8 * size))
        ]
        written(tmp_path / f"b{size}", seeds=(0,), name=f"b{size}", arm=arms)

    first = (
        ResultFrames.read(tmp_path)
        .frame("rounds")
        .groupby(["experiment", "arm"], observed=True)
        .batch_size.first()
    )

    assert first.to_list() == [8, 8, 8, 16]


def test_a_whole_number_stays_one_where_other_arms_or_experiments_lack_its_key(tmp_path):
    for name, sizes in (("a", {"batch_size": 8}), ("b", {"batch_size": 16}), ("c", {})):
        arms = [
            {"name": "global", "clusterer": {"kind": "single"}, "training": {}},
            {"name": "other", "clusterer": {"kind": "single"}, "training": sizes},
        ]
        written(tmp_path / name, ("global", "other"), seeds=(0,), name=name, arm=arms)

    rounds = ResultFrames.read(tmp_path).frame("rounds")

    assert rounds.batch_size.dtype == "Int64"
    assert rounds.groupby("experiment").batch_size.max().to_list() == [8, 16, pd.NA]


def test_unfinished_runs_are_left_out_and_named(tmp_path):
    directory = a_directory(tmp_path, ["global", "fielding"], [0, 1])
    for arm, seed in (("global", 0), ("global", 1), ("fielding", 0)):
        store(directory, a_run(arm, seed, [0.5]))
    directory.mark_failed("fielding", 1, "out of memory")

    frames = ResultFrames.read(tmp_path)

    assert frames.unfinished == ("fielding, seed 1 (failed)",)
    assert len(frames.frame("rounds")) == 3


def test_a_directory_that_cannot_be_loaded_is_refused_in_one_line(tmp_path):
    a_directory(tmp_path / "begun", ["global"], [0])
    (tmp_path / "empty").mkdir()

    with pytest.raises(InputError, match="begun: no run is finished"):
        ResultFrames.read(tmp_path / "begun")
    with pytest.raises(InputError, match="empty: not a run directory"):
        ResultFrames.read(tmp_path / "empty")
    with pytest.raises(InputError, match="gone: no such run directory"):
        ResultFrames.read(tmp_path / "gone")


def test_a_log_of_another_version_names_both_versions(tmp_path):
    directory = written(tmp_path, ("global",), (0,))
    directory.manifest_path.write_text('{"versions": {"driftscale": "99.0", "python": "3.11"}}')
    log = directory.run_file("global", 0, "log.jsonl")
    log.write_text(log.read_text().replace('"round":0', '"round":0,"of_the_future":1'))

    with pytest.raises(InputError, match=r"unknown field 'of_the_future'; driftscale 99\.0 recorded it"):
        _ = ResultFrames.read(tmp_path).frame("rounds")


def test_an_unknown_frame_or_run_lists_the_choices(tmp_path):
    written(tmp_path, ("global",), (0,))
    frames = ResultFrames.read(tmp_path)

    with pytest.raises(InputError, match="no frame 'round'; choices: " + ", ".join(MADE)):
        frames.frame("round")
    with pytest.raises(InputError, match="no finished run of arm 'global', seed 9; finished: global 0"):
        frames.experiments[0].run("global", 9)


NO_DETECTOR = {
    "detectors": {},
    "drifts": {"kinds": [], "step": [], "client": [], "kind": [], "before": [], "after": []},
}
DETECTION = {"positive": "changed", "first_round": 2, "tolerance": 3}


def test_detectors_have_a_row_for_each_run_and_one_for_each_drift(tmp_path):
    """The run that statistics/detection/test_scores.py works out by hand, of arm `global` alone."""
    directory = a_directory(tmp_path, ["static", "global"], [0], detection=DETECTION)
    store(directory, a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS))
    store(directory, replace(a_detecting_run("static", 0, {}, {}, []), header=NO_DETECTOR))

    frames = ResultFrames.read(tmp_path)
    detection, drifts = frames.frame("detection"), frames.frame("drifts")

    assert detection[["arm", "seed", "detector", "watched", "drifts", "found", "fn"]].to_dict("records") == [
        {
            "arm": "global",
            "seed": 0,
            "detector": "watch",
            "watched": "training",
            "drifts": 3,
            "found": 1,
            "fn": 3,
        }
    ]
    assert (detection.tp.dtype, detection.recall_all.to_list()) == ("int64", [1 / 3])
    assert list(detection.arm.cat.categories) == ["static", "global"]
    assert drifts.client.to_list() == [0, 1, 2]
    assert drifts.onset.to_list() == drifts.step.to_list() == [3, 4, 5]
    assert drifts.kind.to_list() == ["sudden", "sudden", "gradual"]
    assert drifts.asked_round.to_list() == [4, 5, pd.NA]
    assert drifts.found_round.to_list() == [5, pd.NA, pd.NA]
    assert drifts.delay_rounds.to_list() == [2, pd.NA, pd.NA]
    np.testing.assert_array_equal(drifts.delay_s, [30.0, np.nan, np.nan])
    np.testing.assert_array_equal(drifts.asked_s, [20.0, 20.0, np.nan])
    np.testing.assert_array_equal(drifts.found_s, [10.0, np.nan, np.nan])
    for frame in (detection, drifts):
        assert pq.read_table(pa.BufferReader(as_parquet(frame))).num_rows == len(frame)


def test_frames_of_detectors_have_their_types_also_without_a_row(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0], detection=DETECTION)
    store(directory, replace(a_detecting_run("global", 0, {}, {}, []), header=NO_DETECTOR))
    frames = ResultFrames.read(tmp_path)
    assert len(frames.frame("detection")) == len(frames.frame("drifts")) == 0
    assert frames.frame("drifts").dtypes[["client", "found_round", "delay_s"]].map(str).to_list() == [
        *("int64", "Int64", "float64")
    ]


def test_drifts_have_the_same_types_beside_a_run_without_a_drift(tmp_path):
    types = []
    for seeds in ([0], [0, 1]):
        directory = a_directory(tmp_path / f"{len(seeds)}", ["global"], seeds, detection=DETECTION)
        store(directory, a_detecting_run("global", 0, DECIDED, FLAGGED, DRIFTS))
        for seed in seeds[1:]:
            store(directory, a_detecting_run("global", seed, DECIDED, FLAGGED, []))
        types.append(ResultFrames.read(directory.path).frame("drifts").dtypes.map(str).to_dict())
    assert types[1] == types[0]


def test_frames_of_detectors_that_were_not_recorded_say_how_to_record_them(tmp_path):
    written(tmp_path, ("global",), (0,))
    frames = ResultFrames.read(tmp_path)
    for name in ("detection", "drifts"):
        with pytest.raises(NotRecordedError, match=r"no decisions of detectors; with a table \[detection\]"):
            frames.frame(name)


def test_models_have_a_row_for_each_evaluation_cluster_and_concept(tmp_path):
    recorded = {"participants": 20, "over_commit": 1.3, "rounds": 150, "log_model_accuracy": True}
    directory = a_directory(tmp_path, ["global", "alone"], [4], round=recorded)
    run = a_run("global", 4, [0.5, None], clusters=[2, 7])
    measured = replace(run.records[0], accuracy_by_concept={0: [0.25, 0.5], 3: [0.75, 1.0]})
    store(directory, replace(run, records=[measured, run.records[1]]))
    store(directory, a_run("alone", 4, [0.5]))

    frame = ResultFrames.read(tmp_path).frame("model_accuracy")

    assert frame.columns.to_list() == ["arm", "seed", "round", "closed_s", "cluster", "concept", "accuracy"]
    assert frame.to_numpy().tolist() == [
        ["global", 4, 0, 10.0, 2, 0, 0.25],
        ["global", 4, 0, 10.0, 2, 3, 0.75],
        ["global", 4, 0, 10.0, 7, 0, 0.5],
        ["global", 4, 0, 10.0, 7, 3, 1.0],
    ]
    assert list(frame.arm.cat.categories) == ["global", "alone"]


def test_accuracies_of_models_have_their_types_also_without_a_row(tmp_path):
    recorded = {"participants": 20, "over_commit": 1.3, "rounds": 150, "log_model_accuracy": True}
    store(a_directory(tmp_path, ["alone"], [0], round=recorded), a_run("alone", 0, [0.5]))
    frame = ResultFrames.read(tmp_path).frame("model_accuracy")
    assert (len(frame), frame.cluster.dtype, frame.accuracy.dtype) == (0, "int64", "float64")


def test_accuracies_of_models_that_were_not_recorded_are_refused(tmp_path):
    written(tmp_path, ("global",), (0,))
    with pytest.raises(
        NotRecordedError, match=r"no accuracies of models by concept; with round\.log_model_accuracy = true"
    ):
        ResultFrames.read(tmp_path).frame("model_accuracy")


def test_the_help_of_the_command_that_writes_them_names_all():
    assert export.__doc__ is not None
    assert [name for name in FRAMES if name not in export.__doc__] == []
