from dataclasses import replace

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.flexcfl import FlexCfl, FlexCflSettings
from coordinator.view import RunFacts
from emulator.errors import ConfigurationError, RunError
from emulator.messages import ArrayUpdates
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import FakeAvailability, FakeExecutor, FakeStream, Population, a_view, one_hot

START = np.array([1, 1, 1], dtype=np.float32)


class Clients:
    """Clients that send their row of `deltas` (N, P) when they are asked to train, except those `offline`."""

    def __init__(self, deltas, offline=()):
        self.deltas = np.array(deltas, dtype=np.float32)
        self.offline = offline
        self.requests = []

    def __call__(self, clients, start, steps):
        self.requests.append((clients.tolist(), start.tolist(), steps))
        online = clients[~np.isin(clients, self.offline)]
        ones = np.ones(len(online), dtype=np.int64)
        return ArrayUpdates(online, ones, ones, ones, self.deltas[online])

    @property
    def asked(self):
        return [clients for clients, _, _ in self.requests]


def view_of(clients, reports, assignment=None, **news):
    old = 0 if assignment is None else assignment.num_models
    view = a_view(
        reports,
        assignment=assignment,
        models=np.zeros((old, 3)),
        model_ids=range(old),
        train=clients,
        **news,
    )
    return replace(view, initial=lambda number: START + number)


def rows(assignment: Assignment) -> list[int]:
    return assignment.members[:, 0].tolist()


def models_of(assignment: Assignment) -> list[list[float]]:
    old = assignment.mixing.shape[1] - len(assignment.extra)
    return (assignment.mixing @ np.concatenate([np.zeros((old, 3)), assignment.extra])).tolist()


ALIKE = one_hot(0, 0, 0, 0, 0, of=2)
OPPOSITE = [[2, 0, 0], [-4, 2, 0], [4, 2, 0], [-2, 0, 0], [6, 1, 0]]


def begun(clients=None, reports=ALIKE, **settings):
    """A clusterer of two groups, and its first assignment of five clients that by default pull apart."""
    flexcfl = FlexCfl(FlexCflSettings(num_groups=2, **settings))
    return flexcfl, flexcfl.on_data(view_of(clients or Clients(OPPOSITE), reports))


def test_groups_are_those_of_opposite_directions_and_start_from_the_mean_of_what_their_clients_trained():
    clients = Clients(OPPOSITE)
    _, assignment = begun(clients, pretrain_steps=7)
    assert clients.requests == [([0, 1, 2, 3, 4], [1, 1, 1], 7)]
    assert rows(assignment) == [0, 1, 0, 1, 0]
    # (1, 1, 1) and the means (4, 1, 0) of clients 0, 2 and 4, and (-3, 1, 0) of 1 and 3.
    assert models_of(assignment) == [[5, 2, 1], [-2, 2, 1]]
    assert not assignment.reclustered


def test_the_groups_are_made_from_a_sample_and_the_others_join_the_nearest_direction():
    # By one client per group two are sampled, which must differ in direction: half of all pairs do.
    for seed in range(8):
        clients = Clients([[1, 0, 0], [-1, 0, 0]] * 3)
        flexcfl = FlexCfl(FlexCflSettings(num_groups=2, sampled_per_group=1))
        assignment = flexcfl.on_data(view_of(clients, one_hot(*[0] * 6, of=2), seed=seed))
        sample, others = clients.asked
        assert len(sample) == 2
        assert sorted(sample + others) == list(range(6))
        first = sample[0] % 2
        differ = sample[0] % 2 != sample[1] % 2
        assert rows(assignment) == [int(c % 2 != first) for c in range(6)] if differ else [0] * 6


def test_a_sample_is_drawn_with_the_seed():
    def sampled(seed):
        clients = Clients(OPPOSITE)
        flexcfl = FlexCfl(FlexCflSettings(num_groups=2, sampled_per_group=1))
        flexcfl.on_data(view_of(clients, ALIKE, seed=seed))
        return tuple(clients.asked[0])

    assert sampled(1) == sampled(1)
    assert len({sampled(seed) for seed in range(10)}) > 1


