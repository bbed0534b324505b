import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.distances import DISTANCES
from coordinator.federation.evaluation import measurement
from coordinator.federation.evaluation.measurement import mean_client_distance
from tests.fakes import ints, one_hot


def naive(histograms: np.ndarray, members: np.ndarray) -> float:
    """Fielding's definition, pair by pair."""
    distances = []
    for client, cluster in enumerate(members):
        others = [other for other in np.flatnonzero(members == cluster) if other != client]
        apart = [np.abs(histograms[client] - histograms[other]).sum() for other in others]
        distances.append(np.mean(apart) if apart else 0.0)
    return float(np.mean(distances))


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_it_equals_the_mean_over_all_pairs(clients, labels, clusters, seed):
    rng = np.random.default_rng(seed)
    histograms = rng.dirichlet(np.full(labels, 0.5), size=clients)
    members = rng.integers(clusters, size=clients)
    assert mean_client_distance(histograms, members) == pytest.approx(naive(histograms, members), abs=1e-12)


@pytest.mark.parametrize("name", DISTANCES)
def test_it_equals_the_mean_over_all_pairs_in_every_distance(name, monkeypatch):
    monkeypatch.setattr(measurement, "AT_ONCE", 8)  # blocks of one or two rows
    rng = np.random.default_rng(0)
    vectors, members = rng.dirichlet(np.ones(4), size=12), rng.integers(3, size=12)
    apart = DISTANCES[name](vectors, vectors)
    by_client = [apart[client, members == members[client]].sum() for client in range(12)]
    others = np.bincount(members)[members] - 1
    expected = np.mean(np.array(by_client) / np.maximum(others, 1))
    assert mean_client_distance(vectors, members, name) == pytest.approx(expected, abs=1e-12)


def test_squared_distances_far_from_the_origin_lose_no_digits():
    vectors = np.array([[1e8], [1e8 + 1], [1e8 + 3]])
    assert mean_client_distance(vectors, ints(0, 0, 0), "squared_euclidean") == pytest.approx(14 / 3)


def test_three_clients_by_hand():
    # Distances 2 (0-1), 1 (0-2), 1 (1-2): client means 1.5, 1.5, 1.
    histograms = np.array([[1, 0], [0, 1], [0.5, 0.5]])
    assert mean_client_distance(histograms, ints(0, 0, 0)) == pytest.approx(4 / 3)


def test_clients_that_share_no_label_are_two_apart():
    assert mean_client_distance(one_hot(0, 1, of=2), ints(0, 0)) == 2.0


def test_a_client_alone_counts_nothing_and_still_is_a_client():
    # The pair is at distance 2, the third client is alone: (2 + 2 + 0) / 3.
    assert mean_client_distance(one_hot(0, 1, 0, of=2), ints(0, 0, 1)) == pytest.approx(4 / 3)
    assert mean_client_distance(one_hot(0, 1, 2, of=3), ints(0, 1, 2)) == 0.0


def test_it_is_a_mean_over_clients_not_over_clusters():
    # Cluster 0: three clients, one at distance 2 from both others: means 1, 1, 2. Cluster 1: two equal ones.
    histograms = one_hot(0, 0, 1, 0, 0, of=2)
    assert mean_client_distance(histograms, ints(0, 0, 0, 1, 1)) == pytest.approx(4 / 5)


def test_the_numbers_of_the_clusters_do_not_matter():
    histograms = one_hot(0, 1, 0, 1, of=2)
    assert mean_client_distance(histograms, ints(7, 7, 3, 3)) == 2.0


def test_the_histograms_are_not_written_to():
    histograms = one_hot(1, 0, 1, of=2)
    histograms.flags.writeable = False
    assert mean_client_distance(histograms, ints(0, 0, 0)) == pytest.approx(4 / 3)
