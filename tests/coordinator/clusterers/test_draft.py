import numpy as np

from coordinator.clusterers.draft import Draft
from tests.fakes import ints


def initial(number: int):
    return np.full(2, number, dtype=np.float32)


def test_an_untouched_draft_leaves_all_as_before():
    assert Draft(ints(0, 1), last_used=ints(0, 0)).assignment(initial) is None


def test_a_move_alone_keeps_the_models():
    draft = Draft(ints(0, 1), last_used=ints(0, 0))
    draft.members[0] = 1
    assignment = draft.assignment(initial)
    assert assignment is not None
    assert assignment.members.tolist() == [[1], [1]]
    assert not assignment.changes_models


def test_a_merge_a_drop_and_new_models_are_one_assignment():
    draft = Draft(ints(0, 1, 2, 3), last_used=ints(0, 0, 0, 0))
    draft.members[3] = draft.add()
    draft.members[2] = draft.add(copied=1)
    draft.merge(ints(0, 2), np.array([0.25, 0.75]))
    draft.drop(ints(3))
    assignment = draft.assignment(initial)
    assert assignment is not None
    assert assignment.mixing.tolist() == [
        [0.25, 0, 0.75, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 1, 0, 0, 0],
    ]
    assert assignment.extra.tolist() == [[0, 0]]
    assert assignment.successor.tolist() == [0, 1, 0, -1]
    assert assignment.members.tolist() == [[0], [1], [3], [2]]


def test_members_of_merged_models_go_with_them():
    draft = Draft(ints(0, 1, 2), last_used=ints(0, 0, 0))
    draft.merge(ints(0, 2), np.array([0.5, 0.5]))
    assignment = draft.assignment(initial)
    assert assignment is not None
    assert assignment.members.tolist() == [[0], [1], [0]]
    assert assignment.extra.size == 0
    assert assignment.mixing.shape == (2, 3)


def test_the_longest_unused_are_all_that_were_left_first():
    draft = Draft(ints(0, 0), last_used=ints(5, 2, 3, 2))
    assert draft.longest_unused().tolist() == [1, 3]
    draft.drop(ints(1, 3))
    assert draft.longest_unused().tolist() == [2]
    draft.drop(ints(2))
    assert draft.longest_unused().tolist() == []


def test_a_merged_model_was_last_used_when_any_of_its_parts_was():
    draft = Draft(ints(0, 0), last_used=ints(5, 2, 3, 4))
    draft.merge(ints(1, 3), np.array([0.5, 0.5]))
    assert draft.last_used(step=6).tolist() == [6, 4, 3]


def test_the_members_it_was_made_from_are_not_written_to():
    before = ints(0, 0)
    Draft(before, last_used=ints(0, 0)).members[0] = 1
    assert before.tolist() == [0, 0]
