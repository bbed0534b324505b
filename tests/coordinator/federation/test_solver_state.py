from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.federation.solver_state import SolverState
from emulator.arrays import Floats32, Ints
from emulator.messages import ArrayUpdates, StateSpec
from emulator.storage.state_tree import from_bytes, to_bytes
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


# -- lifetimes ---------------------------------------------------------------------------------------------

LIVES = {
    "moment": StateSpec("parameters", until="data"),
    "control": StateSpec("parameters", until="model"),
    "own": StateSpec("parameters", until="run", start="received"),
    "count": StateSpec("scalar", until="run"),
}


def lived(
    client: Sequence[int], model: Sequence[int], value: Sequence[float], steps: int = 1
) -> ArrayUpdates:
    """An update of each pair, whose slots are full of its `value`."""
    rows, columns = len(client), np.array(value, dtype=np.float32)[:, None]
    return ArrayUpdates(
        np.array(client, dtype=np.int64),
        np.array(model, dtype=np.int64),
        np.ones(rows, dtype=np.int64),
        np.full(rows, steps),
        np.zeros((rows, 2), dtype=np.float32),
        state={name: np.repeat(columns, spec.width(2), axis=1) for name, spec in LIVES.items()},
    )


def as_received(tasks: Ints) -> Floats32:
    """Task number t starts from the parameters -1 - t."""
    return np.repeat(-1 - tasks[:, None], 2, axis=1).astype(np.float32)


def first_numbers(store: SolverState, client: int, model: int) -> dict[str, float]:
    found = store.read(ints(client), ints(model), as_received)
    return {name: rows[0, 0].item() for name, rows in found.items()}


def a_store(*updates: ArrayUpdates) -> SolverState:
    store = SolverState(LIVES, num_parameters=2)
    for round_, update in enumerate(updates):
        store.commit(update, round_)
    return store


def test_new_data_end_the_rows_that_last_until_then_alone() -> None:
    store = a_store(lived([3, 4], [7, 7], [5, 6]))
    store.data_changed(ints(3))
    assert first_numbers(store, 3, 7) == {"moment": 0, "control": 5, "own": 5, "count": 5}
    assert first_numbers(store, 4, 7) == {"moment": 6, "control": 6, "own": 6, "count": 6}
    assert len(store) == 5


def test_the_end_of_a_model_ends_its_rows_but_not_those_of_the_run() -> None:
    store = a_store(lived([3, 4], [7, 8], [5, 6]))
    store.models_changed(ints(8, 9))
    assert first_numbers(store, 3, 7) == {"moment": 0, "control": 0, "own": 5, "count": 5}
    assert first_numbers(store, 4, 8) == {"moment": 6, "control": 6, "own": 6, "count": 6}


def test_a_row_of_the_run_is_shared_by_all_models_of_a_client() -> None:
    store = a_store(lived([3], [7], [5]), lived([3], [8], [6]))
    assert first_numbers(store, 3, 7) == {"moment": 5, "control": 5, "own": 6, "count": 6}
    assert first_numbers(store, 3, 9) == {"moment": 0, "control": 0, "own": 6, "count": 6}
    assert len(store) == 2 + 2 + 1


def test_a_client_that_leaves_loses_all_its_rows() -> None:
    store = a_store(lived([3, 4], [7, 7], [5, 6]), lived([3], [8], [5]))
    store.clients_left(ints(3))
    assert first_numbers(store, 3, 7) == {"moment": 0, "control": 0, "own": -1, "count": 0}
    assert first_numbers(store, 4, 7) == {"moment": 6, "control": 6, "own": 6, "count": 6}
    assert len(store) == 3


def test_a_client_that_moves_to_another_model_loses_its_rows_that_last_until_a_model_ends() -> None:
    """Client 3 moves from model 7 to 8; client 4 trains 7, to which it has never belonged."""
    store = a_store(lived([3, 4, 5], [7, 7, 7], [5, 6, 8]))
    store.members_changed(np.array([[-1]] * 3 + [[7], [8], [7]]), np.array([[-1]] * 3 + [[8], [8], [7]]))
    assert first_numbers(store, 3, 7) == {"moment": 5, "control": 0, "own": 5, "count": 5}
    assert first_numbers(store, 4, 7) == {"moment": 6, "control": 6, "own": 6, "count": 6}
    assert first_numbers(store, 5, 7) == {"moment": 8, "control": 8, "own": 8, "count": 8}


