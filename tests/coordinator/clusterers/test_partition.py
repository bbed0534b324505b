import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from coordinator.clusterers import partition as partition_module
from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.partition import PartitionSettings, first_distinct, means, nearest, partition
from coordinator.distances import DISTANCES
from tests.fakes import ints, one_hot

DEFAULTS = PartitionSettings()


def clustered(reports, settings: PartitionSettings = DEFAULTS, seed: int = 0, distance="l1"):
    return partition(np.array(reports, dtype=np.float64), settings, np.random.default_rng(seed), distance)


def groups(centers: int, size: int, seed: int = 0, labels: int = 6, spread: float = 300.0):
    """Label mixes around `centers` far-apart mixes, clients in random order; and the group of each client."""
    rng = np.random.default_rng(seed)
    members = rng.permutation(np.repeat(np.arange(centers), size))
    mixes = 0.9 * np.eye(labels) + 0.1 / labels
    return np.stack([rng.dirichlet(spread * mixes[member]) for member in members]), members


def same_grouping(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(((first[:, None] == first) == (second[:, None] == second)).all())


def l1(reports: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Every distance from a report to a centre, by the definition."""
    return np.abs(reports[:, None] - centers).sum(axis=2)


def naive_silhouette(reports: np.ndarray, members: np.ndarray) -> float:
    """The mean over clients of (b - a) / max(a, b), in L1; 0 for a client alone in its cluster."""
    apart = l1(reports, reports)
    scores = []
    for client, cluster in enumerate(members):
        members_of_cluster = np.flatnonzero(members == cluster)
        if len(members_of_cluster) == 1:
            scores.append(0.0)
            continue
        a = apart[client, members_of_cluster].sum() / (len(members_of_cluster) - 1)
        b = min(apart[client, members == other].mean() for other in set(members.tolist()) - {cluster})
        scores.append((b - a) / max(a, b))
    return float(np.mean(scores))


@pytest.mark.parametrize("centers", [2, 3, 4, 6])
def test_well_separated_groups_are_found_and_so_is_their_number(centers):
    reports, members = groups(centers, size=8, seed=centers)
    assert same_grouping(clustered(reports).members, members)


def test_clusters_are_numbered_by_their_lowest_client():
    reports, _ = groups(4, size=6)
    members = clustered(reports).members
    first = [int(np.flatnonzero(members == cluster)[0]) for cluster in range(members.max() + 1)]
    assert first == sorted(first)
    assert members[0] == 0


def test_neither_the_seed_nor_the_order_of_clients_changes_a_clear_grouping():
    reports, members = groups(3, size=7)
    assert clustered(reports, seed=1).members.tolist() == clustered(reports, seed=2).members.tolist()
    order = np.random.default_rng(4).permutation(len(reports))
    assert same_grouping(clustered(reports[order]).members, members[order])


def test_centres_are_the_means_of_their_members():
    reports, _ = groups(3, size=5)
    clustering = clustered(reports)
    for cluster, center in enumerate(clustering.centers):
        assert center == pytest.approx(reports[clustering.members == cluster].mean(axis=0), abs=1e-15)


def test_k_is_the_one_of_the_largest_silhouette():
    # No clear groups, many k come close; for the last three seeds, L2 silhouettes would choose another.
    for seed in (0, 1, 15, 21, 35):
        reports = np.random.default_rng(seed).dirichlet(np.full(8, 0.3), size=40)
        clustering = clustered(reports, PartitionSettings(max_clusters=7), seed)
        scored = []
        for k, fitted in enumerate(kmeans(reports, range(2, 8), 10, np.random.default_rng(seed)), start=2):
            centers = means(reports, fitted, np.zeros((k, 8)))
            members = l1(reports, centers).argmin(axis=1)
            scored.append((naive_silhouette(reports, members), -k, members))
        assert same_grouping(clustering.members, max(scored, key=lambda entry: entry[:2])[2])


def test_no_more_clusters_are_tried_than_allowed():
    reports, _ = groups(5, size=6)
    assert clustered(reports, PartitionSettings(max_clusters=3)).members.max() + 1 <= 3


def test_identical_reports_are_one_cluster():
    clustering = clustered([[0.25, 0.75]] * 6)
    assert clustering.members.tolist() == [0] * 6
    assert clustering.centers.tolist() == [[0.25, 0.75]]


@pytest.mark.parametrize(
    ("reports", "members"),
    [
        ([[1, 0]], [0]),
        ([[1, 0], [0, 1]], [0, 1]),
        ([[0, 1], [1, 0]], [0, 1]),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 0]),
        ([[0, 1], [1, 0], [0, 1], [1, 0], [1, 0]], [0, 1, 0, 1, 1]),  # two distinct reports
        ([[1, 0], [0.9, 0.1], [0, 1]], [0, 0, 1]),
    ],
)
def test_a_handful_of_clients(reports, members):
    assert clustered(reports).members.tolist() == members


def test_of_many_clients_a_subsample_is_enough_to_choose_k():
    reports, members = groups(4, size=60)
    clustering = clustered(reports, PartitionSettings(silhouette_clients=40))
    assert same_grouping(clustering.members, members)
    assert len(clustering.centers) == 4


def test_of_many_clients_centres_are_fitted_to_a_subsample_and_everybody_joins_the_nearest():
    reports, members = groups(4, size=60)
    clustering = clustered(reports, PartitionSettings(kmeans_clients=50, silhouette_clients=30))
    assert same_grouping(clustering.members, members)
    for cluster, center in enumerate(clustering.centers):  # the means of all clients, not of the subsample
        assert center == pytest.approx(reports[clustering.members == cluster].mean(axis=0), abs=1e-15)


@pytest.mark.parametrize(
    ("bounds", "fitted"),
    [({}, (240, 240)), ({"kmeans_clients": 50}, (50, 240)), ({"silhouette_clients": 239}, (240, 239))],
)
def test_it_reports_how_many_clients_it_used(bounds, fitted):
    reports, _ = groups(4, size=60)
    fit = clustered(reports, PartitionSettings(**bounds)).fitted
    assert (fit.kmeans_clients, fit.silhouette_clients) == fitted


def test_a_bound_that_all_clients_are_within_changes_no_bit():
    reports = np.random.default_rng(8).dirichlet(np.full(8, 0.3), size=60)
    within = PartitionSettings(kmeans_clients=60, silhouette_clients=60)
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    clusterings = [partition(reports, DEFAULTS, first, "l1"), partition(reports, within, second, "l1")]
    assert clusterings[0].members.tobytes() == clusterings[1].members.tobytes()
    assert clusterings[0].centers.tobytes() == clusterings[1].centers.tobytes()
    assert first.bit_generator.state == second.bit_generator.state


def test_a_bound_on_k_means_alone_leaves_the_clients_that_are_scored_as_they_were(monkeypatch):
    # The smaller subsample is the head of the one order that both are cut from.
    reports, _ = groups(4, size=60)
    seen = []
    scored = partition_module.silhouettes
    monkeypatch.setattr(
        partition_module, "silhouettes", lambda of, parts: seen.append(of.copy()) or scored(of, parts)
    )
    clustered(reports, PartitionSettings(silhouette_clients=40))
    clustered(reports, PartitionSettings(silhouette_clients=40, kmeans_clients=100))
    assert seen[0].tolist() == seen[1].tolist()


def test_of_equal_silhouettes_the_smallest_k_is_taken_whatever_the_last_digits(monkeypatch):
    reports, _ = groups(4, size=10)
    for scores, k in (([0.1, 0.5 - 1e-12, 0.5], 3), ([0.1, 0.5 - 1e-6, 0.5], 4), ([np.nan, 0.2, 0.2], 3)):
        monkeypatch.setattr(partition_module, "silhouettes", lambda *_, scores=scores: np.array(scores))
        assert len(clustered(reports, PartitionSettings(max_clusters=4)).centers) == k


def test_a_subsample_of_identical_reports_leaves_everybody_in_one_cluster():
    reports = np.tile([1.0, 0.0], (200, 1))
    reports[7] = [0.0, 1.0]
    sizes = set()
    for seed in range(20):
        clustering = clustered(reports, PartitionSettings(kmeans_clients=100), seed)
        sizes.add(tuple(np.bincount(clustering.members).tolist()))
    assert sizes == {(200,), (199, 1)}  # the odd one out is in half of the subsamples


def test_a_subsample_that_meets_one_cluster_alone_decides_nothing():
    # 200 clients, one of which differs a lot and another slightly: most samples of 10 see neither.
    reports = np.tile([1.0, 0.0], (200, 1))
    reports[7], reports[90] = [0.0, 1.0], [0.1, 0.9]
    for seed in range(5):
        clustering = clustered(reports, PartitionSettings(silhouette_clients=10), seed)
        assert clustering.members.min() == 0
        assert np.bincount(clustering.members).all()


def test_a_subsample_of_one_client_from_each_cluster_decides_nothing():
    # Eleven clients that share nothing, at most ten clusters: the sample of ten can miss the one pair.
    for seed in range(20):
        clustering = clustered(np.eye(11), PartitionSettings(silhouette_clients=10), seed)
        assert np.bincount(clustering.members).all()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_number_of_threads_changes_no_bit(threads):
    reports = np.random.default_rng(8).dirichlet(np.full(10, 0.5), size=600)
    with threadpool_limits(threads):
        clustering = clustered(reports, PartitionSettings(max_clusters=5, starts=2))
    alone = clustered(reports, PartitionSettings(max_clusters=5, starts=2))
    assert clustering.members.tobytes() == alone.members.tobytes()
    assert clustering.centers.tobytes() == alone.centers.tobytes()


def test_reports_are_not_written_to():
    reports, _ = groups(3, size=5)
    reports.flags.writeable = False
    clustered(reports)


def test_the_nearest_centre_is_nearest_in_l1_and_ties_go_to_the_lowest_row():
    # From (0, 0, 0): the first is 1.2 away in L1 and 0.69 in L2, the second 1 and 1.
    centers = np.array([[0.4, 0.4, 0.4], [1, 0, 0], [0, 1, 0]])
    assert nearest(np.zeros((1, 3)), centers, "l1").tolist() == [1]
    assert nearest(np.array([[0.5, 0.5, 0]]), centers[1:], "l1").tolist() == [0]


def test_reports_are_looked_at_in_blocks_that_change_nothing(monkeypatch):
    rng = np.random.default_rng(5)
    reports, centers = rng.dirichlet(np.full(4, 0.5), size=50), rng.dirichlet(np.full(4, 0.5), size=6)
    whole = nearest(reports, centers, "l1")
    assert whole.tolist() == l1(reports, centers).argmin(axis=1).tolist()
    for block in (1, 7, 49, 50):
        monkeypatch.setattr(partition_module, "BLOCK", block)
        assert nearest(reports, centers, "l1").tolist() == whole.tolist()
    assert nearest(reports[:0], centers, "l1").tolist() == []


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_different_reports_are_found_in_order_up_to_the_limit(monkeypatch, block):
    monkeypatch.setattr(partition_module, "BLOCK", block)
    reports = one_hot(2, 2, 0, 2, 1, 0, 3, of=4)
    for limit in (1, 2, 3, 4, 5):
        assert first_distinct(reports, limit).argmax(axis=1).tolist() == [2, 0, 1, 3][:limit]


def test_means_are_sums_in_the_order_of_clients_to_the_bit():
    rng = np.random.default_rng(6)
    reports, members = rng.random((500, 3)), rng.integers(4, size=500)
    sums = np.zeros((4, 3))
    for client, cluster in enumerate(members):
        sums[cluster] += reports[client]
    assert (
        means(reports, members, np.zeros((4, 3))).tolist() == (sums / np.bincount(members)[:, None]).tolist()
    )


def test_an_empty_cluster_keeps_the_centre_it_had():
    reports = one_hot(0, 2, 2, of=3)
    empty = np.array([[9.0, 9, 9], [8, 8, 8], [7, 7, 7]])
    assert means(reports, ints(0, 2, 2), empty).tolist() == [[1, 0, 0], [8, 8, 8], [0, 0, 1]]


def test_it_reports_the_silhouette_of_each_k_that_was_tried():
    reports, _ = groups(3, size=8)
    silhouettes = clustered(reports, PartitionSettings(max_clusters=5)).fitted.silhouettes
    assert list(silhouettes) == [2, 3, 4, 5]
    assert max(silhouettes, key=silhouettes.get) == 3
    members = clustered(reports).members
    assert silhouettes[3] == pytest.approx(naive_silhouette(reports, members), abs=1e-12)
    narrow = PartitionSettings(min_clusters=4, max_clusters=5)
    assert list(clustered(reports, narrow).fitted.silhouettes) == [4, 5]
    assert clustered(one_hot(0, 1, 1, of=2)).fitted.silhouettes == {}


def test_a_silhouette_that_is_not_defined_is_none():
    reports = np.concatenate([np.tile([1.0, 0, 0, 0], (400, 1)), np.eye(4)[1:]])
    fitted = clustered(reports, PartitionSettings(silhouette_clients=10), seed=0).fitted
    assert fitted.silhouettes == {2: None, 3: None, 4: None}


def test_settings_have_bounds():
    for bad in (
        {"min_clusters": 0},
        {"max_clusters": 1},
        {"starts": 0},
        {"silhouette_clients": 9},
        {"kmeans_clients": 9},
    ):
        with pytest.raises(ValueError, match="greater than or equal"):
            PartitionSettings(**bad)


def test_no_k_below_the_fewest_is_tried():
    reports, _ = groups(3, size=8)
    for fewest in (1, 2, 3):
        assert len(clustered(reports, PartitionSettings(min_clusters=fewest)).centers) == 3
    assert len(clustered(reports, PartitionSettings(min_clusters=5, max_clusters=5)).centers) == 5


@pytest.mark.parametrize("fewest", [2, 3, 4, 10])
def test_with_no_more_different_reports_than_the_fewest_each_is_a_cluster(fewest):
    reports = one_hot(2, 0, 2, 0, 0, of=3)
    assert clustered(reports, PartitionSettings(min_clusters=fewest)).members.tolist() == [0, 1, 0, 1, 1]
    assert clustered(reports[:1], PartitionSettings(min_clusters=fewest)).members.tolist() == [0]


def test_as_many_clusters_as_clients_is_one_each():
    reports = np.eye(5)
    for most in (5, 9):
        clustering = clustered(reports, PartitionSettings(min_clusters=5, max_clusters=most))
        assert clustering.members.tolist() == [0, 1, 2, 3, 4]


def test_a_subsample_that_cannot_tell_leaves_the_fewest_clusters():
    # 400 clients that are alike, and three that are in no subsample of ten with these seeds.
    reports = np.concatenate([np.tile([1.0, 0, 0, 0], (400, 1)), np.eye(4)[1:]])
    for seed in range(4):
        assert len(clustered(reports, PartitionSettings(silhouette_clients=10), seed).centers) == 1
        few = PartitionSettings(silhouette_clients=10, min_clusters=3)
        assert len(clustered(reports, few, seed).centers) == 3


def test_the_fewest_clusters_may_not_be_above_the_most():
    assert PartitionSettings(min_clusters=3, max_clusters=3).min_clusters == 3
    with pytest.raises(ValueError, match="min_clusters = 4 must not be above max_clusters = 3"):
        PartitionSettings(min_clusters=4, max_clusters=3)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("method", ["kmeans", "kcenter"])
def test_clear_groups_are_found_in_every_distance_by_either_method(distance, method):
    reports, members = groups(3, size=8)
    clustering = clustered(reports, PartitionSettings(partition=method), distance=distance)
    assert same_grouping(clustering.members, members)
    apart = DISTANCES[distance](reports, clustering.centers)
    assert clustering.members.tolist() == apart.argmin(axis=1).tolist()
    score = clustering.fitted.silhouettes[3]
    pairs = DISTANCES[distance](reports, reports)
    assert score == pytest.approx(silhouette_score(pairs, clustering.members, metric="precomputed"), rel=1e-9)


def test_the_distance_decides_which_centre_a_client_joins():
    # From (1/2, 1/2, 0, 0, 0): (1/5, 1/5, 1/5, 1/5, 1/5) is nearer in Euclidean space, (1, 0, 0, 0, 0) in L1.
    report = np.array([[0.5, 0.5, 0, 0, 0]])
    centers = np.array([[0.2] * 5, [1, 0, 0, 0, 0]])
    assert nearest(report, centers, "l1").tolist() == [1]
    assert nearest(report, centers, "euclidean").tolist() == [0]


def test_in_the_cosine_reports_of_one_direction_are_one_cluster_however_long():
    directions = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    reports = np.concatenate([length * directions for length in (1, 10, 1000)])
    reports[0, 1] = 0.01
    clustering = clustered(reports, distance="cosine")
    assert clustering.members.tolist() == [0, 1, 2] * 3
    assert np.linalg.norm(clustering.centers, axis=1) == pytest.approx(np.ones(3))


def test_k_center_with_k_given_and_means_as_its_centres():
    # Farthest first from 0: 10, then 4. Members join these, and the centres are the means.
    reports = np.array([[0.0], [1], [4], [5], [10], [11], [10]])
    three = PartitionSettings(partition="kcenter", min_clusters=3, max_clusters=3)
    clustering = clustered(reports, three)
    assert clustering.members.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert clustering.centers.ravel().tolist() == pytest.approx([0.5, 4.5, 31 / 3])
    assert list(clustering.fitted.silhouettes) == [3]


def test_silhouettes_from_pairs_are_those_of_at_most_2000_clients(monkeypatch):
    reports, members = groups(4, size=60)
    monkeypatch.setattr(partition_module, "MOST_PAIRWISE", 50)
    clustering = clustered(reports, distance="js")
    assert (clustering.fitted.kmeans_clients, clustering.fitted.silhouette_clients) == (240, 50)
    assert same_grouping(clustering.members, members)
    assert clustered(reports).fitted.silhouette_clients == 240


@pytest.mark.parametrize("shape", [(40, 3), (3, 40)])
def test_means_are_the_same_sums_however_wide_reports_are(shape):
    reports = np.random.default_rng(7).random(shape)
    members = np.arange(len(reports)) % 2
    wanted = [sum(reports[members == cluster]) / (members == cluster).sum() for cluster in (0, 1)]
    assert means(reports, members, np.zeros((2, shape[1]))).tolist() == np.array(wanted).tolist()


@pytest.mark.parametrize("setting", [{"partition": "k-means"}, {"distance": "L1"}])
def test_an_unknown_method_or_distance_lists_the_choices(setting):
    with pytest.raises(ValueError, match=r"'kmeans' or 'kcenter'|'euclidean'"):
        PartitionSettings(**setting)


@pytest.mark.slow
@pytest.mark.parametrize("distance", sorted(set(DISTANCES) - {"js"}))
def test_a_clustering_of_long_reports_holds_few_copies_of_them(distance):
    """At most six beside the reports, as `experiments.checks.arms` reckons."""
    reports = np.random.default_rng(0).normal(size=(400, 2000))
    tracemalloc.start()
    clustered(reports, PartitionSettings(starts=1), distance=distance)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * reports.nbytes
