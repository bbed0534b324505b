import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coordinator.assignment import Assignment, Fit
from tests.fakes import ints


def test_a_fresh_assignment_starts_every_model_from_the_one_vector():
    assignment = Assignment.fresh(ints(0, 2, 1, 0), 3, np.array([5, 6], dtype=np.float32))
    assert assignment.num_models == 3
    assert (assignment.mixing @ assignment.extra).tolist() == [[5, 6]] * 3
    assert assignment.lane_of_client.tolist() == [0, 2, 1, 0]
    assert assignment.members.shape == (4, 1)
    assert len(assignment.successor) == 0
    assert not assignment.reclustered


def test_moving_members_leaves_every_model_its_own_successor():
    assignment = Assignment.moved(ints(1, 1), 3)
    assert assignment.mixing.tolist() == np.eye(3).tolist()
    assert assignment.successor.tolist() == [0, 1, 2]
    assert not assignment.reclustered


def test_only_a_global_clustering_has_its_evidence_recorded():
    fit, members, start = Fit(20, 10, {2: 0.5}), ints(0, 1), np.zeros(1, dtype=np.float32)
    assert Assignment.fresh(members, 2, start, fitted=fit).fitted == fit
    assert Assignment.reclustered_from(members, members, 2, 2, fitted=fit).fitted == fit
    assert Assignment.fresh(members, 2, start).fitted is None
    assert Assignment.moved(members, 2).fitted is None


def test_a_warm_start_by_hand():
    # Of the first cluster's three members two had model 0 and one model 2; the second's one had model 2.
    assignment = Assignment.reclustered_from(ints(2, 0, 0, 2), ints(0, 0, 0, 1), 3, 2)
    assert assignment.mixing.tolist() == [[2 / 3, 0, 1 / 3], [0, 0, 1]]
    assert assignment.successor.tolist() == [0, -1, 1]


def test_a_cold_start_keeps_members_and_identities_and_nothing_of_the_old_models():
    warm = Assignment.reclustered_from(ints(2, 0, 0, 2), ints(0, 0, 0, 1), 3, 2)
    cold = warm.anew(np.array([7, 8], dtype=np.float32))
    assert cold.mixing.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]
    assert cold.extra.tolist() == [[7, 8]]
    assert cold.reclustered
    assert cold.successor is warm.successor
    assert cold.members is warm.members


def test_clients_without_an_old_or_a_new_model_have_no_part_in_a_warm_start():
    # Client 3 joins the first cluster, client 4 has left; the third cluster is of clients that join alone.
    old, new = ints(0, 1, 1, -1, 1, -1), ints(0, 0, 1, 0, -1, 2)
    assignment = Assignment.reclustered_from(old, new, 2, 3)
    assert assignment.mixing.tolist() == [[0.5, 0.5], [0, 1], [1 / 3, 2 / 3]]
    assert assignment.successor.tolist() == [0, 1]
    nobody = Assignment.reclustered_from(ints(0, 1, -1), ints(-1, -1, 0), 2, 1)
    assert nobody.mixing.tolist() == [[0.5, 0.5]]
    assert nobody.successor.tolist() == [-1, -1]


def test_clients_without_an_old_model_have_no_part_in_a_mean_of_models():
    assert Assignment.averaged(ints(0, 1, -1), ints(0, 0, 0), 2).mixing.tolist() == [[0.5, 0.5], [0, 1]]
    assert Assignment.averaged(ints(0, -1), ints(-1, 1), 2).mixing.tolist() == [[1, 0], [0, 1]]


def test_among_those_that_hold_data_the_others_have_no_model_and_no_lane():
    ensemble = Assignment.moved(np.array([[0, 1], [0, 1], [1, -1]]), 2, lanes=ints(0, 0, 0))
    some = ensemble.among(np.array([True, False, True]))
    assert some.members.tolist() == [[0, 1], [-1, -1], [1, -1]]
    assert some.lane_of_client.tolist() == [0, -1, 0]
    assert Assignment.moved(ints(0, 1), 2).among(np.array([False, True])).lane_of_client.tolist() == [-1, 1]
    assert ensemble.among(np.ones(3, dtype=bool)) is ensemble


def test_a_clients_lane_is_its_first_model():
    assignment = Assignment(
        mixing=np.eye(2),
        extra=np.zeros((0, 1), dtype=np.float32),
        successor=ints(0, 1),
        members=np.array([[1, 0], [0, -1], [-1, -1]]),
    )
    assert assignment.lane_of_client.tolist() == [1, 0, -1]


@st.composite
def reclusterings(draw):
    size = draw(st.integers(1, 40))
    num_old = draw(st.integers(1, 5))
    old = draw(hnp.arrays(np.int64, size, elements=st.integers(0, num_old - 1)))
    new = draw(hnp.arrays(np.int64, size, elements=st.integers(0, 5)))
    return old, np.unique(new, return_inverse=True)[1], num_old


@pytest.mark.slow
@given(reclusterings())
def test_a_warm_start_is_the_mean_over_members_of_the_model_each_one_had(case):
    old, new, num_old = case
    num_new = int(new.max()) + 1
    models = np.random.default_rng(0).normal(size=(num_old, 3))
    assignment = Assignment.reclustered_from(old, new, num_old, num_new)
    naive = np.stack([np.mean([models[o] for o in old[new == k]], axis=0) for k in range(num_new)])
    assert assignment.mixing @ models == pytest.approx(naive, abs=1e-12)
    assert assignment.mixing.sum(axis=1) == pytest.approx(np.ones(num_new), abs=1e-12)


@given(reclusterings())
def test_an_identity_passes_one_to_one_and_only_along_shared_members(case):
    old, new, num_old = case
    num_new = int(new.max()) + 1
    successor = Assignment.reclustered_from(old, new, num_old, num_new).successor
    passed = successor[successor >= 0]
    assert len(set(passed.tolist())) == len(passed)
    for row in range(num_old):
        if successor[row] >= 0:
            assert ((old == row) & (new == successor[row])).any()
    overlap = np.zeros((num_new, num_old))
    np.add.at(overlap, (new, old), 1)
    if num_old == num_new == 2:
        passed_on = sum(overlap[successor[row], row] for row in range(2) if successor[row] >= 0)
        assert passed_on == max(np.trace(overlap), np.trace(overlap[::-1]))


def test_models_averaged_over_members_keep_their_identity_and_one_without_members_its_content():
    # Clients 0 and 1 leave cluster 0 for 1, client 2 goes from 1 to 2, and nobody is left in 0.
    old, new = ints(0, 0, 1, 1, 2), ints(1, 1, 2, 1, 2)
    assignment = Assignment.averaged(old, new, num_models=3)
    assert assignment.mixing.tolist() == [[1, 0, 0], [2 / 3, 1 / 3, 0], [0, 0.5, 0.5]]
    assert assignment.successor.tolist() == [0, 1, 2]
    assert assignment.lane_of_client.tolist() == new.tolist()
    assert (assignment.reclustered, assignment.fitted) == (False, None)


def test_averaging_when_nobody_moved_changes_no_model():
    assert not Assignment.averaged(ints(0, 1, 1), ints(0, 1, 1), num_models=3).changes_models
