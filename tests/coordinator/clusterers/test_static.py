import numpy as np

from coordinator.assignment import Fit
from coordinator.clusterers.partition import PartitionSettings
from coordinator.clusterers.static import Static
from tests.fakes import FakeExecutor, FakeStream, Population, a_view, one_hot


def test_it_clusters_once_and_requests_nothing_more():
    # Everything is turned round in round 1, and clients stay where they were.
    steps = np.stack([one_hot(0, 0, 1, 1, of=2), one_hot(1, 0, 1, 0, of=2), one_hot(1, 1, 0, 0, of=2)])
    static = Static(PartitionSettings())
    assert static.needs_reports
    played = Population(
        FakeExecutor([1, 1, -1, -1]), stream=FakeStream(steps), clusterer=static, rounds=3
    ).play()
    assert not static.needs_reports
    first, *later = [record.members for record in played.records]
    assert first.tolist() == [0, 0, 1, 1]
    assert later == [None, None]
    assert [record.reported for record in played.records] == [4, 0, 0]
    assert [record.reclustered for record in played.records] == [False] * 3
    # The registration alone: four clients, two numbers of four bytes.
    assert [record.control_bytes for record in played.records] == [32, 32, 32]
    assert played.models == [[0.875], [-0.875]]


def test_it_reports_how_many_clients_its_clustering_rests_on():
    static = Static(PartitionSettings(kmeans_clients=10, silhouette_clients=11))
    assignment = static.on_data(a_view(one_hot(*[0, 1] * 6, of=2)))
    assert assignment is not None
    # Two different reports: there was no k to choose.
    assert assignment.fitted == Fit(10, 11, {})