def test_a_row_that_would_not_be_finite_is_deleted_and_none_is_written() -> None:
    store = a_store(lived([3, 4], [7, 7], [5, 6]))
    assert store.commit(lived([3, 4, 5], [7, 7, 7], [np.inf, 2, np.nan]), 1).tolist() == [3, 5]
    assert first_numbers(store, 3, 7) == {"moment": 0, "control": 0, "own": -1, "count": 0}
    assert first_numbers(store, 4, 7) == {"moment": 2, "control": 2, "own": 2, "count": 2}
    assert first_numbers(store, 5, 7) == {"moment": 0, "control": 0, "own": -1, "count": 0}


def test_only_what_a_client_may_remember_and_has_trained_is_looked_at() -> None:
    """Of clients 3 and 5 all is lost to new data or unchanged; of client 4, what lasts for the run alone."""
    store = a_store(lived([3, 4, 5], [7, 7, 7], [5, 6, 8]))
    updates = replace(lived([3, 4, 5], [7, 7, 7], [np.inf] * 3), num_steps=np.array([1, 1, 0]))
    never, last = np.array([False] * 3), np.array([False, True, True])
    assert store.commit(updates, 1, {"data": never, "model": never, "run": last}).tolist() == [4]
    assert first_numbers(store, 3, 7) == {"moment": 5, "control": 5, "own": 5, "count": 5}
    assert first_numbers(store, 4, 7) == {"moment": 6, "control": 6, "own": -1, "count": 0}
    assert first_numbers(store, 5, 7) == {"moment": 8, "control": 8, "own": 8, "count": 8}


def test_a_mean_survives_a_row_that_was_huge_for_a_while() -> None:
    store = SolverState(LIVES, num_parameters=2, averaged=["control"])
    store.commit(lived([1, 2], [7, 7], [1, 1]))
    store.commit(lived([3], [7], [1e20]))
    members = np.array([[-1], [0], [0], [0]])
    store.commit(lived([3], [7], [4]))
    assert store.means(ints(7), members)["control"].tolist() == [[2, 2]]
    store.commit(lived([3], [7], [1e20]))
    store.commit(lived([3], [7], [np.inf]))
    assert store.means(ints(7), members)["control"].tolist() == [[2 / 3, 2 / 3]]
    store.clients_left(ints(1, 2))
    assert store.means(ints(7), members)["control"].tolist() == [[0, 0]]


def test_strays_are_rows_of_clients_that_belong_elsewhere() -> None:
    store = a_store(lived([1, 2], [7, 7], [5, 6]), lived([2], [9], [1]))
    members = np.array([[-1], [1], [0]])  # client 2 belongs to model 9
    client, row = store.strays(ints(9, 7), members)
    assert (client.tolist(), row.tolist()) == ([2], [1])
    store.drop(client, ints(9, 7)[row])
    assert first_numbers(store, 2, 7) == {"moment": 6, "control": 0, "own": 1, "count": 1}
    assert first_numbers(store, 2, 9)["control"] == 1


def test_a_mean_is_over_the_members_of_a_model_and_those_that_train_it_all_the_same() -> None:
    """Of model 7 by hand: members 1, 2 and 5, of which 5 has no row, and 3, which belongs to 9."""
    store = SolverState(LIVES, num_parameters=2, averaged=["control"])
    store.commit(lived([1, 2, 3], [7, 7, 7], [5, 6, 1]))
    store.commit(lived([3], [9], [4]))
    members = np.array([[-1], [1], [1], [0], [-1], [1]])
    assert {name: rows.tolist() for name, rows in store.means(ints(9, 7, 8), members).items()} == {
        "control": [[4, 4], [3, 3], [0, 0]]
    }
    store.clients_left(ints(2))
    members[2] = -1
    assert store.means(ints(9, 7), members)["control"].tolist() == [[4, 4], [2, 2]]
    assert a_store().means(ints(9, 7), members) == {}


def test_a_row_that_begins_as_received_asks_only_for_the_tasks_that_have_none() -> None:
    store = a_store(lived([4], [7], [5]))
    asked = []

    def received(tasks: Ints) -> Floats32:
        asked.append(tasks.tolist())
        return as_received(tasks)

    state = store.read(ints(3, 4, 5), ints(7, 9, 7), received)
    assert state["own"].tolist() == [[-1, -1], [5, 5], [-3, -3]]
    assert state["moment"].tolist() == [[0, 0]] * 3
    store.read(ints(4), ints(8), received)
    assert asked == [[0, 2]]