def test_a_client_that_drifted_has_a_cold_start_and_moves_to_the_direction_that_it_has_now():
    flexcfl, assignment = begun()
    # Client 0 pulls the other way now, and so does client 4, but its labels stay as they are.
    clients = Clients([[-1, 0, 0], *OPPOSITE[1:4], [-1, 0, 0]])
    view = view_of(clients, one_hot(1, 0, 0, 0, 0, of=2), assignment, changed=[0, 4])
    moved = flexcfl.on_data(view)
    assert clients.requests == [([0], [1, 1, 1], 50)]
    assert rows(moved) == [1, 1, 0, 1, 0]
    assert not moved.changes_models
    # Its new labels are those that it is compared with from now on.
    silent = Clients([])
    assert flexcfl.on_data(view_of(silent, view.reports, moved, changed=[0, 4])) is None
    assert silent.requests == []


def test_directions_stay_as_they_were_first():
    flexcfl, assignment = begun()
    before = flexcfl.state()["_directions"].copy()
    assert before.tolist() == [[4, 1, 0], [-3, 1, 0]]
    # Clients 0, 2 and 4 all pull along the third parameter now: orthogonal to both, but for a trace.
    clients = Clients([[-0.1, 0, 9]] * 5)
    moved = flexcfl.on_data(view_of(clients, one_hot(1, 0, 1, 0, 1, of=2), assignment, changed=[0, 2, 4]))
    assert rows(moved) == [1, 1, 1, 1, 1]
    assert flexcfl.state()["_directions"].tolist() == before.tolist()
    # The group that all have left goes on to exist, and clients can return to it.
    back = flexcfl.on_data(view_of(Clients(OPPOSITE), ALIKE, moved, changed=[0, 2, 4]))
    assert rows(back) == [0, 1, 0, 1, 0]


def test_with_sorted_counts_a_swap_of_labels_moves_nobody():
    flexcfl, assignment = begun(drift="sorted_counts")
    silent = Clients([])
    view = view_of(silent, one_hot(1, 1, 1, 1, 1, of=2), assignment, changed=range(5))
    assert flexcfl.on_data(view) is None
    assert silent.requests == []


def test_clients_that_are_offline_are_in_the_largest_group_until_they_are_online_at_an_opening():
    flexcfl, assignment = begun(Clients(OPPOSITE, offline=[1]))
    assert rows(assignment) == [0, 0, 0, 1, 0]
    assert models_of(assignment) == [[5, 2, 1], [-1, 1, 1]]
    still = Clients(OPPOSITE, offline=[1])
    assert flexcfl.on_data(view_of(still, ALIKE, assignment)) is None
    again = Clients(OPPOSITE)
    moved = flexcfl.on_data(view_of(again, ALIKE, assignment))
    assert again.asked == [[1]]
    # Nearest to (-2, 0, 0), the update of client 3.
    assert rows(moved) == [0, 1, 0, 1, 0]


def test_the_largest_group_has_the_clients_that_wait_and_continues_the_cluster_that_there_was():
    deltas = [[1, 0, 0], [-1, 0, 0], [-1, 0, 0], [-1, 0, 0], [1, 0, 0]]
    flexcfl, single = begun(Clients(deltas, offline=range(5)))
    grouped = flexcfl.on_data(view_of(Clients(deltas, offline=[4]), ALIKE, single, round_=1))
    assert rows(grouped) == [0, 1, 1, 1, 1]
    assert grouped.successor.tolist() == [1]


def test_a_client_that_drifted_and_does_not_respond_stays_and_is_asked_again():
    flexcfl, assignment = begun()
    drifted = one_hot(1, 0, 0, 0, 0, of=2)
    gone = Clients(OPPOSITE, offline=[0])
    assert flexcfl.on_data(view_of(gone, drifted, assignment, changed=[0])) is None
    moved = flexcfl.on_data(view_of(Clients([[-1, 0, 0]]), drifted, assignment))
    assert rows(moved) == [1, 1, 0, 1, 0]


def test_a_client_that_joins_has_a_cold_start_and_what_was_known_of_one_that_left_is_forgotten():
    flexcfl, assignment = begun()
    away = view_of(Clients([]), ALIKE, assignment.among(np.arange(5) != 3), left=[3], absent=[3])
    assert flexcfl.on_data(away) is None
    # It returns with the labels that it had, but its data pull the other way.
    back = Clients([*OPPOSITE[:3], [1, 0, 0], OPPOSITE[4]])
    view = view_of(back, ALIKE, assignment.among(np.arange(5) != 3), joined=[3], changed=[3])
    placed = flexcfl.on_joined(view)
    assert rows(placed) == [0, 1, 0, 0, 0]
    assert flexcfl.on_data(view_of(back, ALIKE, placed, joined=[3], changed=[3])) is None
    assert back.asked == [[3]]


