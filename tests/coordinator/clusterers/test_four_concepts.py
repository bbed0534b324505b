"""The four-concept pattern of FedDrift, run with models that are as good as the data they have claimed."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.clusterers import CLUSTERERS
from tests.coordinator.clusterers.scored import SAMPLES, Story
from traces.patterns import named_pattern

CONCEPTS = named_pattern("F")[:-1]  # (steps, clients); the last row is for testing only
NUM_CLIENTS = CONCEPTS.shape[1]


class Game:
    """A run of the pattern.

    A model is right on 75 % of any samples, and on 99 % of a concept if it knows no other.
    """

    def __init__(self, name: str) -> None:
        part = CLUSTERERS.find(name)
        self.story = Story(part(part.Settings()), NUM_CLIENTS)
        self.claims = np.zeros((1, 4))  # (M, concepts) client steps claimed
        self.used: list[list[int]] = []
        self.num_models: list[int] = []
        for step, concepts in enumerate(CONCEPTS):
            self._play(step, concepts)

    def _play(self, step: int, concepts) -> None:
        knows = self.claims / self.claims.sum(axis=1, keepdims=True).clip(1)
        accuracy = 0.75 + 0.24 * knows  # (M, concepts)
        assignment = self.story.step(
            accuracy[:, concepts].T if step else None, across=accuracy @ knows.T, concepts=concepts
        )
        if assignment is not None and step:
            claims = np.zeros((assignment.num_models, 4))
            np.add.at(
                claims,
                assignment.successor[assignment.successor >= 0],
                self.claims[assignment.successor >= 0],
            )
            self.claims = claims
        elif assignment is not None:
            self.claims = np.zeros((assignment.num_models, 4))
        np.add.at(self.claims, (self.story.rows, concepts), 1)
        assert (SAMPLES * self.claims.sum(axis=1)).tolist() == self.story.claimed.tolist()
        self.used.append(self.story.bank.labels[self.story.rows].tolist())
        self.num_models.append(len(self.story.bank))

    @property
    def offered(self) -> list[int]:
        """The number of models that clients could choose from, step by step."""
        return [len(models) for _, models, samples in self.story.requests if samples == "arrived"]

    def mixed(self) -> int:
        """Models that hold data of more than one concept."""
        return int(((self.claims > 0).sum(axis=1) > 1).sum())


@pytest.mark.parametrize("name", ["feddrift", "feddrift_c", "oracle"])
def test_they_end_with_a_model_for_each_of_the_four_concepts(name):
    game = Game(name)
    assert game.num_models[-1] == 4
    assert game.mixed() == 0


def test_feddrift_has_seven_models_at_most_and_merges_them_to_four():
    assert Game("feddrift").num_models == [1, 1, 7, 4, 4, 4, 4, 4, 4, 4]


def test_feddrift_c_never_offers_more_than_four_models():
    assert max(Game("feddrift_c").offered) == 4
    assert max(Game("feddrift").offered) == 7


def test_eager_merges_two_concepts_that_appear_together():
    game = Game("feddrift_eager")
    assert CONCEPTS[2].tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0, 0]
    assert game.used[2] == [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    assert game.mixed() > 0
