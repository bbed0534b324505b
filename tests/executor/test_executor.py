from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError, ResumableError
from emulator.messages import InferencePlan, SampleRanges
from emulator.plugins import NoSettings
from emulator.ports import Executor, Segment
from executor.executor import LocalExecutor
from executor.inference.prediction import EVALUATION_BATCH
from executor.models.base import ModelSpec
from executor.rules.base import LocalRule
from executor.settings import ExecutorSettings
from tests.executor.fakes import FakeReader, executor, model, rule, wave

UNEQUAL = wave(counts=[9, 3, 12], steps=[4, 1, 6])
SERVED_BY_0 = InferencePlan.alike(np.zeros((3, 1), dtype=np.int64))
PROX = [rule("fedprox", mu=0.5), rule("sgd", momentum=0.9)]


def starts_of(trainer: LocalExecutor, n: int) -> np.ndarray:
    return np.tile(trainer.initial(0), (n, 1))


def one_task_each(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A task for each row of `starts` (n, P)."""
    return starts, np.arange(len(starts))


def test_it_implements_the_port() -> None:
    port: Executor = executor(FakeReader())
    assert port.num_parameters == 28


@pytest.mark.parametrize(
    ("kind", "strategy", "resolved"),
    [
        ("mlp", "auto", "dense"),
        ("linear", "auto", "dense"),
        ("masked", "auto", "dense"),
        ("cnn", "auto", "loop"),
        ("mlp", "loop", "loop"),
        ("mlp", "stacked", "stacked"),
        ("cnn", "stacked", "stacked"),
    ],
)
def test_the_strategy_suits_the_model_unless_one_is_configured(
    kind: str, strategy: str, resolved: str
) -> None:
    reader = FakeReader(sample_shape=(8, 8))
    assert executor(reader, model(kind), strategy=strategy).strategy == resolved


class HalfFrozen(ModelSpec):
    """A dense network whose first layer is frozen."""

    stacks = dense = True

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> torch.nn.Module:
        first = torch.nn.Linear(6, 5).requires_grad_(False)
        return torch.nn.Sequential(torch.nn.Flatten(), first, torch.nn.ReLU(), torch.nn.Linear(5, num_labels))


def test_what_is_computed_by_hand_has_all_layers_in_the_vector() -> None:
    spec = HalfFrozen(NoSettings())
    trainer = executor(FakeReader(), spec)
    assert trainer.strategy == "stacked"
    assert (trainer.num_parameters, trainer.solver.base) == (5 * 4 + 4, 6 * 5 + 5)
    with pytest.raises(ConfigurationError, match=r'HalfFrozen has frozen parameters; use "stacked", '):
        executor(FakeReader(), spec, strategy="dense")


class Hungry(ModelSpec):
    """A model that cannot be built for lack of memory."""

    stacks = False

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> torch.nn.Module:
        torch.empty(2**60, dtype=torch.uint8, device="cpu")
        raise AssertionError("there was room for 2^60 bytes")


def test_running_out_of_memory_for_the_model_is_resumable() -> None:
    with pytest.raises(
        ResumableError, match=r"^out of memory while building the model \(.*1152921504606846976"
    ):
        executor(FakeReader(), Hungry(NoSettings()))


def test_updates_follow_the_tasks_whatever_order_they_were_trained_in() -> None:
    trainer = executor(FakeReader(), model("mlp"), chunk=2)
    updates = trainer.train(UNEQUAL, *one_task_each(starts_of(trainer, 3)))
    assert updates.client.tolist() == [0, 1, 2]
    assert updates.num_samples.tolist() == [9, 3, 12]
    assert updates.num_steps.tolist() == [4, 1, 6]
    assert updates.delta.dtype == np.float32
    alone = executor(FakeReader(), model("mlp"), strategy="loop").train(
        UNEQUAL, *one_task_each(starts_of(trainer, 3))
    )
    np.testing.assert_allclose(updates.delta, alone.delta, atol=1e-6)
    np.testing.assert_allclose(updates.metrics["loss"], alone.metrics["loss"], rtol=1e-6)


@pytest.mark.parametrize("strategy", ["dense", "stacked", "loop"])
def test_training_repeats_to_the_bit(strategy: str) -> None:
    results = []
    for _ in range(2):
        trainer = executor(FakeReader(), model("mlp"), PROX, strategy=strategy)
        updates = trainer.train(UNEQUAL, *one_task_each(starts_of(trainer, 3)))
        results.append(updates.delta.tobytes() + updates.metrics["loss"].tobytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("strategy", ["dense", "stacked", "loop"])
def test_two_full_batch_steps_of_fedprox_by_hand(strategy: str) -> None:
    """Softmax regression on batches with every sample twice, so that their order does not matter."""
    reader = FakeReader()
    trainer = executor(reader, rules=[rule("fedprox", mu=2.0), rule("sgd")], strategy=strategy)
    start = starts_of(trainer, 1)
    updates = trainer.train(wave([5], [2], batch_size=10, learning_rate=0.3), *one_task_each(start))

    x, y = np.c_[reader.x[:5], np.ones(5)].astype(np.float64), np.eye(4)[reader.y[:5]]
    received = np.c_[start[0, :24].reshape(4, 6), start[0, 24:]].astype(np.float64)
    present, losses = received.copy(), []
    for _ in range(2):
        p = softmax(x @ present.T)
        losses.append(-np.log((p * y).sum(axis=1)).mean())
        present -= 0.3 * ((p - y).T @ x / 5 + 2.0 * (present - received))
    update = present - received
    np.testing.assert_allclose(updates.delta[0], np.r_[update[:, :6].ravel(), update[:, 6]], atol=1e-6)
    assert updates.metrics["loss"][0] == pytest.approx(np.mean(losses), rel=1e-6)


def test_fedprox_shortens_the_update_and_fedscales_sign_lengthens_it() -> None:
    norms = []
    for rules in (
        [rule("fedprox", mu=1.0), rule("sgd")],
        [rule("sgd")],
        [rule("fedprox", mu=1.0, fedscale_sign=True), rule("sgd")],
    ):
        trainer = executor(FakeReader(), rules=rules)
        norms.append(
            np.linalg.norm(trainer.train(wave([9], [8]), *one_task_each(starts_of(trainer, 1))).delta)
        )
    assert norms == sorted(norms)
    assert norms[0] < norms[1] < norms[2]


def test_an_empty_wave_and_a_client_without_samples_cost_nothing() -> None:
    trainer = executor(FakeReader())
    assert trainer.train(wave([], []), *one_task_each(starts_of(trainer, 0))).delta.shape == (0, 28)
    updates = trainer.train(wave([0], [5]), *one_task_each(starts_of(trainer, 1)))
    assert not updates.delta.any()
    assert updates.num_steps.tolist() == [0]
    assert np.isnan(updates.metrics["loss"][0])


def test_divergence_is_returned_not_hidden() -> None:
    trainer = executor(FakeReader())
    updates = trainer.train(wave([9, 9], [4, 4], learning_rate=1e39), *one_task_each(starts_of(trainer, 2)))
    assert not np.isfinite(updates.delta).all()


def test_evaluation_equals_a_loop_over_clients() -> None:
    reader = FakeReader(rows=3 * EVALUATION_BATCH)
    trainer = executor(reader)
    models = np.stack([trainer.initial(number) for number in range(3)])
    edges = np.array([0, 7, 7, 600, 1100, 1101])  # client 1 has no samples; 2 crosses a batch's border
    samples = SampleRanges(
        np.array([0, 1, 2, 3, 4, 6]), np.append(edges[:-1], 1300), np.append(edges[1:], 1400), np.ones(6)
    )
    serves = np.array([2, 0, 0, 2, 0])
    plan = InferencePlan.alike(serves[:, None])
    evaluation = trainer.evaluate(models, plan, samples)
    for client, row in enumerate(serves):
        rows = samples.rows(client)
        weight = models[row, :24].reshape(4, 6).astype(np.float64)
        p = softmax(reader.x[rows] @ weight.T + models[row, 24:])
        if len(rows) == 0:
            assert np.isnan(evaluation.accuracy[client])
            assert np.isnan(evaluation.loss[client])
        else:
            assert evaluation.accuracy[client] == (p.argmax(axis=1) == reader.y[rows]).mean()
            expected = -np.log(p[np.arange(len(rows)), reader.y[rows]]).mean()
            assert evaluation.loss[client] == pytest.approx(expected, rel=1e-5)
    again = executor(reader).evaluate(models, plan, samples)
    assert again.loss.tobytes() == evaluation.loss.tobytes()


def test_training_and_evaluation_leave_the_global_generators_alone() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    reader = FakeReader(sample_shape=(8, 8))
    for strategy in ("stacked", "loop"):
        trainer = executor(reader, model("cnn"), PROX, strategy=strategy)
        trainer.train(UNEQUAL, *one_task_each(starts_of(trainer, 3)))
        trainer.evaluate(starts_of(trainer, 1), SERVED_BY_0, UNEQUAL.samples)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # noqa: NPY002


def test_inputs_are_not_written_to() -> None:
    reader = FakeReader()
    trainer = executor(reader, rules=PROX)
    starts = starts_of(trainer, 3)
    starts.flags.writeable = False
    before = starts.copy()
    trainer.train(UNEQUAL, *one_task_each(starts))
    trainer.evaluate(starts, SERVED_BY_0, UNEQUAL.samples)
    assert np.array_equal(starts, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "rules", "strategy"),
    [
        (model("mlp"), [rule("sgd")], "dense"),
        (model("mlp"), [rule("adam")], "dense"),
        (model("mlp"), PROX, "stacked"),
        (model("cnn", channels=[3, 5]), PROX, "loop"),
    ],
    ids=["descent", "dense", "stacked", "loop"],
)
def test_the_number_of_threads_changes_no_bit(spec: ModelSpec, rules: list[LocalRule], strategy: str) -> None:
    tasks = wave(
        counts=[9, 3, 12, 0, 5, 30, 7, 8], steps=[4, 1, 6, 2, 6, 3, 3, 2], batch_size=[4] * 6 + [3] * 2
    )
    plan = InferencePlan.alike(np.array([[1], [0]]))
    reader = FakeReader(rows=4 * EVALUATION_BATCH, sample_shape=(8, 8))
    wide = SampleRanges.one_each(np.zeros(2, dtype=np.int64), np.full(2, len(reader.y)))
    results = []
    for threads in (1, 2, 3):
        trainer = executor(reader, spec, rules, strategy=strategy, chunk=2, threads=threads)
        models = np.stack([trainer.initial(number) for number in range(2)])
        for _ in range(2):
            updates = trainer.train(tasks, *one_task_each(starts_of(trainer, 8)))
            evaluation = trainer.evaluate(models, plan, wide)
            scores = trainer.score(models, wide, frozenset({"loss", "confusion"}))
            columns = (updates.delta, updates.metrics["loss"], *updates.state.values(), evaluation.loss)
            results.append([column.tobytes() for column in (*columns, scores.loss, scores.confusion)])
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("spec", "settings", "chunk"),
    [
        (model("mlp", hidden=[4]), {}, 25),
        (model("mlp", hidden=[200]), {}, 18),  # 13,804 parameters
        (model("mlp", hidden=[2000]), {}, 8),
        (model("mlp", hidden=[2000]), {"chunk": 40}, 40),
        (model("mlp"), {"strategy": "loop", "chunk": 40}, 1),
    ],
)
def test_the_chunk_follows_the_size_of_the_model_unless_it_is_configured(
    spec: ModelSpec, settings: dict[str, object], chunk: int
) -> None:
    assert executor(FakeReader(sample_shape=(8, 8)), spec, **settings).chunk == chunk


def test_one_thread_is_the_default() -> None:
    assert ExecutorSettings().threads == 1


class TornReader(FakeReader):
    """A reader that fails on one sample."""

    def features(self, rows: Ints) -> Floats32:
        if 20 in rows:
            raise OSError("row 20 cannot be read")
        return super().features(rows)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_thread_is_raised(threads: int) -> None:
    trainer = executor(TornReader(), chunk=1, threads=threads)
    with pytest.raises(OSError, match="row 20"):
        trainer.train(wave([6] * 6, [2] * 6), *one_task_each(starts_of(trainer, 6)))


def test_a_model_that_is_not_fully_connected_is_refused_by_the_dense_strategy() -> None:
    with pytest.raises(ConfigurationError, match=r'strategy = "dense": the model Cnn is not'):
        executor(FakeReader(sample_shape=(8, 8)), model("cnn"), strategy="dense")


def test_the_layout_names_every_tensor_in_the_order_of_the_vector() -> None:
    layout = executor(FakeReader(), model("masked", inner={"kind": "mlp", "hidden": [3]})).layout
    assert list(layout) == ["mask", "inner.1.weight", "inner.1.bias", "inner.3.weight", "inner.3.bias"]
    assert layout["mask"] == Segment(0, 6, (6,), trainable=False)
    assert layout["inner.1.weight"] == Segment(6, 24, (3, 6))
    assert layout["inner.3.bias"] == Segment(39, 43, (4,))


def test_solver_state_comes_back_in_the_order_of_the_tasks() -> None:
    trainer = executor(FakeReader(), rules=[rule("adam")], chunk=2)
    assert list(trainer.solver.state) == ["adam.moment1", "adam.moment2", "adam.steps"]
    start = starts_of(trainer, 3)
    first = trainer.train(UNEQUAL, *one_task_each(start))
    assert first.state["adam.steps"].tolist() == [[4], [1], [6]]
    assert first.state["adam.moment1"].shape == (3, 28)
    assert first.state["adam.moment2"].dtype == np.float32
    second = trainer.train(replace(UNEQUAL, state=first.state), *one_task_each(start))
    assert second.state["adam.steps"].tolist() == [[8], [2], [12]]
    for task in range(3):
        row = np.array([task])
        alone = trainer.train(replace(UNEQUAL, state=first.state).take(row), *one_task_each(start[row]))
        np.testing.assert_allclose(alone.delta[0], second.delta[task], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(alone.state["adam.moment1"][0], second.state["adam.moment1"][task], 1e-4)


def test_a_task_without_samples_keeps_its_state() -> None:
    trainer = executor(FakeReader(), rules=[rule("adam")])
    state = {"adam.moment1": np.full((1, 28), 3, np.float32), "adam.steps": np.full((1, 1), 7, np.float32)}
    updates = trainer.train(replace(wave([0], [5]), state=state), *one_task_each(starts_of(trainer, 1)))
    assert np.array_equal(updates.state["adam.moment1"], state["adam.moment1"])
    assert updates.state["adam.steps"].tolist() == [[7]]
    assert not updates.state["adam.moment2"].any()


def test_a_solver_without_state_returns_none() -> None:
    for rules in (PROX, [rule("adam", keep="task")]):
        trainer = executor(FakeReader(), rules=rules)
        assert trainer.solver.state == {}
        assert trainer.train(UNEQUAL, *one_task_each(starts_of(trainer, 3))).state == {}


def test_a_chain_without_optimiser_is_refused_when_the_executor_is_made() -> None:
    with pytest.raises(ConfigurationError, match="must be an optimiser"):
        executor(FakeReader(), rules=[rule("fedprox")])


@pytest.mark.slow
def test_importing_the_package_loads_no_torch() -> None:
    code = "import sys, executor; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
