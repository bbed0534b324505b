"""Updates that are added up and let go: same sums, to the bit, as of updates that are kept."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import ArrayUpdates, SummedUpdates, Updates
from executor.executor import LocalExecutor
from executor.group_sums import RunningSums
from executor.training.out_of_memory import OutOfMemory
from tests.executor.fakes import FakeReader, executor, model, wave

COUNTS, STEPS = [9, 3, 12, 0, 5, 7, 8], [4, 1, 6, 2, 4, 4, 1]
TASKS = wave(counts=COUNTS, steps=STEPS)
GROUPS = [np.array([2, 0]), np.array([3, 1, 5]), np.array([4])]


def weights() -> Floats:
    """(3, n) of all tasks with samples, of none, and of a few."""
    drawn = np.random.default_rng(0).random((3, len(TASKS)))
    drawn[:, 3] = drawn[1] = drawn[2, :2] = 0
    return drawn


def started(trainer: LocalExecutor) -> tuple[Floats32, Ints]:
    return np.stack([trainer.initial(0), trainer.initial(1)]), np.arange(len(TASKS)) % 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chunk", [1, 3, 7])
def test_sums_of_updates_that_are_let_go_are_those_of_kept_ones_to_the_bit(chunk: int, threads: int) -> None:
    trainer = executor(FakeReader(), model("mlp"), chunk=chunk, threads=threads)
    kept = trainer.train(TASKS, *started(trainer))
    summed = trainer.train(TASKS, *started(trainer), weights())
    assert isinstance(summed, SummedUpdates)
    assert summed.delta.size == 0
    assert summed.weighted_sum(weights()).tobytes() == kept.weighted_sum(weights()).tobytes()
    for name in ("client", "model", "num_samples", "num_steps", "finite"):
        assert getattr(summed, name).tolist() == getattr(kept, name).tolist()
    assert summed.metrics["loss"].tobytes() == kept.metrics["loss"].tobytes()


def test_memory_does_not_grow_with_participants_if_updates_are_let_go() -> None:
    """What numpy holds at most: updates that are kept are a row each, sums one for all."""
    trainer = executor(FakeReader(), model("mlp", hidden=[2000]), strategy="loop")
    row = 4 * trainer.num_parameters

    def peak(participants: int, *, lets_go: bool) -> int:
        tasks = wave(counts=[4] * participants, steps=[1] * participants)
        models, start = trainer.initial(0)[None], np.zeros(participants, dtype=np.int64)
        weights = np.ones((1, participants)) if lets_go else None
        tracemalloc.start()
        trainer.train(tasks, models, start, weights)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = (peak(number, lets_go=True) for number in (8, 32))
    assert many < few + row
    few, many = (peak(number, lets_go=False) for number in (8, 32))
    assert many > few + 23 * row


def test_of_some_of_them_the_same_sums_are_known() -> None:
    trainer = executor(FakeReader(), model("mlp"), chunk=3)
    summed = trainer.train(TASKS, *started(trainer), weights())
    some = np.flatnonzero(np.array(COUNTS) > 0)  # all others weigh nothing
    known = summed.take(some).weighted_sum(weights()[:, some])
    assert known.tobytes() == summed.weighted_sum(weights()).tobytes()
    known[:] = 0  # it is the caller's
    assert summed.weighted_sum(weights()).any()


@pytest.mark.parametrize(
    "read",
    [
        lambda updates: updates.weighted_sum(weights() / 2),
        lambda updates: updates.rows(slice(None)),
        lambda updates: updates.gram(),
        lambda updates: updates.norms(),
        lambda updates: updates.project(np.zeros((1, 28))),
    ],
)
def test_whoever_reads_what_was_let_go_is_told(read: Callable[[Updates], Floats]) -> None:
    trainer = executor(FakeReader(), model("mlp"))
    summed = trainer.train(TASKS, *started(trainer), weights())
    with pytest.raises(RunError, match=r"were let go .* must not declare reads_updates = False"):
        read(summed)


@pytest.mark.parametrize("spoilt", [0, 6])
@pytest.mark.parametrize("threads", [1, 2])
def test_if_one_is_not_finite_all_are_trained_once_more_and_kept(spoilt: int, threads: int) -> None:
    trainer = executor(FakeReader(), model("mlp"), chunk=2, threads=threads)
    lost = np.zeros(len(TASKS))
    lost[spoilt] = 1
    tasks = replace(TASKS, tampering={"nan": lost})
    kept, again = (trainer.train(tasks, *started(trainer), known) for known in (None, weights()))
    assert type(again) is ArrayUpdates
    assert again.finite.tolist() == [row != spoilt for row in range(len(TASKS))]
    assert again.delta.tobytes() == kept.delta.tobytes()


def test_a_loss_that_is_not_finite_counts_as_well() -> None:
    # The coordinator leaves such an update out, however finite it is.
    trainer = executor(FakeReader(), model("linear"))
    steps = np.ones(len(TASKS))
    tasks = replace(TASKS, settings={**TASKS.settings, "local_steps": steps, "learning_rate": steps * 0})
    models, start = started(trainer)
    models[:, 0] = 3e38
    updates = trainer.train(tasks, models, start, weights())
    lost = ~np.isfinite(updates.metrics["loss"]) & (updates.num_samples > 0)
    assert lost.any() == (type(updates) is ArrayUpdates)
    assert lost.any()


def added(order: Sequence[tuple[int, Sequence[int]]], rows: Floats32, ahead: int = 9) -> Floats:
    sums = RunningSums(weights()[:, : len(rows)], GROUPS, rows.shape[1], ahead)
    for number, members in order:
        sums.put(number, np.array(members), rows[list(members)])
    return sums.total


def test_the_order_in_which_groups_come_and_their_parts_change_no_bit() -> None:
    rows = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32)
    in_order = added([(0, [2, 0]), (1, [3, 1, 5]), (2, [4])], rows)
    expected = np.zeros((3, 5))
    for members in GROUPS:
        part = np.zeros((3, 5))
        for task in np.sort(members):
            part += weights()[:, task, None] * rows[task].astype(np.float64)
        expected += part
    assert in_order.tobytes() == expected.tobytes()
    # A group that does not fit into memory comes in halves.
    assert added([(2, [4]), (1, [3]), (0, [2, 0]), (1, [1, 5])], rows).tobytes() == expected.tobytes()


def test_a_group_that_is_too_far_ahead_waits_for_those_before_it() -> None:
    rows, came = np.ones((6, 5), dtype=np.float32), threading.Event()
    sums = RunningSums(weights()[:, :6], GROUPS, 5, ahead=1)

    def last() -> None:
        sums.put(2, GROUPS[2], rows[GROUPS[2]])
        came.set()

    thread = threading.Thread(target=last, daemon=True)
    thread.start()
    sums.put(1, GROUPS[1], rows[GROUPS[1]])
    assert not came.wait(0.05)
    sums.put(0, GROUPS[0], rows[GROUPS[0]])
    assert came.wait(10)
    assert sums.total.tobytes() == added([(0, [0, 2]), (1, [1, 3, 5]), (2, [4])], rows).tobytes()


def test_sums_fail_if_memory_runs_out_as_a_group_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    # The groups 1 and 2 wait for 0, and are added with it; half of 0 would fit, and is trained again.
    rows, stacked = np.ones((6, 5), dtype=np.float32), iter((np.stack, None))
    sums, halves = RunningSums(weights()[:, :6], GROUPS, 5, ahead=2), OutOfMemory("halve", chunk=3)

    def stack(some: Sequence[Floats32]) -> Floats32:
        if (one := next(stacked, np.vstack)) is None:
            raise MemoryError
        return one(some)

    monkeypatch.setattr("executor.group_sums.np.stack", stack)
    for number in (1, 2, 0):
        halves.run(lambda some: sums.put(number, some, rows[some]), GROUPS[number])  # noqa: B023
    assert halves.halved == 1
    assert sums.failed


def test_nobody_waits_for_a_group_that_has_failed() -> None:
    sums, came = RunningSums(weights()[:, :6], GROUPS, 5, ahead=0), threading.Event()

    def last() -> None:
        sums.put(2, GROUPS[2], np.ones((1, 5), dtype=np.float32))
        came.set()

    threading.Thread(target=last, daemon=True).start()
    with pytest.raises(KeyError), sums.failing():
        raise KeyError("of the first group")
    assert came.wait(10)
    assert sums.failed
    assert not sums.total.any()
