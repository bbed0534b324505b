import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import silhouette_score

from coordinator.clusterers import silhouette
from coordinator.clusterers.silhouette import silhouettes, silhouettes_of_pairs
from coordinator.distances import l1
from tests.fakes import ints


def column(*values: float) -> np.ndarray:
    """Clients that report one number each."""
    return np.array(values, dtype=np.float64)[:, None]


@st.composite
def populations(draw):
    """Label histograms of few samples or of many, and partitions of them, also with empty clusters."""
    size, labels = draw(st.integers(3, 40)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    mixes = rng.dirichlet(np.full(labels, 0.4), size=size)
    samples = draw(st.sampled_from([None, 3, 15]))
    if samples is not None:
        mixes = np.stack([rng.multinomial(samples, mix) for mix in mixes]) / samples
    partition = hnp.arrays(np.int64, size, elements=st.integers(0, draw(st.integers(1, 12))))
    return mixes, draw(st.lists(partition, min_size=1, max_size=4))


@given(populations())
def test_they_are_those_of_scikit_learn(case):
    reports, partitions = case
    for score, members in zip(silhouettes(reports, partitions), partitions, strict=True):
        if len(np.unique(members)) in (1, len(members)):
            assert np.isnan(score)  # where scikit-learn refuses
        else:
            assert score == pytest.approx(silhouette_score(reports, members, metric="manhattan"), abs=1e-10)


@pytest.mark.parametrize("samples", [20, None])
def test_they_are_those_of_scikit_learn_for_hundreds_of_clients_and_a_hundred_labels(samples):
    rng = np.random.default_rng(0)
    reports = rng.dirichlet(np.full(100, 0.1), size=300)
    if samples is not None:
        reports = np.stack([rng.multinomial(samples, mix) for mix in reports]) / samples
    partitions = [np.concatenate([np.arange(k), rng.integers(k, size=300 - k)]) for k in range(2, 11)]
    naive = [silhouette_score(reports, members, metric="manhattan") for members in partitions]
    assert silhouettes(reports, partitions) == pytest.approx(np.array(naive), abs=1e-11)


def test_four_clients_by_hand():
    # 0, 1 | 10, 14. a: 1, 1, 4, 4. b: 12, 11, 9.5, 13.5. (b - a) / max: 11/12, 10/11, 5.5/9.5, 9.5/13.5.
    wanted = (11 / 12 + 10 / 11 + 5.5 / 9.5 + 9.5 / 13.5) / 4
    assert silhouettes(column(0, 1, 10, 14), [ints(0, 0, 1, 1)])[0] == pytest.approx(wanted, abs=1e-15)


def test_a_client_alone_counts_nothing_and_still_is_a_client():
    # 0, 1 | 10: 9/10, 8/9, and 0.
    wanted = (9 / 10 + 8 / 9 + 0) / 3
    assert silhouettes(column(0, 1, 10), [ints(0, 0, 1)])[0] == pytest.approx(wanted, abs=1e-15)


def test_clusters_without_members_are_no_neighbours():
    reports, members = column(0, 1, 10, 14), ints(0, 0, 1, 1)
    assert silhouettes(reports, [3 * members + 2]).tolist() == silhouettes(reports, [members]).tolist()


def test_one_cluster_or_none_that_is_shared_has_no_score():
    assert np.isnan(silhouettes(column(0, 1, 2), [ints(0, 0, 0), ints(0, 1, 2), ints(4, 4, 4)])).all()


def test_identical_reports_in_two_clusters_count_nothing():
    # Every client is as near to one cluster as to the other; 1/3 three times is not exactly 1.
    reports = np.full((6, 3), 1 / 3)
    assert silhouettes(reports, [ints(0, 1, 0, 1, 0, 1)]).tolist() == [0.0]


def test_a_grouping_has_one_score_to_the_bit_whatever_its_clusters_are_called():
    reports = np.random.default_rng(1).dirichlet(np.ones(6), size=200)
    members = np.random.default_rng(2).integers(4, size=200)
    scores = silhouettes(reports, [members, 3 - members, members + 2])
    assert scores[0] == scores[1] == scores[2]


def test_reports_far_from_zero_lose_nothing():
    reports = np.random.default_rng(3).integers(0, 1000, size=(80, 2)) / 1024
    members = np.random.default_rng(4).integers(3, size=80)
    assert silhouettes(reports + 2.0**20, [members]).tolist() == silhouettes(reports, [members]).tolist()


@pytest.mark.parametrize("at_once", [1, 60 * 5, 60 * 9])
def test_what_is_taken_together_changes_no_bit(monkeypatch, at_once):
    rng = np.random.default_rng(5)
    reports = rng.dirichlet(np.full(5, 0.5), size=60)
    partitions = [rng.integers(k, size=60) for k in (2, 3, 4, 5)]
    together = silhouettes(reports, partitions)
    monkeypatch.setattr(silhouette, "AT_ONCE", at_once)
    assert silhouettes(reports, partitions).tobytes() == together.tobytes()


def test_memory_does_not_grow_with_the_number_of_pairs():
    reports = np.random.default_rng(6).random((4000, 2))
    members = np.random.default_rng(7).integers(3, size=4000)
    tracemalloc.start()
    silhouettes(reports, [members])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21  # all distances would be 122 MiB


@given(populations())
@settings(max_examples=15)
def test_those_of_the_distances_of_all_pairs_are_the_same(case):
    reports, partitions = case
    exact = silhouettes(reports, partitions)
    assert silhouettes_of_pairs(l1(reports, reports), partitions) == pytest.approx(
        exact, abs=1e-9, nan_ok=True
    )
