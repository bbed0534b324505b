from dataclasses import replace

import pytest

from experiments.results.statistics.drift.accuracy import (
    accuracy_including_drift,
    accuracy_omitting_drift,
    last_evaluations,
)
from tests.experiments.synthetic_runs import a_record
from traces.patterns import named_pattern


def evaluated(number, step, accuracy, omitting, scored=10, drift_cells=0):
    return a_record(
        number,
        step=step,
        accuracy=accuracy,
        accuracy_omitting_drift=omitting,
        scored_clients=scored,
        drift_cells=drift_cells,
    )


def unevaluated(number, step):
    return a_record(number, step=step, accuracy=None, scored_clients=None)


def test_of_each_step_only_the_last_evaluation_counts():
    records = [
        evaluated(0, 0, 0.25, 0.25),
        evaluated(1, 0, 0.5, 0.5),
        unevaluated(2, 0),
        evaluated(3, 1, 0.75, 0.75),
    ]
    assert [record.round for record in last_evaluations(records)] == [1, 3]
    assert accuracy_omitting_drift(records) == accuracy_including_drift(records) == 0.625


def test_cells_are_averaged_and_not_steps():
    # First 9 of ten cells are right; then, of ten with six drift cells, the other four.
    records = [evaluated(0, 0, 0.9, 0.9), evaluated(1, 1, 0.4, 1.0, drift_cells=6)]
    assert accuracy_omitting_drift(records) == pytest.approx((9 + 4) / 14)
    assert accuracy_including_drift(records) == pytest.approx((9 + 4) / 20)


def test_clients_without_test_samples_are_no_cells():
    records = [evaluated(0, 0, 1.0, 1.0, scored=2), evaluated(1, 1, 0.0, 0.0, scored=6)]
    assert accuracy_including_drift(records) == accuracy_omitting_drift(records) == 0.25


def test_a_step_in_which_everybody_drifts_counts_only_where_drift_is_included():
    records = [evaluated(0, 0, 0.5, 0.5), evaluated(1, 1, 0.0, None, drift_cells=10)]
    assert accuracy_omitting_drift(records) == 0.5
    assert accuracy_including_drift(records) == 0.25


def test_right_everywhere_but_in_the_29_drift_cells_of_pattern_f_scores_71_with_them_and_100_without():
    pattern = named_pattern("F")
    drifts = (pattern[:-1] != pattern[1:]).sum(axis=1).tolist()  # drift cells of each step
    records = [evaluated(t, t, 1 - count / 10, 1.0, drift_cells=count) for t, count in enumerate(drifts)]
    assert sum(drifts) == 29
    assert accuracy_including_drift(records) == pytest.approx(0.71)
    assert accuracy_omitting_drift(records) == 1.0


def test_without_concepts_there_is_no_such_figure():
    records = [a_record(0)]
    assert accuracy_omitting_drift(records) is None
    assert accuracy_including_drift(records) is None
    assert accuracy_including_drift([replace(records[0], accuracy=None)]) is None
