import numpy as np

from coordinator.assignment import Fit
from coordinator.clusterers.static import Static, StaticSettings
from coordinator.representations.gradient import Gradient, GradientSettings
from tests.fakes import FakeAvailability, FakeExecutor, FakeStream, Population, a_view, one_hot


def test_it_clusters_once_and_requests_nothing_more():
    # Everything is turned round in round 1, and clients stay where they were.
    steps = np.stack([one_hot(0, 0, 1, 1, of=2), one_hot(1, 0, 1, 0, of=2), one_hot(1, 1, 0, 0, of=2)])
    static = Static(StaticSettings())
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
    static = Static(StaticSettings(kmeans_clients=10, silhouette_clients=11))
    assignment = static.on_data(a_view(one_hot(*[0, 1] * 6, of=2)))
    assert assignment is not None
    # Two different reports: there was no k to choose.
    assert assignment.fitted == Fit(10, 11, {})


def late(at_round, **more):
    """Two clients of each label; all clients change their label in round 2."""
    steps = np.stack([one_hot(0, 0, 1, 1, of=2)] * 2 + [one_hot(0, 1, 0, 1, of=2)] * 3)
    return Population(
        FakeExecutor([1, 1, -1, -1]),
        stream=FakeStream(steps),
        clusterer=Static(StaticSettings(at_round=at_round)),
        rounds=5,
        **more,
    )


def test_from_a_later_round_on_all_clusters_start_from_the_one_model_until_then():
    played = late(3).play()
    members = [record.members for record in played.records]
    assert members[0].tolist() == [0, 0, 0, 0]
    assert members[3].tolist() == [0, 1, 0, 1]  # the labels of round 2
    assert [members[round_] for round_ in (1, 2, 4)] == [None] * 3
    assert [record.reclustered for record in played.records] == [False, False, False, True, False]
    # All targets of a cluster cancel: the one model, and then both, stay at 0.
    assert played.models == [[0.0], [0.0]]


def test_all_clients_are_asked_at_that_round_but_only_who_drifted_since_its_report_sends_one():
    # Clients 1 and 2 drift in round 2; round 3 finds nobody drifted, and afterwards nobody reports.
    records = late(3).play().records
    assert [record.changed for record in records] == [4, 0, 2, 4, 0]
    assert [record.reported for record in records] == [4, 0, 2, 0, 0]


def test_gradients_at_the_global_model_are_those_of_that_round_although_nothing_arrived():
    population = late(3, representation=Gradient(GradientSettings(at="global")))
    population.executor.targets = np.array([[1.0], [1.0], [1.0], [-1.0]])  # the one model moves to 0.5
    played = population.play()
    assert [record.reported for record in played.records] == [4, 0, 0, 4, 0]
    first, last = [parameters.tolist() for parameters, _ in played.executor.measured]
    assert (first, last) == ([0.0], [0.4375])  # 0.5 (1 - 0.5 ** 3), by half of the way in each round
    # A model of one parameter, down and up, at four bytes, for the registration and in round 3.
    assert [record.control_bytes for record in played.records] == [32, 32, 32, 64, 64]


def test_a_round_that_nobody_is_online_for_is_not_the_one_that_clusters():
    """All four come online at 60 s: round 1, opened at 9 s, waits for them and is opened again."""
    availability = FakeAvailability({client: [(0.0, 9.0), (60.0, 1e9)] for client in range(4)})
    population = late(1, availability=availability)
    records = population.play().records
    assert [record.changed for record in records] == [4, 4, 0, 0, 0]
    assert records[1].reclustered