def test_what_a_task_is_bound_to_gates_the_rows_of_each_lifetime() -> None:
    store = SolverState(LIVES, num_parameters=2)
    updates = lived([1, 2, 3], [7, 7, 7], [5, 5, 5])
    bound, stayed = np.array([True, False, False]), np.array([True, True, False])
    store.commit(updates, 0, {"data": bound, "model": stayed, "run": stayed})
    assert first_numbers(store, 1, 7) == {"moment": 5, "control": 5, "own": 5, "count": 5}
    assert first_numbers(store, 2, 7) == {"moment": 0, "control": 5, "own": 5, "count": 5}
    assert first_numbers(store, 3, 7) == {"moment": 0, "control": 0, "own": -1, "count": 0}


def test_a_task_without_steps_is_not_remembered_and_forgets_nothing() -> None:
    store = a_store(lived([3], [7], [9], steps=0))
    assert len(store) == 0
    store = a_store(lived([3], [7], [5]), lived([3], [7], [9], steps=0))
    assert first_numbers(store, 3, 7) == {"moment": 5, "control": 5, "own": 5, "count": 5}
    assert store.remembered(["own"], ints(3), ints(7))[1].tolist() == [0]


# -- what is remembered ------------------------------------------------------------------------------------


def test_what_clients_remember_has_its_round_and_is_of_those_with_all_slots() -> None:
    """Clients 1 and 2 are served by model 7; 3 by model 8, of which it has no row; 4 has never trained."""
    store = a_store(lived([1], [7], [5]), lived([2, 3], [7, 7], [6, 7]), lived([1], [8], [8]))
    clients, models = ints(1, 2, 3, 4), ints(7, 7, 8, 7)
    having, written, state = store.remembered(["own"], clients, models)
    assert (having.tolist(), written.tolist()) == ([0, 1, 2], [2, 1, 1])
    assert {name: rows.tolist() for name, rows in state.items()} == {"own": [[8, 8], [6, 6], [7, 7]]}
    having, written, state = store.remembered({"own", "control"}, clients, models)
    assert (having.tolist(), written.tolist()) == ([0, 1], [0, 1])  # of two rows, the older one
    assert {name: rows[:, 0].tolist() for name, rows in state.items()} == {"control": [5, 6], "own": [8, 6]}
    having, written, state = store.remembered({"own"}, ints(4), ints(7))
    assert (having.tolist(), written.tolist(), state["own"].shape) == ([], [], (0, 2))


def test_before_any_visit_nobody_remembers_anything() -> None:
    having, written, state = a_store().remembered({"own", "count"}, ints(1, 2), ints(7, 7))
    assert (having.tolist(), written.tolist()) == ([], [])
    assert {name: rows.shape for name, rows in state.items()} == {"count": (0, 1), "own": (0, 2)}


# -- against plain dictionaries ----------------------------------------------------------------------------


@dataclass
class Plain:
    """The same by a dictionary for each slot, from (client, model), or the client, to (number, round)."""

    rows: dict[str, dict[tuple[int, ...], tuple[float, int]]] = field(
        default_factory=lambda: {name: {} for name in LIVES}
    )

    def key(self, name: str, client: int, model: int) -> tuple[int, ...]:
        return (client,) if LIVES[name].until == "run" else (client, model)

    def read(self, name: str, client: int, model: int, task: int) -> float:
        default = -1.0 - task if LIVES[name].start == "received" else 0.0
        return self.rows[name].get(self.key(name, client, model), (default, 0))[0]

    def data_changed(self, clients: list[int]) -> None:
        self._keep(lambda name, key: LIVES[name].until != "data" or key[0] not in clients)

    def clients_left(self, clients: list[int]) -> None:
        self._keep(lambda name, key: key[0] not in clients)

    def models_changed(self, ids: list[int]) -> None:
        self._keep(lambda name, key: LIVES[name].until == "run" or key[1] in ids)

    def moved(self, before: list[int], after: list[int]) -> None:
        def stays(client: int, model: int) -> bool:
            return before[client] != model or after[client] == model

        self._keep(lambda name, key: LIVES[name].until != "model" or stays(*key))

    def mean(self, model: int, members: list[int]) -> float:
        """That of "control" over members of the model, and clients that have a row all the same."""
        rows = {client: row for (client, of), (row, _) in self.rows["control"].items() if of == model}
        clients = {client for client, of in enumerate(members) if of == model} | rows.keys()
        return sum(rows.values()) / max(len(clients), 1)

    def _keep(self, keeps: Callable[[str, tuple[int, ...]], bool]) -> None:
        for name, rows in self.rows.items():
            self.rows[name] = {key: row for key, row in rows.items() if keeps(name, key)}


