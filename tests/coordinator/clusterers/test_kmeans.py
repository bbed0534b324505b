from itertools import product

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from coordinator.clusterers import kmeans as kmeans_module
from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.partition import means

COUNTS = range(2, 11)


def fitted(points, counts=(3,), starts: int = 10, seed: int = 0) -> list[np.ndarray]:
    return kmeans(np.array(points, dtype=np.float64), counts, starts, np.random.default_rng(seed))


def inertia(points: np.ndarray, members: np.ndarray) -> float:
    centers = means(points, members, np.zeros((members.max() + 1, points.shape[1])))
    return float(((points - centers[members]) ** 2).sum())


def shares(seed: int) -> np.ndarray:
    """200 label mixes of ten labels: in groups, or with none, in turns."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return rng.dirichlet(np.full(10, 0.3), size=200)
    groups = rng.dirichlet(np.full(10, 0.5), size=int(rng.integers(2, 9)))
    return np.stack([rng.dirichlet(0.1 + 30 * groups[row]) for row in rng.integers(len(groups), size=200)])


def of_the_same_starts(points: np.ndarray, k: int, seed: int) -> float:
    """The least inertia that scikit-learn's KMeans reaches from our k-means++ starts of this k."""
    centered = points - points.mean(axis=0)
    search = kmeans_module._Search(centered, max(COUNTS))
    runs = np.repeat(COUNTS[::-1], 10)
    starts = search.starts(runs, np.random.default_rng(seed))
    with threadpool_limits(1):
        return min(KMeans(k, init=start[:k], n_init=1).fit(centered).inertia_ for start in starts[runs == k])


def no_worse(seeds: range) -> float:
    """The share of draws, each of data, seed and k, with an inertia no worse than scikit-learn's."""
    good = []
    for seed in seeds:
        points, k = shares(seed), COUNTS[seed // 2 % len(COUNTS)]
        ours = inertia(points, fitted(points, COUNTS, seed=seed)[COUNTS.index(k)])
        good.append(ours <= of_the_same_starts(points, k, seed) * (1 + 1e-9))
    return float(np.mean(good))


@pytest.mark.slow
def test_the_inertia_is_no_worse_than_that_of_scikit_learn_from_the_same_starts():
    assert no_worse(range(8)) == 1


@pytest.mark.sweep
def test_in_99_of_100_draws_the_inertia_is_no_worse_than_that_of_scikit_learn():
    assert no_worse(range(1000)) >= 0.99


def test_the_least_inertia_of_all_partitions_is_found():
    # Seven points on a line: 3^7 partitions, by brute force.
    points = np.random.default_rng(3).random((7, 1))
    least = min(
        inertia(points, np.array(members))
        for members in product(range(3), repeat=7)
        if len(set(members)) == 3
    )
    [members] = fitted(points, starts=20)
    assert inertia(points, members) == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_client_is_nearer_to_another_mean_than_to_its_own(seed):
    points = shares(seed)
    for k, members in zip((4, 9), fitted(points, (4, 9), starts=2, seed=seed), strict=True):
        centers = means(points, members, np.zeros((k, 10)))
        apart = ((points[:, None] - centers) ** 2).sum(axis=2)
        assert (apart[np.arange(200), members] <= apart.min(axis=1) + 1e-12).all()


def test_one_cluster_for_each_distinct_point_leaves_no_inertia():
    points = np.repeat(np.eye(4), 3, axis=0)
    [members] = fitted(points, (4,))
    assert sorted(np.bincount(members).tolist()) == [3, 3, 3, 3]
    assert inertia(points, members) == 0


def test_a_cluster_that_loses_its_points_goes_on_from_the_farthest_one():
    # Nothing is nearest to the centre at 50: it goes on at 10, while the others become 0 and 13/3. Now 1 and
    # 2 are nearer to 0, and nothing to 13/3, which goes on at 2.
    points = np.array([[0.0], [1.0], [2.0], [10.0]])
    search = kmeans_module._Search(points, 3)
    end = search.lloyd(np.array([3]), np.array([[[0.0], [1.0], [50.0]]]), tolerance=0.0)
    assert end.members[0].tolist() == [0, 0, 1, 2]
    assert end.inertia.tolist() == pytest.approx([0.5])


@pytest.mark.parametrize("at_once", [1, 5_000])
def test_runs_taken_together_or_apart_end_alike(monkeypatch, at_once):
    points = shares(0)
    together = fitted(points, COUNTS)
    monkeypatch.setattr(kmeans_module, "AT_ONCE", at_once)
    for first, second in zip(together, fitted(points, COUNTS), strict=True):
        assert inertia(points, first) == pytest.approx(inertia(points, second), rel=1e-12)


def test_distances_of_all_pairs_only_save_time(monkeypatch):
    points = shares(0)
    before = fitted(points, COUNTS)
    monkeypatch.setattr(kmeans_module, "ALL_PAIRS", 0)
    for first, second in zip(before, fitted(points, COUNTS), strict=True):
        assert inertia(points, first) == pytest.approx(inertia(points, second), rel=1e-12)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_number_of_threads_changes_no_bit(threads):
    points = np.random.default_rng(1).dirichlet(np.full(60, 0.2), size=400)
    alone = fitted(points, COUNTS, starts=1)
    with threadpool_limits(threads):
        assert [members.tolist() for members in fitted(points, COUNTS, starts=1)] == [
            members.tolist() for members in alone
        ]


def test_more_numbers_than_points_are_reduced_to_the_dimensions_that_points_span():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(30, 1_000)) + 3 * rng.normal(size=(3, 1_000))[np.arange(30) % 3]
    fewer = kmeans_module._in_fewer_dimensions(points)
    assert fewer.shape == (30, 30)
    distances = [((of[:, None] - of) ** 2).sum(axis=2) for of in (points, fewer)]
    assert distances[1] == pytest.approx(distances[0], rel=1e-9, abs=1e-9)
    [members] = fitted(points)
    assert all(len(set(members[group::3].tolist())) == 1 for group in range(3))


def test_offsets_and_scales_change_no_partition():
    points = shares(1)
    wanted = inertia(points, fitted(points, (4,))[0])
    for scale, offset in ((1e-6, 0.0), (1e6, 0.0), (1.0, 1e4)):
        [members] = fitted(points * scale + offset, (4,))
        assert inertia(points, members) == pytest.approx(wanted, rel=1e-6)


def test_many_clusters_have_labels_above_255():
    points = np.arange(300.0)[:, None]
    [members] = fitted(points, (299,), starts=1)
    assert len(set(members.tolist())) == 299


def test_the_generator_decides_and_nothing_else():
    points = shares(1)
    first, again, other = (fitted(points, (10,), starts=1, seed=seed)[0].tolist() for seed in (0, 0, 1))
    assert first == again
    assert first != other
