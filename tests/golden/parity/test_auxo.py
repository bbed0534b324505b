"""Auxo's affinities, sides and splits are those of FedScale's example, number by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers import affinities
from coordinator.clusterers.auxo import Auxo, AuxoSettings
from emulator.arrays import Floats, Ints
from emulator.messages import ArrayUpdates
from tests.fakes import a_view
from tests.golden.parity.recorded import recorded

CASES = recorded("auxo")["cases"]


def taking(step: Mapping[str, Any]) -> Callable[[Floats, np.random.Generator], Ints]:
    """A 2-means that takes the sides that were recorded in the step; the label 0 is side 1."""

    def two_sides(points: Floats, generator: np.random.Generator) -> Ints:
        sides = np.array([1 - 2 * label for label in step["two_means"] or []], dtype=np.int64)
        assert len(points) == len(sides)
        return sides

    return two_sides


def round_of(auxo: Auxo, assignment: Assignment, step: Mapping[str, Any]) -> Assignment:
    """The assignment after a round in which only one cluster has updates."""
    clients, delta = np.array(step["clients"]), np.array(step["updates"], dtype=np.float32)
    ones = np.ones(len(clients), dtype=np.int64)
    made = auxo.on_updates(
        a_view(
            num_clients=len(assignment.members),
            assignment=assignment,
            models=np.zeros((assignment.num_models, delta.shape[1])),
            model_ids=range(assignment.num_models),
            updates=ArrayUpdates(clients, step["cluster"] * ones, ones, ones, delta),
        )
    )
    return assignment if made is None else made


@pytest.mark.parametrize("case", CASES, ids=[f"seed-{case['seed']}" for case in CASES])
def test_every_round_changes_affinities_as_there(
    case: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    auxo = Auxo(AuxoSettings(split_rounds=case["split_rounds"], gradient_share=1.0, explore=0.0))
    assignment = auxo.on_data(a_view(num_clients=case["clients"]))
    assert assignment is not None
    for number, step in enumerate(case["steps"]):
        monkeypatch.setattr(affinities, "two_sides", taking(step))
        before, assignment = assignment.num_models, round_of(auxo, assignment, step)
        assert assignment.num_models - before == step["split"], number
        found, clients = auxo._affinities, step["clients"]
        np.testing.assert_allclose(found.affinity[clients], step["affinity"], rtol=0, atol=1e-8)
        assert found.lean[clients].tolist() == step["lean"], number
        assert found.times[clients].tolist() == step["times"], number
