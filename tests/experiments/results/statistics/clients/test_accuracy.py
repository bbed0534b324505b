"""Accuracies of clients at the horizon: rounds of ten seconds, figures by hand and by numpy."""

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.clients.accuracy import (
    DECILES,
    at_the_horizon,
    gains_since_the_evaluation_before,
    worse_off,
)
from experiments.results.tables.clients import are_logged
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import TIMING, a_record

NAN = np.nan


def a_run(arm, by_client, seed=0, members=None, labels=None, **header):
    """A run with the accuracy of each client in each round, None where it is not logged."""
    records = [
        a_record(
            number,
            client_accuracy=None if row is None else np.array(row, dtype=np.float32),
            client_label=None if labels is None else np.array(labels),
            members=np.array(members[number]) if members and members[number] is not None else None,
        )
        for number, row in enumerate(by_client)
    ]
    return ReportedRun(arm, seed, header, records, TIMING)


def rows(*runs, **settings):
    summary = summarise(runs, name="x", window=3, reference_arm=runs[0].arm, **settings)
    return {row.arm: row.figures for row in summary.rows}


def test_the_last_evaluation_at_or_before_the_horizon_counts():
    run = a_run("global", [[0.25, 0.5], [0.75, 1.0], None, [0.0, 0.0]])
    assert at_the_horizon(run, 9.0) is None
    for horizon_s, accuracy in ((10.0, [0.25, 0.5]), (39.0, [0.75, 1.0]), (40.0, [0.0, 0.0])):
        assert at_the_horizon(run, horizon_s).accuracy.tolist() == accuracy


def test_clients_that_were_not_scored_are_left_out_and_counted():
    found = at_the_horizon(a_run("global", [[0.5, NAN, 0.25, NAN]], labels=[3, 4, 5, 6]), 10.0)
    assert (found.clients.tolist(), found.accuracy.tolist(), found.left_out) == ([0, 2], [0.5, 0.25], 2)
    assert found.labels.tolist() == [3, 5]


def test_of_a_sample_the_ids_and_the_clusters_of_the_scored_clients_are_given():
    members = [[0, 1, 1, 2], None, [5, 5, 5, 5]]
    run = a_run("global", [[0.25, 0.75]] * 3, members=members, scored_clients=np.array([1, 3]))
    found = at_the_horizon(run, 20.0)
    assert (found.clients.tolist(), found.clusters.tolist()) == ([1, 3], [1, 2])  # as of the second round
    assert at_the_horizon(run, 30.0).clusters.tolist() == [5, 5]


def test_a_log_with_other_numbers_of_clients_is_named():
    run = a_run("global", [[0.25, 0.75]], scored_clients=np.array([1, 2, 3]))
    with pytest.raises(InputError, match="client_accuracy is of 2 clients, scored_clients of 3"):
        at_the_horizon(run, 10.0)


def test_a_scored_client_that_the_run_does_not_have_is_named():
    run = a_run("global", [[0.25, 0.75]], num_clients=4, scored_clients=np.array([1, 4]))
    with pytest.raises(InputError, match="seed 0: its log is damaged, client 4 is scored, and there are 4"):
        at_the_horizon(run, 10.0)


@pytest.mark.parametrize("count", [1, 2, 9, 10, 11, 1000])
def test_deciles_equal_those_of_numpy_and_the_worst_tenth_is_rounded_up(count):
    accuracy = np.random.default_rng(count).integers(0, 20, count).astype(np.float32) / 16
    found = at_the_horizon(a_run("global", [accuracy]), 10.0)
    exact = accuracy.astype(np.float64)
    assert found.quantiles(np.array(DECILES)).tolist() == np.quantile(exact, np.arange(1, 10) / 10).tolist()
    assert found.worst_tenth == pytest.approx(np.sort(exact)[: int(np.ceil(count / 10))].mean(), abs=1e-15)


def test_the_worst_tenth_of_eleven_clients_is_the_worst_two():
    accuracy = [1.0] * 8 + [0.25, 0.75, 0.75]  # a tie does not matter
    assert at_the_horizon(a_run("global", [accuracy]), 10.0).worst_tenth == 0.5


def test_permuting_the_clients_changes_no_figure():
    draw = np.random.default_rng(5)
    first, second = draw.random((2, 97))
    order = draw.permutation(97)
    found = rows(a_run("global", [first]), a_run("fielding", [second]))
    assert found == rows(a_run("global", [first[order]]), a_run("fielding", [second[order]]))


def test_clients_are_worse_off_than_themselves_under_the_reference_seed_by_seed():
    found = rows(
        a_run("global", [[0.5, 0.5, 0.5, 0.5, NAN]]),
        a_run("global", [[1.0, 1.0, 0.0, 0.0, 0.0]], seed=1),
        a_run("fielding", [[0.25, 0.5, 0.75, 1.0, 1.0]]),
        a_run("fielding", [[0.5, 0.75, 1.0, 1.0, 0.0]], seed=1),
    )
    row = found["fielding"]
    assert row["worse_off"].per_seed == [0.25, 0.4]
    assert row["better_off"].per_seed == [0.5, 0.4]
    assert row["unchanged"].per_seed == [0.25, 0.2]
    assert row["mean_loss_pp"].per_seed == [25.0, 37.5]
    assert row["worst_tenth"].per_seed == [0.25, 0.0]
    assert row["worst_tenth_gain_pp"].per_seed == [-25.0, 0.0]
    assert (found["global"]["worse_off"], found["global"]["worst_tenth_gain_pp"]) == (None, None)


def test_an_arm_that_equals_the_reference_leaves_nobody_worse_off():
    row = rows(a_run("global", [[0.5, 0.25]]), a_run("fielding", [[0.5, 0.25]]))["fielding"]
    assert (row["worse_off"].mean, row["unchanged"].mean) == (0.0, 1.0)
    assert (row["mean_loss_pp"].mean, row["mean_loss_pp"].per_seed) == (None, [None])


def test_clients_are_paired_by_id():
    ours = at_the_horizon(a_run("a", [[0.5, 1.0, 0.0]], scored_clients=np.array([1, 4, 7])), 10.0)
    theirs = at_the_horizon(a_run("b", [[0.25, 0.75, 0.5]], scored_clients=np.array([4, 7, 9])), 10.0)
    assert ours.gains_over(theirs).tolist() == [0.75, -0.75]
    assert worse_off(np.array([])) is None


def test_how_clients_change_within_an_arm_is_between_its_last_two_evaluations():
    run = a_run("global", [[0.0, 0.0], [0.5, 0.5], None, [0.25, 0.75]])
    assert gains_since_the_evaluation_before(run, 40.0).tolist() == [-0.25, 0.25]
    assert gains_since_the_evaluation_before(run, 20.0).tolist() == [0.5, 0.5]
    assert gains_since_the_evaluation_before(run, 10.0) is None


def test_without_logged_accuracies_every_figure_is_unknown():
    summary = summarise([a_run("global", [None, None])], name="x", window=1, reference_arm="global")
    assert summary.rows[0]["worst_tenth"].per_seed == [None]
    assert not are_logged(summary)
