from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordinator.federation.training.trained import Trained
from emulator.messages import ArrayUpdates, SampleRanges
from tests.fakes import ints


def trained(client: list[int], row: list[int]) -> Trained:
    ones, yes = np.ones(len(client), dtype=np.int64), np.ones(len(client), dtype=bool)
    delta = np.zeros((len(client), 1), dtype=np.float32)
    updates = ArrayUpdates(ints(*client), ints(*row), ones, ones, delta)
    samples = SampleRanges.one_each(ones, ones + 1)
    return Trained(updates, ones, ints(*row), bound=yes, stayed=yes, same=yes, samples=samples)


MEMBERS = np.array([[1, 0], [0, -1], [2, -1]])
"""The models that three clients belong to."""


def test_of_a_clients_several_updates_that_of_its_own_model_counts() -> None:
    found = trained(client=[0, 0, 1, 2, 2], row=[0, 1, 1, 0, 1])
    # Client 1 has a single one, though of another model; client 2 has none of its own.
    assert found.first(MEMBERS).tolist() == [False, True, True, False, False]


def test_of_two_updates_of_models_that_have_become_one_the_earlier_counts() -> None:
    assert trained(client=[0, 0], row=[1, 1]).first(MEMBERS).tolist() == [True, False]


def test_a_row_outlives_what_its_lifetime_does_not_ask_for() -> None:
    no = np.array([False])
    one = trained(client=[0], row=[1])
    new_data, new_model = replace(one, bound=no), replace(one, same=no)
    has_left = replace(one, bound=no, stayed=no)
    lives = [
        {until for until, valid in found.valid(MEMBERS).items() if valid.all()}
        for found in (one, new_data, new_model, has_left)
    ]
    assert lives == [{"data", "model", "run"}, {"model", "run"}, {"run"}, set()]
