from __future__ import annotations

import numpy as np

from coordinator.federation.solver_state import SolverState
from emulator.messages import ArrayUpdates, StateSpec
from tests.fakes import ints

SPECS = {"adam.moment1": StateSpec("parameters"), "adam.steps": StateSpec("scalar")}


def returned(client: int, model: int, moment: list[float], steps: float) -> ArrayUpdates:
    return ArrayUpdates(
        ints(client),
        ints(model),
        ints(1),
        ints(1),
        np.zeros((1, 2), dtype=np.float32),
        state={
            "adam.moment1": np.array([moment], dtype=np.float32),
            "adam.steps": np.array([[steps]], dtype=np.float32),
        },
    )


def test_a_pair_that_never_trained_starts_at_zero() -> None:
    state = SolverState(SPECS, num_parameters=2).read(ints(3, 4), ints(0, 0))
    assert state["adam.moment1"].tolist() == [[0, 0], [0, 0]]
    assert state["adam.steps"].tolist() == [[0], [0]]


def test_state_is_read_by_client_and_model() -> None:
    store = SolverState(SPECS, num_parameters=2)
    store.commit(returned(3, 7, [1, 2], 50))
    state = store.read(ints(3, 3, 4), ints(7, 8, 7))
    assert state["adam.moment1"].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert state["adam.steps"].tolist() == [[50], [0], [0]]


def test_new_data_resets_the_state_of_that_client_alone() -> None:
    store = SolverState(SPECS, num_parameters=2)
    store.commit(returned(3, 7, [1, 2], 50))
    store.commit(returned(4, 7, [3, 4], 50))
    store.data_changed(ints(3, 5))
    assert store.read(ints(3, 4), ints(7, 7))["adam.moment1"].tolist() == [[0, 0], [3, 4]]


def test_state_is_read_as_a_copy() -> None:
    store = SolverState(SPECS, num_parameters=2)
    store.commit(returned(3, 7, [1, 2], 50))
    store.read(ints(3), ints(7))["adam.moment1"][:] = 9
    assert store.read(ints(3), ints(7))["adam.moment1"].tolist() == [[1, 2]]


def test_of_several_updates_those_alone_that_are_bound_are_stored() -> None:
    store = SolverState(SPECS, num_parameters=2)
    both = ArrayUpdates(
        ints(3, 4),
        ints(7, 7),
        ints(1, 1),
        ints(1, 1),
        np.zeros((2, 2), dtype=np.float32),
        state={
            "adam.moment1": np.array([[1, 2], [3, 4]], dtype=np.float32),
            "adam.steps": np.array([[50], [60]], dtype=np.float32),
        },
    )
    store.commit(both, 0, {"data": np.array([False, True])})
    assert store.read(ints(3, 4), ints(7, 7))["adam.steps"].tolist() == [[0], [60]]
    store.commit(both)
    assert store.read(ints(3, 4), ints(7, 7))["adam.steps"].tolist() == [[50], [60]]


def test_a_solver_that_remembers_nothing_costs_nothing() -> None:
    assert SolverState({}, num_parameters=2).read(ints(0), ints(0)) == {}
