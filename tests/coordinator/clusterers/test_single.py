import numpy as np

from coordinator.clusterers.single import Single
from tests.fakes import NOTHING, FakeExecutor, FakeStream, Population, a_view, one_hot


def test_all_clients_are_in_one_cluster_from_the_first_assignment_on():
    single = Single(NOTHING)
    assignment = single.on_data(a_view(num_clients=3))
    assert assignment is not None
    assert assignment.members.tolist() == [[0], [0], [0]]
    assert single.on_data(a_view(num_clients=3, drifted=[1], assignment=assignment)) is None
    assert single.serve(a_view(num_clients=3, assignment=assignment)).first().tolist() == [0, 0, 0]


def test_clients_never_report_whatever_drifts():
    steps = np.stack([one_hot(step, step, of=3) for step in range(3)])
    records = Population(FakeExecutor([1, 1]), stream=FakeStream(steps), rounds=3).play().records
    assert [record.changed for record in records] == [0, 0, 0]
    assert [record.reported for record in records] == [0, 0, 0]
    assert records[-1].control_bytes == 0
    assert [record.dispatched_s - record.opened_s for record in records] == [0, 0, 0]
