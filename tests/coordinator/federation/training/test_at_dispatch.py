from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from coordinator.federation.training.at_dispatch import AtDispatch
from emulator.messages import TrainTasks, Updates
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.executor.fakes import wave
from tests.fakes import StoppingExecutor

MODELS = np.array([[0.0], [4.0], [7.0]], dtype=np.float32)


def tasks_of(dispatch: int, clients: Sequence[int], models: Sequence[int] = ()) -> TrainTasks:
    """A task of each client, of model 0 or of those given; tasks of one client are one visit."""
    of = wave([3] * len(clients), [1] * len(clients), batch_size=2)
    client = np.array(clients)
    settings = {**of.settings, "local_epochs": np.full(len(client), 4.0)}
    return replace(
        of,
        client=client,
        model=np.array(models or [0] * len(client)),
        visit=100 * dispatch + client,
        dispatch=np.full(len(client), dispatch),
        settings=settings,
        broadcast={"sent": 10 * MODELS},
    )


def training() -> tuple[StoppingExecutor, AtDispatch]:
    """Client c has the target c, and takes c % 3 + 1 epochs."""
    clients = np.arange(10)
    executor = StoppingExecutor(clients.astype(float), clients % 3 + 1, clients % 2)
    return executor, AtDispatch(executor)


def deltas(updates: Updates) -> list[float]:
    delta: list[float] = updates.rows(slice(None))[:, 0].tolist()
    return delta


def test_a_dispatch_is_trained_as_a_whole_and_with_the_models_that_it_starts_from_alone() -> None:
    executor, at_dispatch = training()
    tasks = tasks_of(0, [1, 5, 8], [70, 90, 70])
    updates = at_dispatch.train(0, 3, tasks, MODELS, np.array([0, 2, 0]))
    assert deltas(updates) == [0.5, -1.0, 4.0]  # half of the way to the target
    assert executor.trained == [[1, 5, 8]]
    assert executor.starts[0].tolist() == [[0.0], [7.0], [0.0]]
    assert executor.waves[0].broadcast["sent"].tolist() == [[0.0], [70.0]]


def test_updates_are_taken_from_any_dispatches_in_the_order_of_the_tasks() -> None:
    """Client 2 trains two models in a visit, of which only one goes on."""
    executor, at_dispatch = training()
    first, second = tasks_of(0, [1, 2, 2, 6], [0, 0, 1, 0]), tasks_of(3, [0, 3])
    at_dispatch.train(0, 3, first, MODELS, np.array([0, 0, 1, 0]))
    at_dispatch.train(3, 2, second, MODELS, np.array([1, 1]))
    out = [first.take(np.array([2, 3])), second.take(np.array([0, 1]))]
    columns = {name: [getattr(of, name) for of in out] for name in ("client", "model", "visit", "dispatch")}
    order = [2, 0, 3, 1]  # by client
    mixed = replace(
        first.take(np.arange(4)), **{name: np.concatenate(of)[order] for name, of in columns.items()}
    )
    taken = at_dispatch.take(mixed)
    assert taken.client.tolist() == [0, 2, 3, 6]
    assert taken.model.tolist() == [0, 1, 0, 0]
    assert deltas(taken) == [-2.0, -1.0, -0.5, 3.0]
    assert taken.metrics["epochs"].tolist() == [1, 3, 1, 1]
    assert deltas(at_dispatch.take(first.take(np.array([0, 3])))) == [0.5, 3.0]
    assert executor.trained == [[1, 2, 2, 6], [0, 3]]


def test_once_restored_it_trains_again_what_is_taken_and_nothing_else() -> None:
    _, stored = training()
    first, second = tasks_of(0, [1, 2]), tasks_of(1, [4, 5])
    for number, tasks in enumerate((first, second)):
        stored.train(number, 2, tasks, MODELS, np.array([0, 1]))
    executor, restored = training()
    restored.restore(from_bytes(to_bytes(stored.state())))
    assert executor.trained == []
    for _ in range(2):
        ours, theirs = (of.take(second.take(np.array([1]))) for of in (restored, stored))
        assert deltas(ours) == deltas(theirs) == [0.5]
        assert executor.trained == [[4, 5]]
    assert to_bytes(restored.state()) == to_bytes(stored.state())


def test_a_dispatch_is_dropped_once_all_its_visits_are_over() -> None:
    _, at_dispatch = training()
    first, second = tasks_of(0, [1, 2, 2, 6], [0, 0, 1, 0]), tasks_of(1, [4])
    at_dispatch.train(0, 3, first, MODELS, np.array([0, 0, 1, 0]))
    at_dispatch.train(1, 1, second, MODELS, np.array([0]))

    def kept() -> list[tuple[int, int]]:
        return [(number, of["visits"]) for number, of in at_dispatch.state()["_dispatches"].items()]

    assert kept() == [(0, 3), (1, 1)]
    at_dispatch.over(np.array([0, 1, 0]))
    assert kept() == [(0, 1)]
    assert deltas(at_dispatch.take(first.take(np.array([3])))) == [3.0]
    at_dispatch.over(np.array([0]))
    assert kept() == []
    with pytest.raises(KeyError):
        at_dispatch.take(first)


def test_visits_without_a_task_are_counted_like_others() -> None:
    """Of three visits that of client 3 has nothing to train; it is over first."""
    _, at_dispatch = training()
    tasks = tasks_of(0, [1, 2])
    at_dispatch.train(0, 3, tasks, MODELS, np.array([0, 0]))
    at_dispatch.over(np.array([0, 0]))
    assert deltas(at_dispatch.take(tasks.take(np.array([1])))) == [1.0]
    at_dispatch.over(np.array([0]))
    assert at_dispatch.state() == {"_dispatches": {}}
