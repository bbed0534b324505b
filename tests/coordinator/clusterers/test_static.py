import numpy as np

from coordinator.clusterers.partition import PartitionParameters
from coordinator.clusterers.static import Static
from tests.fakes import FakeExecutor, FakeStream, Population, one_hot


def test_it_clusters_once_and_asks_nothing_more():
    # Everything is turned round in round 1, and clients stay where they were.
    steps = np.stack([one_hot(0, 0, 1, 1, of=2), one_hot(1, 0, 1, 0, of=2), one_hot(1, 1, 0, 0, of=2)])
    static = Static(PartitionParameters())
    assert static.representation == "label"
    played = Population(
        FakeExecutor([1, 1, -1, -1]), stream=FakeStream(steps), clusterer=static, rounds=3
    ).play()
    assert static.representation is None
    assert [record.members for record in played.records] == [[0, 0, 1, 1], None, None]
    assert [record.reported for record in played.records] == [4, 0, 0]
    assert [record.reclustered for record in played.records] == [False] * 3
    # The registration alone: four clients, two numbers of four bytes.
    assert [record.control_bytes for record in played.records] == [32, 32, 32]
    assert played.models == [[0.875], [-0.875]]