def test_everybody_trains_one_model_until_as_many_clients_as_groups_respond():
    nobody = Clients(OPPOSITE, offline=range(1, 5))
    flexcfl, single = begun(nobody)
    assert rows(single) == [0] * 5
    assert models_of(single) == [[1, 1, 1]]
    assert flexcfl.on_data(view_of(nobody, ALIKE, single, round_=1)) is None
    grouped = flexcfl.on_data(view_of(Clients(OPPOSITE), ALIKE, single, round_=2))
    assert rows(grouped) == [0, 1, 0, 1, 0]
    assert models_of(grouped) == [[5, 2, 1], [-2, 2, 1]]
    assert grouped.reclustered


def test_fewer_clients_with_data_than_groups_are_not_asked():
    silent = Clients([])
    flexcfl = FlexCfl(FlexCflSettings(num_groups=2))
    assert rows(flexcfl.on_data(view_of(silent, ALIKE, absent=[0, 1, 3, 4]))) == [0] * 5
    assert silent.requests == []


def test_clients_with_equal_updates_make_one_group_and_the_number_of_groups_never_changes():
    flexcfl, assignment = begun(Clients([[1, 2, 3]] * 5))
    assert assignment.num_models == 1
    view = view_of(Clients(OPPOSITE), one_hot(1, 1, 1, 1, 1, of=2), assignment, changed=range(5))
    assert flexcfl.on_data(view) is None


def test_a_clusterer_that_was_stored_behaves_as_before():
    flexcfl, assignment = begun()
    resumed = FlexCfl(flexcfl.settings)
    resumed.restore(from_bytes(to_bytes(flexcfl.state())))
    view = view_of(Clients([[-1, 0, 0]] * 5), one_hot(1, 1, 0, 0, 0, of=2), assignment, changed=[0, 1])
    assert rows(resumed.on_data(view)) == rows(flexcfl.on_data(view)) == [1, 1, 0, 1, 0]


def test_more_groups_than_clients_are_refused():
    flexcfl = FlexCfl(FlexCflSettings(num_groups=6))
    flexcfl.check_run(RunFacts(num_clients=6, rounds=1, participants=2))
    with pytest.raises(
        ConfigurationError, match=r"^clusterer.num_groups = 6: must be at most 5, the number of clients$"
    ):
        flexcfl.check_run(RunFacts(num_clients=5, rounds=1, participants=2))


def test_in_a_run_every_client_is_charged_for_its_cold_starts_alone():
    # Clients 0 and 2 pull to 4, 1 and 3 to -4; client 0 gets other labels in round 1; client 3 comes online
    # during the visits of round 0. A visit or a cold start of one step of one sample takes 9 s.
    stream = FakeStream(np.stack([one_hot(0, 1, 0, 1, of=2), one_hot(1, 1, 0, 1, of=2)]))
    executor = FakeExecutor([4.0, -4.0, 4.0, -4.0])
    population = Population(
        executor,
        clusterer=FlexCfl(FlexCflSettings(num_groups=2, pretrain_steps=1)),
        stream=stream,
        availability=FakeAvailability({3: [(14.0, 1e9)]}),
        rounds=2,
    )
    played = population.play()
    requested = [wave.client.tolist() for wave in executor.waves]
    assert requested == [[0, 1, 2], [0, 1, 2], [0, 3], [0, 1, 2, 3]]
    reports = 2 * 4
    first, second = played.records
    assert first.control_bytes == 4 * reports + 3 * (4 + 4)
    # To register takes no time, but the first visits wait for the first cold start.
    assert first.dispatched_s - first.opened_s == 9
    # Client 0 has one since its labels changed, client 3 since it could not respond before.
    assert second.control_bytes - first.control_bytes == reports + 2 * (4 + 4)
    assert second.dispatched_s - second.opened_s == 9 + 8


def test_an_update_of_a_cold_start_that_is_not_finite_stops_the_run_if_so_configured():
    executor = FakeExecutor([4.0, -4.0, 4.0, np.inf])
    population = Population(
        executor,
        clusterer=FlexCfl(FlexCflSettings(num_groups=2)),
        nonfinite_updates="stop",
    )
    problem = (
        r"^round 0: the update of client 3 is not finite \(of 1 of 4 clients\), and .* = \"stop\"; a lower"
    )
    with pytest.raises(RunError, match=problem):
        population.play()
    assert executor.trained == [[0, 1, 2, 3]]  # the cold start: nobody was sent out
