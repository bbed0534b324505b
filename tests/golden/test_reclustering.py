"""A global re-clustering by hand: overlaps of clusters, initial models, and labels that are kept."""

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from tests.fakes import FakeClusterer, FakeExecutor, FakeStream, Population, fresh, ints, one_hot

# Eight clients, three labels. At first two clusters, A = {0, 1, 2} on label 0 and B = {3 .. 7} on label 1.
# Then client 2 becomes (1/4, 0, 3/4) and client 5 becomes (0, 1/4, 3/4), each still nearest to its old
# cluster (1.5 against 2), and half a unit apart from each other.
#
#   centre A: (1, 0, 0) -> (3/4, 0, 1/4)         shift 1/2
#   centre B: (0, 1, 0) -> (0, 17/20, 3/20)      shift 3/10
#   distance of the new centres: 3/4 + 17/20 + 1/10 = 1.7; a third of that is 0.5667 > 1/2: no re-clustering
#   with threshold 1/4, 0.425 <= 1/2: re-clustering, into {0, 1}, {2, 5}, {3, 4, 6, 7}
#
# overlap (new x old)          mixing                 successor
#   {0, 1}         2  0          1    0              A -> {0, 1}
#   {2, 5}         1  1          1/2  1/2
#   {3, 4, 6, 7}   0  4          0    1              B -> {3, 4, 6, 7}
BEFORE = one_hot(0, 0, 0, 1, 1, 1, 1, 1, of=3)
AFTER = BEFORE.copy()
AFTER[2] = [0.25, 0, 0.75]
AFTER[5] = [0, 0.25, 0.75]
# Members of A pull their model to 1/2 in round 0 (half of the way to 1), members of B to -1/4.
TARGETS = [1, 1, 1, -0.5, -0.5, -0.5, -0.5, -0.5]


def fielding_run(threshold: float, rounds: int = 2):
    return Population(
        FakeExecutor(TARGETS),
        stream=FakeStream([BEFORE, AFTER]),
        clusterer=Fielding(FieldingSettings(trigger={"threshold": threshold})),
        rounds=rounds,
    ).play()


def test_the_mixing_is_the_overlap_of_members_and_the_largest_overlap_inherits():
    old, new = ints(0, 0, 0, 1, 1, 1, 1, 1), ints(0, 0, 1, 2, 2, 1, 2, 2)
    assignment = Assignment.reclustered_from(old, new, num_old=2, num_new=3)
    assert assignment.mixing.tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert assignment.successor.tolist() == [0, 2]
    assert assignment.lane_of_client.tolist() == new.tolist()
    assert assignment.reclustered


def test_models_start_from_the_mean_of_their_members_models():
    played = fielding_run(threshold=0.25)
    second = played.records[1]
    assert second.reclustered
    # Labels 0 and 1 stay with the clusters that kept most of their members; the new one is 2.
    assert played.records[0].clusters == [0, 1]
    assert second.clusters == [0, 2, 1]
    assert second.members.tolist() == [0, 0, 2, 1, 1, 2, 1, 1]
    assert second.moved == 0
    # Tasks of the second round start from 1/2, (1/2 - 1/4) / 2 = 1/8 and -1/4; trained half of the way on:
    # {0, 1} to 3/4; {2, 5} by the mean of 7/16 and -5/16, to 3/16; {3, 4, 6, 7} to -3/8.
    assert played.models == [[0.75], [0.1875], [-0.375]]


def test_a_model_that_is_carried_over_keeps_its_id_and_version_and_a_mixed_one_is_new():
    bank = fielding_run(threshold=0.25).coordinator.federation.bank
    assert bank.ids.tolist() == [0, 2, 1]
    assert bank.versions.tolist() == [2, 1, 2]  # published twice, once, twice


def test_below_the_threshold_the_clusters_stay():
    played = fielding_run(threshold=1 / 3)
    second = played.records[1]
    assert (second.reclustered, second.clusters, second.members) == (False, [0, 1], None)
    assert (second.reported, second.moved) == (2, 0)


def test_the_old_models_are_those_of_the_clusters_clients_were_moved_to():
    # A = {0, 1}, B = {2, 3, 4, 5}. Client 2 moves onto A's label, and clients 3 to 5 to a third label:
    #   moved: client 2 -> A; 3, 4, 5 are equally far (2) from both: the tie goes to A. B is empty, and keeps
    #   its centre (0, 1, 0). Centre A: (1, 0, 0) -> (1/2, 0, 1/2), a shift of 1 against a distance of 2.
    # New clusters {0, 1, 2} and {3, 4, 5}: every member was moved to A, so both start as copies of A's model.
    before, after = one_hot(0, 0, 1, 1, 1, 1, of=3), one_hot(0, 0, 0, 2, 2, 2, of=3)
    played = Population(
        FakeExecutor([1, 1, -1, -1, -1, -1], pull=1.0),
        stream=FakeStream([before, after]),
        clusterer=Fielding(FieldingSettings()),
        rounds=2,
    ).play()
    assert played.records[1].reclustered
    assert [starts[:, 0].tolist() for starts in played.executor.starts] == [[0] * 6, [1] * 6]


def test_labels_follow_the_largest_total_overlap_one_to_one():
    # old A = {0 .. 4}, old B = {5 .. 7}; new {0, 1}, {2, 3, 4, 5, 6, 7}.
    # overlap  [2 0]    A -> 0, B -> 1: 2 + 3 = 5
    #          [3 3]    A -> 1, B -> 0: 3 + 0 = 3, though A's largest part is in 1
    old, new = ints(0, 0, 0, 0, 0, 1, 1, 1), ints(0, 0, 1, 1, 1, 1, 1, 1)
    assignment = Assignment.reclustered_from(old, new, 2, 2)
    assert assignment.successor.tolist() == [0, 1]
    assert assignment.mixing.tolist() == [[1, 0], [0.5, 0.5]]


def test_a_cluster_that_shares_no_member_with_an_old_one_is_not_its_successor():
    # Old cluster 1 is empty: no new cluster takes over its model.
    assignment = Assignment.reclustered_from(ints(0, 0, 0), ints(0, 1, 1), 2, 2)
    assert assignment.successor.tolist() == [1, -1]
    assert assignment.mixing.tolist() == [[1, 0], [1, 0]]


def test_an_assignment_reaches_the_bank_as_one_matrix_product():
    # Three models trained to 1, 2, 4; then a merge of the first two by 1:3, and the third carried on.
    merge = Assignment(
        mixing=np.array([[0.25, 0.75, 0], [0, 0, 1]]),
        extra=np.zeros((0, 0), dtype=np.float32),
        successor=ints(0, 0, 1),
        members=ints(0, 0, 1)[:, None],
    )
    played = Population(
        FakeExecutor([1, 2, 4], pull=1.0),
        clusterer=FakeClusterer({0: fresh([0, 1, 2]), 1: merge}),
        rounds=2,
    ).play()
    # The mean target of clients 0 and 1 is 1.5, whatever they start from.
    assert played.models == [[1.5], [4.0]]
    assert played.executor.evaluated[0][0].tolist() == [[1], [2], [4]]
    # Round 1 trained clients 0 and 1 from 1/4 + 6/4 = 7/4: their losses are 3/4 and 1/4, client 2's is 0.
    assert played.records[1].train_loss == pytest.approx((0.75 + 0.25 + 0) / 3, rel=1e-15)
