"""Clients that drifted alike share a model, and stay as long as the settings say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.assignment import Assignment
from coordinator.clusterers.drift_groups import DriftGroups, DriftGroupsSettings
from emulator.arrays import NO_IDS, Ints

GROUPS = {"sudden": ["jump"], "incremental": ["trend"], "both": ["jump", "trend"]}


class Story:
    """A clusterer with the members that it has assigned so far, of six clients."""

    def __init__(self, **settings: Any) -> None:
        self.clusterer = DriftGroups(DriftGroupsSettings(**{"groups": GROUPS, **settings}))
        start = SimpleNamespace(
            assignment=None, num_clients=6, initial=lambda number: np.zeros(1, dtype=np.float32)
        )
        self.members: Ints = self._given(self.clusterer.on_data(start)).members

    def _given(self, assignment: Assignment | None) -> Assignment:
        assert assignment is not None
        return assignment

    def train(self, *clients: int, **flagged: list[int]) -> Assignment | None:
        """These clients train, and detectors flag some of them."""
        drift = {name: np.isin(np.arange(6), flagged.get(name, [])) for name in ("jump", "trend")}
        updates = SimpleNamespace(client=np.array(clients), num_steps=np.ones(len(clients)))
        view = SimpleNamespace(members=self.members, drift=drift, updates=updates)
        moved = self.clusterer.on_updates(view)
        if moved is not None:
            self.members = moved.members
        return moved

    @property
    def groups(self) -> list[int]:
        return self.members.ravel().tolist()


def test_flagged_clients_move_and_stay_and_those_with_more_flags_move_on() -> None:
    story = Story()
    everyone = range(6)
    assert story.train(*everyone) is None
    story.train(*everyone, jump=[1, 2], trend=[4])
    assert story.groups == [0, 1, 1, 0, 2, 0]
    assert story.train(*everyone) is None
    story.train(*everyone, trend=[2])
    assert story.groups == [0, 1, 3, 0, 2, 0]


def test_a_group_begins_as_a_copy_of_the_model_that_most_of_its_first_members_trained() -> None:
    story = Story()
    first = story.train(0, 1, 2, jump=[0, 1, 2])
    assert first is not None
    assert first.mixing.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    later = story.train(0, 1, 4, trend=[0, 1, 4])
    assert later is not None  # two of `both` come from `sudden`, and `incremental` begins with client 4
    assert later.mixing.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    again = story.train(5, jump=[5])
    assert again is not None
    assert not again.changes_models


def test_flags_of_clients_that_did_not_train_are_not_asked_for() -> None:
    story = Story()
    assert story.train(0, jump=[1]) is None


def test_a_client_moves_after_so_many_flags_in_all_or_in_a_row() -> None:
    in_all, in_a_row = Story(after=2), Story(after=2, sticky=False)
    for story in (in_all, in_a_row):
        story.train(0, 1, jump=[0, 1])
        story.train(0, 1, jump=[1])
        assert story.groups[:2] == [0, 1]
        story.train(0, 1, jump=[0, 1])
    assert in_all.groups[:2] == [1, 1]
    assert in_a_row.groups[:2] == [0, 1]
    in_a_row.train(0, 1, jump=[0])
    assert in_a_row.groups[:2] == [1, 0]


def test_a_client_that_left_begins_without_flags_among_those_that_have_not_drifted() -> None:
    story = Story()
    story.train(0, 1, jump=[0, 1])
    view = SimpleNamespace(assignment=object(), left=np.array([1]), joined=NO_IDS, members=story.members)
    assert story.clusterer.on_data(view) is None
    story.members[1] = -1
    back = SimpleNamespace(members=story.members, joined=np.array([1]))
    joined = story.clusterer.on_joined(back)
    assert joined is not None
    assert joined.members.ravel().tolist() == [1, 0, 0, 0, 0, 0]
    story.members = joined.members
    assert story.train(0, 1) is None


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ({}, "at least 1 item"),
        ({"sudden": []}, r"sudden = \[\]: must have the name of a detector"),
        ({"sudden": ["a", "a"]}, "has a detector twice"),
        ({"one": ["a", "b"], "other": ["b", "a"]}, "other = .*: has the detectors of one"),
    ],
)
def test_groups_that_nobody_can_tell_apart_are_refused(groups: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        DriftGroupsSettings(groups=groups)