CLIENTS, MODELS = st.integers(0, 4), st.integers(0, 2)
VISITS = st.lists(
    st.tuples(CLIENTS, MODELS, st.integers(0, 1), st.sampled_from(["bound", "stayed", "neither"])),
    max_size=4,
    unique_by=lambda visit: visit[0],
)
CHANGES: st.SearchStrategy[tuple[str, list[Any]]] = st.one_of(
    st.tuples(st.just("commit"), VISITS),
    st.tuples(st.sampled_from(["data", "left"]), st.lists(CLIENTS, max_size=3)),
    st.tuples(st.just("models"), st.lists(MODELS, max_size=3)),
    st.tuples(st.just("moved"), st.lists(st.integers(-1, 2), min_size=5, max_size=5)),
    st.tuples(st.just("stored"), st.just([])),
)


@settings(max_examples=30)
@given(st.lists(CHANGES, max_size=12))
def test_it_equals_a_dictionary_whatever_is_written_deleted_stored_and_written_again(
    changes: list[tuple[str, list[Any]]],
) -> None:
    store, plain, value, members = SolverState(LIVES, 2, ["control"]), Plain(), 0.0, [0] * 5
    for round_, (kind, content) in enumerate(changes):
        if kind == "commit":
            client, model, steps, bound = zip(*content, strict=True) if content else ((),) * 4
            values = [value + number for number in range(1, len(content) + 1)]
            value += len(content)
            updates = replace(lived(client, model, values), num_steps=np.array(steps, dtype=np.int64))
            is_bound = np.array([of == "bound" for of in bound], dtype=bool)
            has_stayed = np.array([of != "neither" for of in bound], dtype=bool)
            store.commit(updates, round_, {"data": is_bound, "model": has_stayed, "run": has_stayed})
            for number, (of_client, of_model, took, _) in enumerate(content):
                for name, spec in LIVES.items():
                    if took and (is_bound if spec.until == "data" else has_stayed)[number]:
                        key = plain.key(name, of_client, of_model)
                        plain.rows[name][key] = values[number], round_
        elif kind == "data":
            store.data_changed(np.array(content, dtype=np.int64))
            plain.data_changed(content)
        elif kind == "left":
            store.clients_left(np.array(content, dtype=np.int64))
            plain.clients_left(content)
        elif kind == "models":
            store.models_changed(np.array(content, dtype=np.int64))
            plain.models_changed(content)
        elif kind == "moved":
            store.members_changed(np.array(members)[:, None], np.array(content)[:, None])
            plain.moved(members, content)
            members = content
        else:
            stored = to_bytes(store.state())
            store = SolverState(LIVES, 2, ["control"])
            store.restore(from_bytes(stored))
            assert to_bytes(store.state()) == stored
        check_equal(store, plain, members)


def check_equal(store: SolverState, plain: Plain, members: list[int]) -> None:
    means = store.means(np.arange(3), np.array(members)[:, None])["control"]
    assert means == pytest.approx(np.array([[plain.mean(id_, members)] * 2 for id_ in range(3)]))
    client, model = (axis.ravel() for axis in np.meshgrid(np.arange(5), np.arange(3)))
    pairs = list(zip(client.tolist(), model.tolist(), strict=True))
    state = store.read(client, model, as_received)
    for name in LIVES:
        expected = [plain.read(name, *pair, task) for task, pair in enumerate(pairs)]
        assert state[name].T.tolist() == [expected] * LIVES[name].width(2)
        having, written, found = store.remembered({name}, client, model)
        known = [plain.rows[name].get(plain.key(name, *pair)) for pair in pairs]
        assert having.tolist() == [number for number, row in enumerate(known) if row is not None]
        assert list(zip(found[name][:, 0].tolist(), written.tolist(), strict=True)) == [
            row for row in known if row is not None
        ]
    tables = ("moment", "control", "own")  # `count` lives as long as `own`: one row of both
    assert len(store) == sum(len(plain.rows[name]) for name in tables)
