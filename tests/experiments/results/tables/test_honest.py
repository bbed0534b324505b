"""Four clients, of which 1 and 3 are byzantine, over rounds of ten seconds; accuracies by hand."""

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.tables.honest import TABLE, apart_curves
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import TIMING, a_record

BYZANTINE = {"sign_flip": np.array([3]), "noise": np.array([1])}
NAN = np.nan


def a_run(arm, by_client, seed=0, **header):
    """A run with the accuracy of each client in each round, None where it is not logged."""
    records = [
        a_record(number, client_accuracy=None if row is None else np.array(row, dtype=np.float32))
        for number, row in enumerate(by_client)
    ]
    return ReportedRun(arm, seed, {"byzantine": BYZANTINE, **header}, records, TIMING)


def rows(*runs, **settings):
    summary = summarise(runs, name="x", window=3, reference_arm=runs[0].arm, **settings)
    return {row.arm: row for row in summary.rows}


def test_means_over_virtual_time_are_of_honest_and_byzantine_clients_apart():
    row = rows(a_run("global", [[0.5, 0.0, 1.0, 0.25], [0.25, 0.5, 0.25, 0.5], [1, 1, 1, 1]]))["global"]
    # From 10 to 30 s: (0.75 + 0.25) / 2 and (0.125 + 0.5) / 2; the last evaluation is the end.
    assert row["honest_accuracy"].per_seed == [0.5]
    assert row["byzantine_accuracy"].per_seed == [0.3125]
    assert row["honest_gain_pp"] is None


def test_the_gain_is_that_of_honest_clients_over_those_of_the_reference_arm_seed_by_seed():
    found = rows(
        a_run("global", [[0.5, 0, 0.5, 0]] * 2),
        a_run("global", [[0.25, 0, 0.25, 0]] * 2, seed=1),
        a_run("fielding", [[0.75, 1, 0.75, 1]] * 2, seed=1),
        a_run("fielding", [[0.625, 1, 0.625, 1]] * 2),
    )
    assert sorted(found["fielding"]["honest_gain_pp"].per_seed) == [12.5, 50.0]
    assert found["fielding"]["honest_gain_pp"].mean == 31.25
    assert found["fielding"]["byzantine_accuracy"].mean == 1.0


def test_of_a_sample_the_ids_of_the_scored_clients_count():
    honest, byzantine = apart_curves(a_run("global", [[0.25, 0.75]], scored_clients=np.array([2, 3])))
    assert honest.accuracy.tolist() == [0.25]
    assert byzantine.accuracy.tolist() == [0.75]


def test_clients_that_were_not_scored_are_left_out():
    run = a_run("global", [[0.5, NAN, NAN, NAN], None, [NAN, 0.25, 0.75, NAN]])
    honest, byzantine = apart_curves(run)
    assert (honest.times_s.tolist(), honest.accuracy.tolist()) == ([10.0, 30.0], [0.5, 0.75])
    assert (byzantine.times_s.tolist(), byzantine.accuracy.tolist()) == ([30.0], [0.25])


def test_without_byzantine_clients_or_logged_accuracies_there_are_no_figures():
    unknown = a_run("global", [[0.5, 0.5, 0.5, 0.5]] * 2)
    del unknown.header["byzantine"]
    for run in (unknown, a_run("global", [None, None])):
        summary = summarise([run], name="x", window=1, reference_arm="global")
        assert not TABLE.says_something(summary)
        assert summary.rows[0]["honest_accuracy"].per_seed == [None]


def test_of_honest_clients_alone_there_are_no_byzantine_figures():
    row = rows(a_run("global", [[0.5, 0.5]] * 2, scored_clients=np.array([0, 2])))["global"]
    assert row["honest_accuracy"].per_seed == [0.5]
    assert row["byzantine_accuracy"].per_seed == [None]


def test_a_log_with_accuracies_of_different_numbers_of_clients_is_damaged():
    with pytest.raises(InputError, match=r"arm 'global', seed 0: its log is damaged, client_accuracy"):
        apart_curves(a_run("global", [[0.5, 0.5], [0.5, 0.5, 0.5]]))
