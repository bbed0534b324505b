"""Workers and one process come to the same, to the bit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from emulator.arrays import Floats32, Ints
from emulator.errors import ResumableError
from emulator.messages import InferencePlan, Metric, SampleRanges, TrainTasks
from emulator.ports import Executor
from executor.executor import LocalExecutor
from executor.workers.packing import packed_tasks, unpacked_tasks
from executor.workers.pool import Context, Pool
from executor.workers.processes import WorkerProcess
from executor.workers.remote import RemoteExecutor
from executor.workers.serving import summed, unfolded
from tests.executor.fakes import wave
from tests.executor.workers.cases import build
from tests.executor.workers.conftest import MODULE

CASES = ["mlp-sgd-whole", "mlp-adam-whole", "cnn-prox-whole"]
EVERYTHING: frozenset[Metric] = frozenset(("correct", "loss", "true_class_error", "confusion"))
TASKS = wave(counts=[9, 3, 12, 0, 5, 30, 7, 8], steps=[4, 1, 6, 2, 6, 3, 3, 2], batch_size=[4] * 6 + [3] * 2)
"""Cohorts of unequal tasks, of two batch sizes; one client has nothing to train on."""

PoolOf = Callable[[int], Pool]


def both(case: str, pool: Pool) -> tuple[LocalExecutor, RemoteExecutor]:
    local = build(case)
    return local, RemoteExecutor(
        local, pool, Context("executor", pool.number(), {"case": case}, prepares=True), threads=1
    )


def start_of(local: LocalExecutor) -> tuple[Floats32, Ints]:
    """Two models, from which the tasks start in turn."""
    return np.stack([local.initial(0), local.initial(1)]), np.arange(len(TASKS)) % 2


def whole_trace(clients: int = 39) -> SampleRanges:
    edges = np.linspace(0, 3072, clients + 1).astype(np.int64)
    return SampleRanges.one_each(edges[:-1], edges[1:])


def weights() -> np.ndarray:
    """Of three models: one has all updates, one none, one those of few clients."""
    found = np.random.default_rng(0).random((3, len(TASKS)))
    found[1] = 0
    found[2, :5] = 0
    return found


def test_it_is_the_executor_of_the_port(pool_of: PoolOf) -> None:
    local, remote = both("mlp-sgd-whole", pool_of(2))
    port: Executor = remote
    assert port.num_parameters == local.num_parameters
    assert port.initial(3).tobytes() == local.initial(3).tobytes()
    assert (remote.strategy, remote.chunk) == (local.strategy, local.chunk)
    assert (remote.layout, remote.state) == (local.layout, local.state)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("case", CASES)
def test_training_is_the_same_by_any_number_of_workers(case: str, workers: int, pool_of: PoolOf) -> None:
    local, remote = both(case, pool_of(workers))
    models, start = start_of(local)
    tasks = TASKS
    for _ in range(2):  # the second time with what the solver remembers of the first
        ours, theirs = remote.train(tasks, models, start), local.train(tasks, models, start)
        for name in ("client", "model", "num_samples", "num_steps", "finite"):
            assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
        assert ours.metrics["loss"].tobytes() == theirs.metrics["loss"].tobytes()
        assert ours.state.keys() == theirs.state.keys()
        for name, rows in theirs.state.items():
            assert ours.state[name].tobytes() == rows.tobytes()
        some, others = ours.take(np.array([1, 3, 4])), theirs.take(np.array([1, 3, 4]))
        assert ours.mix(weights()).tobytes() == theirs.mix(weights()).tobytes()
        assert some.mix(weights()[:, :3]).tobytes() == others.mix(weights()[:, :3]).tobytes()
        assert ours.norms().tobytes() == theirs.norms().tobytes()
        assert some.norms().tobytes() == others.norms().tobytes()
        assert some.gram().tobytes() == others.gram().tobytes()
        assert ours.rows(slice(3, 9)).tobytes() == theirs.rows(slice(3, 9)).tobytes()
        assert ours.mix(weights()).tobytes() == theirs.mix(weights()).tobytes()  # from the rows, now here
        tasks = replace(tasks, state=theirs.state)


@pytest.mark.parametrize("case", CASES)
def test_sums_that_are_expected_come_with_the_training_and_are_the_same(case: str, pool_of: PoolOf) -> None:
    pool = pool_of(2)
    local, remote = both(case, pool)
    models, start = start_of(local)
    theirs = local.train(TASKS, models, start, weights())
    ours = remote.train(TASKS, models, start, weights())
    said = received_bytes(pool)
    assert ours.mix(weights()).tobytes() == theirs.mix(weights()).tobytes()
    assert received_bytes(pool) == said
    others = weights() / 3
    assert ours.mix(others).tobytes() == theirs.mix(others).tobytes()
    assert received_bytes(pool) > said
    kept = np.arange(1, len(TASKS))
    some = weights()[:, kept]
    assert ours.take(kept).mix(some).tobytes() == theirs.take(kept).mix(some).tobytes()


def received_bytes(pool: Pool) -> int:
    return sum(worker.channel.received_bytes for worker in pool.workers)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("case", CASES)
def test_evaluation_and_scores_are_the_same_by_any_number_of_workers(
    case: str, workers: int, pool_of: PoolOf
) -> None:
    local, remote = both(case, pool_of(workers))
    models, samples = start_of(local)[0], whole_trace()
    turns = np.arange(39)[:, None] % 2
    for plan in (
        InferencePlan.alike(turns),
        InferencePlan.alike(np.tile([0, 1], (39, 1))),
        InferencePlan(np.tile([0, 1], (39, 1)), np.where(turns, [[0.3, 0.7]], [[1.0, 0.0]]), "votes"),
        InferencePlan.alike(np.full((39, 1), -1)),
    ):
        ours, theirs = remote.evaluate(models, plan, samples), local.evaluate(models, plan, samples)
        assert ours.accuracy.tobytes() == theirs.accuracy.tobytes()
        assert ours.loss.tobytes() == theirs.loss.tobytes()
    scores, same = remote.score(models, samples, EVERYTHING), local.score(models, samples, EVERYTHING)
    for name in ("counts", *EVERYTHING):
        assert getattr(scores, name).tobytes() == getattr(same, name).tobytes()
    assert remote.score(models[:0], samples, EVERYTHING).accuracy().shape == (39, 0)


def test_updates_that_are_not_finite_are_told_apart_and_need_not_be_used(pool_of: PoolOf) -> None:
    local, remote = both("mlp-sgd-whole", pool_of(2))
    models, start = start_of(local)
    diverges = np.isin(np.arange(len(TASKS)), (1, 4))
    tasks = replace(TASKS, settings={**TASKS.settings, "learning_rate": np.where(diverges, 1e39, 0.1)})
    ours, theirs = remote.train(tasks, models, start), local.train(tasks, models, start)
    assert ours.finite.tolist() == theirs.finite.tolist() == (~diverges).tolist()
    kept = np.flatnonzero(ours.finite)
    mixed = ours.take(kept).mix(weights()[:, kept])
    assert np.isfinite(mixed).all()
    assert mixed.tobytes() == theirs.take(kept).mix(weights()[:, kept]).tobytes()


def test_an_empty_wave_costs_nothing(pool_of: PoolOf) -> None:
    local, remote = both("mlp-sgd-whole", pool_of(2))
    models = start_of(local)[0]
    updates = remote.train(wave([], []), models, np.zeros(0, dtype=np.int64))
    assert (len(updates), updates.mix(np.zeros((2, 0))).shape) == (0, (2, local.num_parameters))


def test_a_cohort_whose_worker_is_lost_is_trained_again(pool_of: PoolOf) -> None:
    pool = pool_of(2)
    local, remote = both("mlp-adam-whole", pool)
    models, start = start_of(local)
    theirs = local.train(TASKS, models, start)
    for victim in (0, 1):
        ours = remote.train(TASKS, models, start)
        worker = pool.workers[victim]
        assert isinstance(worker, WorkerProcess)
        os.kill(worker.pid, signal.SIGKILL)
        assert ours.mix(weights()).tobytes() == theirs.mix(weights()).tobytes()
        assert ours.rows(slice(None)).tobytes() == theirs.rows(slice(None)).tobytes()
        pool.wait_for_all()


def test_a_worker_that_hangs_is_given_up_and_its_work_done_again() -> None:
    with Pool([lambda: WorkerProcess(MODULE)], timeout_s=2) as pool:
        pool.wait_for_all()
        local, remote = both("mlp-sgd-whole", pool)
        models, start = start_of(local)
        theirs = local.train(TASKS, models, start)
        remote.train(TASKS, models, start)
        [worker] = pool.workers
        assert isinstance(worker, WorkerProcess)
        os.kill(worker.pid, signal.SIGSTOP)
        ours = remote.train(TASKS, models, start)
        assert ours.mix(weights()).tobytes() == theirs.mix(weights()).tobytes()
        assert pool.lost == 1
        assert pool.workers != [worker]


def test_what_is_wrong_in_a_worker_is_raised_here(pool_of: PoolOf) -> None:
    local, remote = both("mlp-sgd-torn", pool_of(2))
    models, start = start_of(local)
    with pytest.raises(OSError, match=r"cannot be read: 'row 25'"):
        remote.train(TASKS, models, start)


def test_a_job_that_kills_whoever_does_it_ends_the_run(pool_of: PoolOf) -> None:
    pool = pool_of(1)
    local, remote = both("mlp-sgd-fatal", pool)
    lost = pool.lost
    with pytest.raises(ResumableError, match=r"3 workers in a row .* killed by SIGABRT"):
        remote.train(TASKS, *start_of(local))
    assert pool.lost == lost + 3
    local, remote = both("mlp-sgd-whole", pool)  # and the next run has a worker again
    assert remote.train(TASKS, *start_of(local)).num_steps.tolist() == [4, 1, 6, 0, 6, 3, 3, 2]


@pytest.mark.parametrize("counted", [0, 1, 3])
def test_sums_or_rows_are_sent_whichever_are_less(counted: int) -> None:
    rows = np.random.default_rng(1).standard_normal((6, 40)).astype(np.float32)
    own = np.zeros((2, 6))
    own[:, :counted] = 0.25
    sent = summed(own, rows)
    assert sent.shape == ((counted if counted <= 4 else 2), 40)
    whole = np.zeros((2, 40))
    for row in range(counted):
        whole += 0.25 * rows[row].astype(np.float64)
    assert unfolded(sent, own).tolist() == whole.tolist()


def test_tasks_are_unpacked_as_they_were_packed() -> None:
    tasks = TrainTasks(
        **{
            **vars(TASKS),
            "samples": SampleRanges(
                np.arange(0, 18, 2), np.arange(16), np.arange(16) + 3, np.linspace(0.1, 1, 16), True
            ),
            "state": {"adam.steps": np.ones((8, 1), dtype=np.float32)},
            "tampering": {"scale": np.full(8, -1.0)},
        }
    )
    found, start = unpacked_tasks(packed_tasks(tasks, np.arange(8)))
    assert start.tolist() == list(range(8))
    for name, column in vars(tasks).items():
        other = getattr(found, name)
        if isinstance(column, SampleRanges):
            assert all(np.array_equal(value, getattr(other, key)) for key, value in vars(column).items())
        elif isinstance(column, dict):
            assert {key: value.tolist() for key, value in other.items()} == {
                key: value.tolist() for key, value in column.items()
            }
        else:
            assert np.array_equal(column, other)
