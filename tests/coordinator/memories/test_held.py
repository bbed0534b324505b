import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.memories.held import Held, HeldSettings
from emulator.messages import SampleRanges
from tests.fakes import a_view, ints


def assigned(members: np.ndarray) -> Assignment:
    return Assignment(
        mixing=np.eye(4), extra=np.zeros((0, 2), dtype=np.float32), successor=np.arange(4), members=members
    )


def view_with(members: np.ndarray):
    """Client c holds the table rows [10 c, 10 c + c + 1)."""
    clients = np.arange(len(members))
    held = SampleRanges.one_each(10 * clients, 11 * clients + 1)
    return a_view(num_clients=len(members), assignment=assigned(members), held=held)


def by_step(members: np.ndarray, step: int):
    """At each step t two samples reach client c: the table rows 100 c + 2 t and 100 c + 2 t + 1."""

    def arrived(ids, first, last):
        return SampleRanges.one_each(100 * ids + 2 * first, 100 * ids + 2 * (last + 1))

    return a_view(num_clients=len(members), assignment=assigned(members), step=step, arrived=arrived)


def rows_of(samples: SampleRanges) -> list[list[int]]:
    return [samples.rows(row).tolist() for row in range(len(samples))]


def test_a_client_trains_its_model_on_all_that_it_holds():
    held = Held(HeldSettings())
    client, model, samples = held.rows(ints(1, 3), view_with(np.array([[0], [2], [1], [1]])))
    assert client.tolist() == [1, 3]
    assert model.tolist() == [2, 1]
    assert rows_of(samples) == [[10, 11], [30, 31, 32, 33]]
    assert not samples.bootstrap


def test_a_client_of_several_models_trains_each_in_ascending_order():
    members = np.array([[3, 0, -1], [1, -1, -1], [2, 1, 3]])
    client, model, samples = Held(HeldSettings()).rows(ints(0, 1, 2), view_with(members))
    assert client.tolist() == [0, 0, 1, 2, 2, 2]
    assert model.tolist() == [0, 3, 1, 1, 2, 3]
    assert samples.counts().tolist() == [1, 1, 2, 3, 3, 3]


def test_a_client_of_no_model_trains_nothing():
    client, model, samples = Held(HeldSettings()).rows(ints(0, 1), view_with(np.array([[-1, -1], [-1, 2]])))
    assert (client.tolist(), model.tolist(), len(samples)) == ([1], [2], 1)


def test_a_model_is_held_samples_of_by_its_members_alone():
    view = view_with(np.array([[3, 0], [1, -1], [2, 3]]))
    held = Held(HeldSettings())
    assert rows_of(held.samples(ints(0, 1, 2), 3, view)) == [[0], [], [20, 21, 22]]
    assert rows_of(held.samples(ints(1, 2), 1, view)) == [[10, 11], []]


def test_a_window_mixes_the_samples_of_its_steps():
    held = Held(HeldSettings(window=2))
    view = by_step(np.array([[0], [0]]), step=3)
    samples = held.rows(ints(0, 1), view)[2]
    assert rows_of(samples) == [[4, 5, 6, 7], [104, 105, 106, 107]]
    assert samples.offsets.tolist() == [0, 1, 2]


def test_a_window_longer_than_the_trace_so_far_starts_with_it():
    samples = Held(HeldSettings(window=5)).rows(ints(0), by_step(np.array([[0]]), step=1))[2]
    assert rows_of(samples) == [[0, 1, 2, 3]]


@pytest.mark.parametrize(("weighting", "weights"), [("linear", [1, 2, 3]), ("exponential", [0.25, 0.5, 1.0])])
def test_weighting_by_age_gives_each_step_a_range_of_its_own(weighting, weights):
    held = Held(HeldSettings(weighting=weighting))
    samples = held.rows(ints(0, 1), by_step(np.array([[0], [0]]), step=2))[2]
    assert samples.offsets.tolist() == [0, 3, 6]
    assert samples.first.tolist() == [0, 2, 4, 100, 102, 104]
    assert samples.weight.tolist() == weights * 2


def test_weighting_keeps_to_the_window():
    held = Held(HeldSettings(window=2, weighting="linear"))
    samples = held.rows(ints(0), by_step(np.array([[0]]), step=4))[2]
    assert (samples.first.tolist(), samples.weight.tolist()) == ([6, 8], [4, 5])


def test_no_sample_is_so_old_that_it_counts_nothing():
    held = Held(HeldSettings(weighting="exponential"))
    samples = held.rows(ints(0), by_step(np.array([[0]]), step=2000))[2]
    assert (samples.weight > 0).all()


def test_a_bootstrap_is_a_flag_of_the_samples():
    view = view_with(np.array([[0], [0]]))
    held = Held(HeldSettings(bootstrap=True))
    assert held.rows(ints(0, 1), view)[2].bootstrap
    assert held.samples(ints(0, 1), 0, view).bootstrap
