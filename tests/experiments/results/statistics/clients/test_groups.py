"""Groups of clients, and the mean accuracy in each, by hand."""

import numpy as np

from experiments.results.statistics.clients.accuracy import at_the_horizon
from experiments.results.statistics.clients.groups import (
    MOST_LABELS,
    cluster_means,
    group_means,
    quarters,
    shown_labels,
)
from tests.experiments.results.statistics.clients.test_accuracy import a_run


def test_quarters_hold_a_quarter_of_the_fleet_each_if_no_two_speeds_are_equal():
    cost = np.random.default_rng(3).permutation(100).astype(float)
    found = quarters(cost)
    assert np.bincount(found).tolist() == [25, 25, 25, 25]
    assert cost[found == 0].max() < cost[found == 1].min() < cost[found == 2].min() < cost[found == 3].min()


def test_devices_of_one_speed_are_in_one_quarter():
    assert quarters(np.array([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 4.0])).tolist() == [0, 0, 0, 0, 0, 0, 3, 3]


def test_means_of_groups_do_not_depend_on_the_order_of_clients():
    draw = np.random.default_rng(7)
    accuracy, groups, order = draw.random(500), draw.integers(0, 6, 500), draw.permutation(500)
    found, again = group_means(accuracy, groups, 6), group_means(accuracy[order], groups[order], 6)
    assert found.accuracy.tolist() == again.accuracy.tolist()
    assert found.counts.tolist() == [int((groups == group).sum()) for group in range(6)]


def test_the_labels_that_most_clients_hold_are_shown():
    labels = [*range(62), *range(50, 62), -1, -1, -1]
    run = a_run("global", [[0.5] * len(labels)], labels=labels)
    assert shown_labels([at_the_horizon(run, 10.0)]) == list(range(50, 62))
    assert MOST_LABELS == 12


def test_clusters_are_those_at_the_horizon_and_clients_in_none_are_left_out():
    run = a_run("global", [[0.25, 0.5, 1.0, 0.0]], members=[[7, 2, 7, -1]])
    labels, means = cluster_means(at_the_horizon(run, 10.0))
    assert (labels.tolist(), means.accuracy.tolist(), means.counts.tolist()) == ([2, 7], [0.5, 0.625], [1, 2])
