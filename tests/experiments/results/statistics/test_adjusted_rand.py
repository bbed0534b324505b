from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.adjusted_rand import adjusted_rand_index, agreement_with_concepts
from experiments.results.statistics.comparisons import Run
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.time_to_accuracy import AccuracyCurve
from experiments.results.tables.accuracy import TABLE
from experiments.results.tables.accuracy import adjusted_rand_index as adjusted_rand_index_of
from experiments.results.tables.summary import summarise
from experiments.results.tables.table import text_table
from tests.experiments.synthetic_runs import CONCEPTS, TIMING, a_drifting_run, a_record


def index(one, other):
    return adjusted_rand_index(np.array(one), np.array(other))


def test_the_index_of_two_partitions_by_hand():
    # Pairs together: 0-1, 0-2, 1-2, 3-4, 3-5, 4-5 in the first; 0-1, 2-3, 2-4, 3-4 in the second; 0-1 and 3-4
    # in both. S = 2, A = 6, B = 4, T = 15: (2 - 24/15) / (5 - 24/15).
    assert index([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 2]) == pytest.approx((2 - 1.6) / (5 - 1.6))


def test_labels_need_not_match():
    assert index([0, 0, 1, 2], [7, 7, -1, 3]) == 1.0


def test_one_cluster_tells_nothing_apart():
    assert index([0, 0, 0, 0], [0, 0, 1, 1]) == index([0, 1, 2, 3], [0, 0, 1, 1]) == 0.0


def test_two_identical_trivial_partitions_agree():
    assert index([3, 3, 3], [0, 0, 0]) == index([0, 1, 2], [2, 0, 1]) == index([4], [5]) == 1.0


def test_partitions_of_other_clients_are_refused():
    with pytest.raises(ValueError, match="of 2 and 3 clients; they must be of the same"):
        index([0, 1], [0, 1, 1])


def test_the_index_is_that_of_scikit_learn():
    rng = np.random.default_rng(5)
    for one, other in rng.integers(-1, 6, (50, 2, 30)):
        assert adjusted_rand_index(one, other) == pytest.approx(adjusted_rand_score(one, other))


def a_run(concepts, members, arm="fielding", **changes):
    """A run with a data step per round; `members` are the clusters in each round, None if unchanged."""
    records = [
        a_record(step, step=step, members=None if clusters is None else np.array(clusters), **changes)
        for step, clusters in enumerate(members)
    ]
    return ReportedRun(arm, 0, {"concepts": concepts}, records, TIMING)


def mean_index(run, horizon_s):
    curve = AccuracyCurve(np.array([10.0]), np.array([0.5]), np.array([0.5]))
    horizon = common_horizon([run], [curve])
    return adjusted_rand_index_of(Run.of(run, curve, replace(horizon, horizon_s=horizon_s)))


def test_agreement_is_with_the_concepts_of_the_training_samples_of_the_step():
    run = a_run([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [9, 9, 9, 9]], [[0, 0, 0, 0], [0, 0, 1, 1], None])
    agreement = agreement_with_concepts(run)
    # Step 0 is before the first drift. Of the 2 and 2 pairs in step 2 none is shared: (0 - 4/6) / (2 - 4/6).
    assert agreement["closed_s"].tolist() == [20.0, 30.0]
    assert agreement["index"].tolist() == [1.0, -0.5]
    assert [mean_index(run, horizon_s) for horizon_s in (30.0, 29.0, 19.0)] == [0.25, 1.0, None]


def test_clients_in_no_cluster_do_not_count():
    concepts = [[0, 1, 1, 0], [0, 1, 1, 0], [9, 9, 9, 9]]
    run = a_run(concepts, [[0, 1, 1, -1], [0, -1, 0, 0]])
    # First all three agree; then the three are of two concepts in one cluster.
    assert agreement_with_concepts(run)["index"].tolist() == [1.0, 0.0]


def test_a_drift_of_all_clients_at_once_counts_too():
    assert agreement_with_concepts(a_run([[0, 0], [1, 1], [1, 1]], [[0, 0], None]))["index"].tolist() == [1.0]


def test_there_is_no_agreement_without_concepts_drift_clusters_or_evaluations():
    drifting = a_run(CONCEPTS, [[0, 0], [0, 1]])
    assert mean_index(drifting, 20.0) == 1.0
    for run in (
        replace(drifting, header={}),
        a_run([[0, 0], [0, 0], [0, 1]], [[0, 0], [0, 1]]),
        a_run(CONCEPTS, [None, None]),
        a_run(CONCEPTS, [[0, 0], [0, 1]], accuracy=None),
    ):
        assert mean_index(run, 20.0) is None


def accuracy_headings(run):
    summary = summarise([run], name="x", window=1, reference_arm=run.arm)
    return text_table(TABLE.shown_columns(summary), summary.rows, in_terminal=True).headings


def test_the_column_stands_beside_accuracy_where_concepts_are_known():
    known = a_drifting_run("oracle", 0, [0.5, 0.5], [[0, 0], [0, 1]])
    assert accuracy_headings(known)[-1] == "adjusted Rand index"
    assert "adjusted Rand index" not in accuracy_headings(replace(known, header={}))
