from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clustering import (
    cluster_naively,
    distance_figures,
    exact_figures,
    label_histograms,
    nearest_by_loop,
    small_figures,
    subsample_figures,
)
from coordinator.clusterers.partition import PartitionSettings, nearest, partition
from emulator.arrays import Ints


def ignore(text: str) -> None:
    pass


def same_partition(first: Ints, second: Ints) -> bool:
    """Whether two partitions differ only in the numbering of their clusters."""
    pairs = first.astype(np.int64) * (second.max() + 1) + second
    return len(np.unique(pairs)) == len(np.unique(first)) == len(np.unique(second))


@pytest.mark.parametrize(("labels", "mixes"), [(10, 2), (20, 4)])
def test_naive_silhouettes_choose_the_same_partition_as_ours(labels: int, mixes: int) -> None:
    reports = label_histograms(200, labels, mixes)
    naive = cluster_naively(reports, 4, starts=10)
    ours = partition(reports, PartitionSettings(max_clusters=4), np.random.default_rng(0), "l1")
    assert same_partition(naive.members, ours.members)
    assert 0 < naive.silhouettes_s < naive.wall_s


def test_a_loop_over_the_clients_finds_the_same_nearest_centres() -> None:
    reports = np.random.default_rng(3).dirichlet(np.ones(10), size=300)  # no two distances are equal
    assert nearest_by_loop(reports, reports[:7]).tolist() == nearest(reports, reports[:7], "l1").tolist()


def test_histograms_are_shares_and_every_other_mix_overlaps() -> None:
    reports = label_histograms(1_000, 10, 4)
    np.testing.assert_allclose(reports.sum(axis=1), 1)
    assert len(np.unique(reports, axis=0)) > 900
    assert (reports == label_histograms(1_000, 10, 4)).all()


def test_exact_clustering_has_a_figure_of_each_kind() -> None:
    figures = exact_figures(60, 10, 1, ignore)
    assert [(item.name, item.unit) for item in figures] == [
        ("k1-recluster", "s"),
        ("k1-recluster-against-silhouettes", "s"),
        ("k1-reassign", "ms"),
    ]
    assert figures[0].value == figures[1].value


def test_clustering_a_subsample_has_no_reference() -> None:
    [recluster] = subsample_figures(60, 10, 1, ignore)
    assert (recluster.name, recluster.ratio, recluster.against) == ("k2-recluster", None, None)


def test_a_small_reclustering_is_compared_with_scikit_learn_and_js_with_l1() -> None:
    [recluster] = small_figures(40, 6, 1, ignore)
    assert (recluster.name, recluster.unit) == ("recluster", "ms")
    [by_js] = distance_figures(60, 10, 30, 1, ignore)
    assert (by_js.name, by_js.against) == ("recluster-js", "the same in L1")
    assert recluster.ratio is not None
    assert by_js.ratio is not None
