import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.cfl import Cfl, CflSettings, bipartition
from emulator.messages import ArrayUpdates
from tests.fakes import a_view

# The mean of EARLY is 10 long, so that from then on eps1 = 1 and eps2 = 6. TORN has a mean of 0.5, and each
# of its updates is 7.02 long. Its pairs all but oppose: their cosine is (0.25 - 49) / (0.25 + 49) = -0.99.
EARLY = [[10, 0]] * 4
TORN = [[0.5, 7], [0.5, -7], [0.5, 7], [0.5, -7]]


def updates_of(deltas, clients=None, models=None, num_samples=None) -> ArrayUpdates:
    n = len(deltas)
    return ArrayUpdates(
        client=np.arange(n) if clients is None else np.array(clients),
        model=np.zeros(n, dtype=np.int64) if models is None else np.array(models),
        num_samples=np.full(n, 10) if num_samples is None else np.array(num_samples),
        num_steps=np.ones(n, dtype=np.int64),
        delta=np.array(deltas, dtype=np.float32),
    )


def view_of(members, updates, round_=0, ids=None):
    members = np.array(members)
    num_models = members.max() + 1
    return a_view(
        num_clients=len(members),
        assignment=Assignment.moved(members, num_models),
        models=10.0 + np.arange(2 * num_models).reshape(num_models, 2),
        model_ids=range(num_models) if ids is None else ids,
        round_=round_,
        updates=updates,
    )


def after_early(**settings) -> Cfl:
    """A clusterer that saw EARLY of four clients."""
    cfl = Cfl(CflSettings(**settings))
    assert cfl.on_updates(view_of([0] * 4, updates_of(EARLY))) is None
    return cfl


def models_after(split: Assignment, view) -> list[list[float]]:
    sources = np.concatenate([view.models, split.extra.reshape(-1, 2)])
    return (split.mixing @ sources).tolist()


def test_everybody_starts_in_one_cluster():
    assignment = Cfl(CflSettings()).on_data(a_view(num_clients=3))
    assert assignment.members.tolist() == [[0]] * 3
    assert assignment.num_models == 1


def test_new_data_move_nobody():
    assert Cfl(CflSettings()).on_data(view_of([0] * 4, None)) is None


def test_a_cluster_that_settled_while_its_clients_pull_apart_is_split():
    view = view_of([0] * 4, updates_of(TORN))
    split = after_early().on_updates(view)
    assert split.members.tolist() == [[0], [1], [0], [1]]
    # Both start from the parent's model as it is now, and the first carries it on.
    assert models_after(split, view) == [[10, 11], [10, 11]]
    assert split.successor.tolist() == [0]


def test_children_may_both_start_from_the_common_initialisation():
    view = view_of([0] * 4, updates_of(TORN))
    split = after_early(child_init="initial").on_updates(view)
    assert split.members.tolist() == [[0], [1], [0], [1]]
    assert models_after(split, view) == [[0, 0], [0, 0]]
    assert split.successor.tolist() == [0]


def test_a_cluster_whose_mean_update_is_the_longest_yet_is_not_tested():
    # In the first round every mean is.
    cfl = Cfl(CflSettings())
    assert cfl.on_updates(view_of([0] * 4, updates_of(TORN))) is None


@pytest.mark.parametrize(
    "deltas",
    [
        [[1.0, 7], [1.0, -7], [1.0, 7], [1.0, -7]],  # a mean of 1, not shorter than eps1
        [[0.5, 5.9], [0.5, -5.9], [0.5, 5.9], [0.5, -5.9]],  # none longer than eps2
    ],
)
def test_a_cluster_within_the_thresholds_stays_whole(deltas):
    assert after_early().on_updates(view_of([0] * 4, updates_of(deltas))) is None


def test_given_thresholds_hold_from_the_first_round():
    cfl = Cfl(CflSettings(eps1=0.6, eps2=7))
    assert cfl.on_updates(view_of([0] * 4, updates_of(TORN))).members.tolist() == [[0], [1], [0], [1]]


def test_halves_must_point_apart_by_more_than_gamma():
    # sqrt((1 + 0.98985) / 2) = 0.99746
    view = view_of([0] * 4, updates_of(TORN))
    assert after_early(gamma=0.998).on_updates(view) is None
    assert after_early(gamma=0.997).on_updates(view) is not None


def test_there_is_no_split_while_warming_up_nor_beyond_the_cap_nor_of_a_small_cluster():
    torn = updates_of(TORN)
    assert after_early(warmup_rounds=20).on_updates(view_of([0] * 4, torn, round_=19)) is None
    assert after_early(warmup_rounds=20).on_updates(view_of([0] * 4, torn, round_=20)) is not None
    assert after_early(max_models=1).on_updates(view_of([0] * 4, torn)) is None
    assert after_early(min_size=5).on_updates(view_of([0] * 4, torn)) is None


def test_two_clusters_can_be_split_in_one_round():
    members = [0] * 4 + [1] * 4
    view = view_of(members, updates_of(TORN + TORN, models=[3] * 4 + [7] * 4), ids=[3, 7])
    split = after_early().on_updates(view)
    assert split.members[:, 0].tolist() == [0, 2, 0, 2, 1, 3, 1, 3]
    assert models_after(split, view) == [[10, 11], [12, 13], [10, 11], [12, 13]]
    assert split.successor.tolist() == [0, 1]


def test_members_that_sent_no_update_stay_with_the_larger_half():
    # Clients 1, 3 and 5 point one way, 6 the other; 0, 2, 4 and 7 don't take part.
    updates = updates_of([[0, 7], [0, 7], [0, 7], [0, -21]], clients=[1, 3, 5, 6])
    split = after_early().on_updates(view_of([0] * 8, updates))
    assert split.members[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    # If client 1 points the other way, its half leaves.
    updates = updates_of([[0, -21], [0, 7], [0, 7], [0, 7]], clients=[1, 3, 5, 6])
    split = after_early().on_updates(view_of([0] * 8, updates))
    assert split.members[:, 0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


def test_updates_without_samples_are_left_out():
    deltas = [*TORN, [0, 0], [0, 0]]
    updates = updates_of(deltas, num_samples=[10, 10, 10, 10, 0, 0])
    split = after_early().on_updates(view_of([0] * 6, updates))
    assert split.members[:, 0].tolist() == [0, 1, 0, 1, 0, 0]


def test_nothing_came_back_nothing_happens():
    updates = updates_of(np.zeros((0, 2)))
    assert after_early().on_updates(view_of([0] * 4, updates)) is None


def test_complete_linkage_decides_the_halves():
    # Updates at angles of 0, 30, 64 and 102 degrees. 0 and 30 join first. Then single linkage would add 64,
    # 34 away from 30; but it is 64 away from 0, so 64 and 102 join, 38 apart.
    angles = np.deg2rad([0, 30, 64, 102])
    assert bipartition(np.cos(angles[:, None] - angles)).tolist() == [False, False, True, True]


def test_of_equal_halves_that_with_the_first_client_is_the_larger():
    assert bipartition(np.array([[1.0, -1.0], [-1.0, 1.0]])).tolist() == [False, True]
    # Even if all are equally far apart there are two halves.
    halves = bipartition(np.eye(4))
    assert 0 < halves.sum() <= 2
