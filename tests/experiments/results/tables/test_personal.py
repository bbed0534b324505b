"""Personal accuracies by made-up runs of ten-second rounds: arm `tuned` has none, and `ditto` all of them."""

from dataclasses import replace

import pytest

from experiments.results.reading.configured_arms import configured_arms
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables import accuracy
from experiments.results.tables.personal import TABLE, WHICH_IS_WHICH
from experiments.results.tables.summary import summarise
from experiments.results.tables.table import text_table
from tests.experiments.synthetic_runs import TIMING, a_record, a_run


def a_personal_run(seed, personal=(0.5, 0.75, 0.75, 1.0)):
    """A run of four clients; in the first round three of them remember nothing."""
    ages = [(1, 0, 0), (3, 1, 0), (3, 1, 0), (3, 1, 0)]
    records = [
        a_record(
            number,
            accuracy=0.5,
            personal_accuracy=accuracy,
            trained_accuracy=1.0,
            pooled_accuracy=0.25,
            memory_age=1.0 + number,
            memory_age_90=2.0 + 2 * number,
            without_memory=0.75 if number == 0 else 0.0,
            personal_accuracy_by_age={1: accuracy, 2: 0.5 if clients[1] else None, 10: None},
            clients_by_age=dict(zip((1, 2, 10), clients, strict=True)),
        )
        for number, (accuracy, clients) in enumerate(zip(personal, ages, strict=True))
    ]
    return ReportedRun("ditto", seed, {}, records, TIMING)


def a_summary(runs, **settings):
    return summarise(runs, **{"name": "x", "window": 2, "reference_arm": "tuned", **settings})


@pytest.fixture
def both():
    return a_summary([a_run("tuned", 0, [0.5] * 4), a_personal_run(0)])


def test_the_figures_of_an_arm_are_those_worked_out_by_hand(both):
    tuned, ditto = both.rows
    assert {of.key: ditto[of.key].per_seed for of in TABLE.quantities if ditto[of.key] is not None} == {
        "mean_personal_accuracy": [(0.5 + 0.75 + 0.75) / 3],  # 10 to 40 s, each until the next
        "personal_gain_pp": [pytest.approx(100 * (2 / 3 - 0.5))],
        "final_personal_accuracy": [(0.75 + 1.0) / 2],
        "final_personal_gain_pp": [pytest.approx(100 * (0.875 - 0.5))],
        "mean_trained_accuracy": [1.0],
        "mean_pooled_accuracy": [0.25],
        "memory_age": [2.5],
        "memory_age_90": [5.0],
        "without_memory": [0.1875],
        "personal_accuracy_by_age_1": [(0.5 + 3 * 0.75 + 3 * 0.75 + 3 * 1.0) / 10],
        "personal_accuracy_by_age_2": [0.5],
        "personal_accuracy_by_age_3": [None],
    }
    assert tuned["mean_personal_accuracy"] == tuned["mean_accuracy"]  # its clients use what serves them
    assert tuned["final_personal_accuracy"] == tuned["final_accuracy"]
    assert tuned["personal_gain_pp"] is None


def test_gains_over_arms_without_clusters_are_in_what_clients_use():
    """Served, all have 0.5; of the two baselines the clients of `ditto` use what has 2/3 on average."""
    arms = [
        {"name": "tuned", "clusterer": {"kind": "single"}, "baseline": True},
        {"name": "ditto", "clusterer": {"kind": "single"}, "solver": ["ditto", "sgd"], "baseline": True},
        {"name": "both", "clusterer": {"kind": "fielding"}, "solver": ["ditto", "sgd"]},
    ]
    clustered = replace(a_personal_run(0, (1.0, 1.0, 1.0, 1.0)), arm="both")
    runs = [a_run("tuned", 0, [0.5] * 4), a_personal_run(0), clustered]
    summary = a_summary(runs, configured=configured_arms({"arm": arms}))
    tuned, ditto, both = summary.rows
    assert both["gain_over_best_pp"].mean == both["gain_of_clusters_pp"].mean == 0.0
    for key in ("personal_gain_over_best_pp", "personal_gain_of_clusters_pp"):
        assert (both[key].over, both[key].mean) == ("ditto", pytest.approx(100 / 3))
    assert ditto["personal_gain_over_best_pp"] is None
    assert tuned["personal_gain_over_best_pp"].mean == pytest.approx(-100 / 6)
    headings = text_table(TABLE.shown_columns(summary), summary.rows).headings
    assert headings[2:5] == ["over one model", "over the best without clusters", "clusters, same adaptation"]


def test_the_table_of_served_accuracy_points_to_the_personal_one(both):
    assert "what clients use themselves has a table" in accuracy.TABLE.note(both)
    assert "themselves" not in accuracy.TABLE.note(a_summary([a_run("tuned", 0, [0.5] * 4)]))


def test_without_a_personal_accuracy_no_figure_of_it_is_known():
    (row,) = a_summary([a_run("tuned", 0, [0.5] * 4)]).rows
    assert row["mean_personal_accuracy"].mean is row["final_personal_accuracy"].mean is None
    assert {row[of.key] for of in TABLE.quantities if "gain" in of.key} == {None}


def test_nothing_after_the_horizon_counts():
    _, ditto = a_summary([a_run("tuned", 0, [0.5] * 4), a_personal_run(0)], horizon_s=25.0).rows
    assert ditto["mean_personal_accuracy"].per_seed == [pytest.approx((0.5 * 10 + 0.75 * 5) / 15)]
    assert (ditto["final_personal_accuracy"].mean, ditto["memory_age"].mean) == (0.625, 1.5)
    assert ditto["personal_accuracy_by_age_1"].mean == (0.5 + 3 * 0.75) / 4


def test_the_table_has_plain_accuracy_first_and_says_which_accuracy_is_which(both):
    table = text_table(TABLE.shown_columns(both), both.rows)
    assert table.headings == [
        *("accuracy", "personal accuracy", "gain", "final personal accuracy", "just trained", "pooled"),
        *("age of memory, median", "age, 90 %", "without memory", "age 1", "age 2-9", "age 10+"),
    ]
    cells = {arm: [cell.figure for cell in found] for arm, found in table.rows}
    assert cells["tuned"] == ["50.0 %", "50.0 %", "reference", "50.0 %", *["n/a"] * 8]
    assert cells["ditto"][:6] == ["50.0 %", "66.7 %", "+16.7 pp", "87.5 %", "100.0 %", "25.0 %"]
    assert cells["ditto"][6:] == ["2.50", "5.00", "18.8 %", "80.0 %", "50.0 %", "n/a"]
    for sentence in WHICH_IS_WHICH.values():
        assert sentence in TABLE.note(both)


def test_the_samples_trained_stand_in_the_table_where_they_are_known(both):
    known = [
        row.with_figures({**row.figures, "trained_samples_per_client": row["rounds"]}) for row in both.rows
    ]
    assert text_table(TABLE.shown_columns(both), known).headings[-1] == "samples trained per client"


def test_the_note_names_no_accuracy_that_no_arm_has():
    run = a_run("tuned", 0, [0.5] * 2, pooled_accuracy=0.25)
    note = TABLE.note(a_summary([run]))
    assert "Pooled accuracy is" in note
    assert "ersonal" not in note
    assert "just trained" not in note


def test_without_such_an_accuracy_there_is_no_table():
    assert not TABLE.says_something(a_summary([a_run("tuned", 0, [0.5] * 2)]))
