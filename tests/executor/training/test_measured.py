"""The metrics that are measured on request, by hand, against an ordinary loop, and beside the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from emulator.arrays import Floats
from emulator.messages import TASK_METRICS, ArrayUpdates, TaskMetric, TrainTasks, empty_metric
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.models.base import ModelSpec
from executor.rules.base import LocalRule
from executor.training.batches import step_counts, task_batches
from tests.executor.fakes import FakeReader, executor, model, of_probabilities, rule, wave

EVERY: frozenset[TaskMetric] = frozenset(TASK_METRICS)
SGD = [rule("sgd")]
NO_PULL = [rule("fedprox", mu=0.0), rule("sgd")]  # plain descent through the rules
STRATEGIES = ["dense", "stacked", "loop"]
UNEQUAL = replace(
    wave(counts=[9, 3, 0, 12, 7, 1], steps=[4, 1, 5, 6, 4, 2], batch_size=[4, 4, 4, 4, 3, 3]), measure=EVERY
)


def trained(trainer: LocalExecutor, tasks: TrainTasks) -> ArrayUpdates:
    models = np.stack([trainer.initial(number) for number in range(2)])
    return trainer.train(tasks, models, np.arange(len(tasks)) % 2)


@pytest.mark.parametrize(
    "rules", [SGD, NO_PULL, [rule("fedprox", mu=5.0), rule("sgd")]], ids=["descent", "rules", "pull"]
)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_steps_of_a_model_of_biases_by_hand(strategy: str, rules: list[LocalRule]) -> None:
    """Features are 0 and the received model predicts (1/4, 3/4); half of the samples have each label.

    The gradient of the biases is (1/4 - 1/2, 3/4 - 1/2), and a step of 2 ln 3 moves each by ln(3) / 2, to
    predictions of (1/2, 1/2): the losses are ln 4 or ln 4/3, and then ln 2. The pull of FedProx, which is not
    0 in the second batch, is in none of them.
    """
    reader = FakeReader(rows=8, sample_shape=(1,), num_labels=2)
    reader.x[:], reader.y = 0, np.array([0, 1] * 4)
    trainer = executor(reader, rules=rules, strategy=strategy)
    tasks = wave(counts=[4, 4, 0], steps=[1, 2, 2], learning_rate=2 * np.log(3))
    received = of_probabilities([0.25, 0.75])
    metrics = trainer.train(replace(tasks, measure=EVERY), received, np.zeros(3, dtype=np.int64)).metrics
    rare, often, even = np.log(4), np.log(4 / 3), np.log(2)
    before, nothing = (rare + often) / 2, np.nan
    assert metrics["loss"] == pytest.approx([before, (before + even) / 2, nothing], rel=1e-6, nan_ok=True)
    assert metrics["loss_before"] == pytest.approx([before, before, nothing], rel=1e-6, nan_ok=True)
    assert metrics["loss_squared"] == pytest.approx(
        [(rare**2 + often**2) / 2, even**2, nothing], rel=1e-6, nan_ok=True
    )
    of_batches = np.array([[before, nothing], [before, even], [nothing, nothing]])
    assert metrics["batch_losses"] == pytest.approx(of_batches, rel=1e-6, nan_ok=True)
    # Half of the samples have the label that is less likely; when both are nearly, any may be wrong.
    assert metrics["batch_errors"][:, 0] == pytest.approx([0.5, 0.5, nothing], nan_ok=True)
    assert np.isnan(metrics["batch_errors"][:, 1]).tolist() == [True, False, True]


def by_hand(tasks: TrainTasks, trainer: LocalExecutor, spec: ModelSpec) -> dict[str, Floats]:
    """The metrics of the tasks, one after the other, by an ordinary module and `torch.optim.SGD`."""
    reader = FakeReader(sample_shape=(8, 8))
    module = spec.build(reader.sample_shape, reader.num_labels)
    steps, streams = step_counts(tasks), RandomStreams(3)
    columns = {name: empty_metric(name, len(tasks), int(steps.max())) for name in TASK_METRICS}
    for task in np.flatnonzero(steps).tolist():
        nn.utils.vector_to_parameters(torch.tensor(trainer.initial(task % 2)), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), 0.1)
        of_batches, wrong = [], []
        for rows in task_batches(tasks, np.array([task]), steps[[task]], streams)[:, 0]:
            logits = module(torch.tensor(reader.features(rows)))
            losses = nn.functional.cross_entropy(logits, torch.tensor(reader.labels(rows)), reduction="none")
            optimiser.zero_grad()
            losses.mean().backward()
            optimiser.step()
            of_batches.append(losses.detach().numpy())
            wrong.append((logits.argmax(dim=1).numpy() != reader.labels(rows)).mean())
        columns["loss_before"][task] = of_batches[0].mean()
        columns["loss_squared"][task] = np.square(of_batches[-1]).mean()
        columns["batch_losses"][task, : len(wrong)] = np.mean(of_batches, axis=1)
        columns["batch_errors"][task, : len(wrong)] = wrong
        columns["step_norm"][task] = len(wrong)
    return columns


@pytest.mark.slow
@pytest.mark.parametrize("rules", [SGD, NO_PULL], ids=["descent", "rules"])
@pytest.mark.parametrize(
    ("kind", "strategy"),
    [*(("mlp", strategy) for strategy in STRATEGIES), ("cnn", "loop"), ("cnn", "stacked")],
)
def test_every_strategy_measures_what_an_ordinary_loop_does(
    kind: str, strategy: str, rules: list[LocalRule]
) -> None:
    spec = model(kind, channels=[3, 5]) if kind == "cnn" else model(kind)
    trainer = executor(FakeReader(sample_shape=(8, 8)), spec, rules, strategy=strategy, chunk=3)
    metrics = trained(trainer, UNEQUAL).metrics
    assert list(metrics) == ["loss", *TASK_METRICS]
    for name, expected in by_hand(UNEQUAL, trainer, spec).items():
        assert np.isnan(expected.reshape(6, -1)[:, 0]).tolist() == [False, False, True, False, False, False]
        np.testing.assert_allclose(metrics[name], expected, rtol=2e-5)
    once = metrics["loss"][1], metrics["loss_before"][1]
    assert once[0] == pytest.approx(once[1], rel=1e-6)  # of a single batch


@pytest.mark.parametrize(
    "rules", [SGD, [rule("fedprox", mu=0.3), rule("adam")]], ids=["descent", "prox-adam"]
)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("asked", [(), ("loss_before",), ("batch_losses", "loss_squared")])
def test_what_is_measured_is_what_was_asked_for_and_changes_no_bit(
    strategy: str, rules: list[LocalRule], asked: tuple[TaskMetric, ...]
) -> None:
    trainer = executor(FakeReader(sample_shape=(8, 8)), model("mlp"), rules, strategy=strategy, chunk=3)
    everything = trained(trainer, UNEQUAL)
    some = trained(trainer, replace(UNEQUAL, measure=frozenset(asked)))
    assert list(some.metrics) == ["loss", *asked]
    for name, column in some.metrics.items():
        assert column.tobytes() == everything.metrics[name].tobytes()
    assert some.delta.tobytes() == everything.delta.tobytes()
    assert some.state.keys() == everything.state.keys()
    for name, rows in some.state.items():
        assert rows.tobytes() == everything.state[name].tobytes()


def test_tasks_without_a_request_have_the_loss_alone() -> None:
    tasks = wave(counts=[9, 3], steps=[4, 1])
    assert list(trained(executor(FakeReader()), tasks).metrics) == ["loss"]


@pytest.mark.parametrize("strategy", ["dense", "stacked"])
def test_a_group_that_is_split_in_halves_keeps_its_metrics(strategy: str) -> None:
    settings: dict[str, Any] = {"strategy": strategy, "chunk": 4, "on_out_of_memory": "halve"}
    reader = FakeReader(sample_shape=(8, 8))
    whole = trained(executor(reader, model("mlp"), **settings), UNEQUAL)
    trainer = executor(reader, model("mlp"), **settings)
    train = trainer._strategy.train

    def refuse_pairs(group: Any) -> Any:
        if len(group) > 1:
            raise MemoryError("no room for two")
        return train(group)

    trainer._strategy.train = refuse_pairs  # type: ignore[method-assign]
    halved = trained(trainer, UNEQUAL)
    assert trainer.halved_groups > 0
    for name in TASK_METRICS:
        np.testing.assert_allclose(halved.metrics[name], whole.metrics[name], rtol=1e-5)
