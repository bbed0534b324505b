import numpy as np

from coordinator.assignment import Assignment
from coordinator.memories.held import Held
from emulator.messages import SampleRanges
from tests.fakes import NOTHING, a_view, ints


def view_with(members: np.ndarray):
    """Client c holds the table rows [10 c, 10 c + c + 1)."""
    clients = np.arange(len(members))
    assignment = Assignment(
        remix=np.eye(4), extra=np.zeros((0, 2), dtype=np.float32), heir=np.arange(4), members=members
    )
    held = SampleRanges.one_each(10 * clients, 11 * clients + 1)
    return a_view(num_clients=len(members), assignment=assignment, held=held)


def test_a_client_trains_its_model_on_all_that_it_holds():
    client, model, samples = Held(NOTHING).rows(ints(1, 3), view_with(np.array([[0], [2], [1], [1]])))
    assert client.tolist() == [1, 3]
    assert model.tolist() == [2, 1]
    assert [samples.rows(row).tolist() for row in range(2)] == [[10, 11], [30, 31, 32, 33]]


def test_a_client_of_several_models_trains_each_in_ascending_order():
    members = np.array([[3, 0, -1], [1, -1, -1], [2, 1, 3]])
    client, model, samples = Held(NOTHING).rows(ints(0, 1, 2), view_with(members))
    assert client.tolist() == [0, 0, 1, 2, 2, 2]
    assert model.tolist() == [0, 3, 1, 1, 2, 3]
    assert samples.counts().tolist() == [1, 1, 2, 3, 3, 3]


def test_a_client_of_no_model_trains_nothing():
    client, model, samples = Held(NOTHING).rows(ints(0, 1), view_with(np.array([[-1, -1], [-1, 2]])))
    assert (client.tolist(), model.tolist(), len(samples)) == ([1], [2], 1)
