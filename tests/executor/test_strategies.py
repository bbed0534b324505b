"""The stacked cohort against the reference loop, and the reference loop against torch.optim."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from emulator.arrays import Floats
from emulator.messages import TrainTasks
from emulator.seeding import RandomStreams
from executor.batches import step_counts, task_batches
from executor.cohort import Strategy, cohorts
from executor.flat import FlatModel
from executor.models.base import ModelSpec
from executor.reference import ReferenceLoop
from executor.rules.base import LocalRule, build_chain
from executor.stacked import StackedCohort
from tests.executor.fakes import FakeReader, model, rule, wave

STREAMS = RandomStreams(9)
MODELS = [model("linear"), model("mlp"), model("mlp", hidden=[5, 7]), model("cnn", channels=[3, 5])]
CHAINS = [
    [rule("sgd")],
    [rule("sgd", momentum=0.9, weight_decay=0.01)],
    [rule("fedprox", mu=0.3), rule("sgd")],
    [rule("fedprox", mu=0.3), rule("sgd", momentum=0.9)],
]
UNEQUAL = wave(counts=[9, 3, 0, 12, 7, 1], steps=[4, 1, 5, 6, 4, 0])


def train(
    kind: type[ReferenceLoop] | type[StackedCohort],
    tasks: TrainTasks,
    spec: ModelSpec,
    rules: Sequence[LocalRule],
    chunk: int,
    dtype: torch.dtype = torch.float64,
) -> tuple[Floats, Floats]:
    """Updates (n, P) and losses (n,), in `dtype`, of tasks that start from different initialisations."""
    reader = FakeReader(sample_shape=(8, 8))
    flat_model = FlatModel(spec, reader.sample_shape, reader.num_labels)
    strategy: Strategy = kind(flat_model, build_chain(rules))
    starts = np.stack([flat_model.initial(STREAMS, number) for number in range(len(tasks))])
    delta, loss = np.zeros(starts.shape), np.zeros(len(tasks))
    for cohort in cohorts(tasks, starts, reader, STREAMS, chunk, dtype):
        trained = strategy.train(cohort)
        delta[cohort.tasks] = (trained.parameters - cohort.start).numpy()
        loss[cohort.tasks] = trained.loss
    return delta, loss


def assert_same(ours: tuple[Floats, Floats], theirs: tuple[Floats, Floats], rel: float) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        largest = np.nanmax(np.abs(other), initial=0.0) if np.isfinite(other).any() else 0.0
        np.testing.assert_allclose(mine, other, rtol=0, atol=rel * largest)


@pytest.mark.parametrize("rules", CHAINS, ids=lambda rules: "-".join(type(r).__name__ for r in rules))
@pytest.mark.parametrize("spec", MODELS, ids=lambda spec: type(spec).__name__)
def test_stacked_equals_the_reference_loop(spec: ModelSpec, rules: list[LocalRule]) -> None:
    exact = train(ReferenceLoop, UNEQUAL, spec, rules, chunk=1)
    assert_same(train(StackedCohort, UNEQUAL, spec, rules, chunk=4), exact, rel=1e-12)
    single = train(ReferenceLoop, UNEQUAL, spec, rules, 1, torch.float32)
    assert_same(train(StackedCohort, UNEQUAL, spec, rules, 4, torch.float32), single, rel=2e-5)
    assert_same(single, exact, rel=2e-5)


@given(
    cohort=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 4), st.sampled_from([1, 3, 8])), min_size=1, max_size=6
    ),
    chunk=st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_stacked_equals_the_loop_for_any_cohort(cohort: list[tuple[int, int, int]], chunk: int) -> None:
    counts, steps, batch_sizes = (list(column) for column in zip(*cohort, strict=True))
    tasks, rules = wave(counts, steps, batch_sizes), CHAINS[3]
    ours = train(StackedCohort, tasks, MODELS[0], rules, chunk)
    assert_same(ours, train(ReferenceLoop, tasks, MODELS[0], rules, chunk=1), rel=1e-12)
    idle = step_counts(tasks) == 0
    assert not ours[0][idle].any()
    assert np.array_equal(np.isnan(ours[1]), idle)


def test_the_loop_trains_a_cohort_of_many_as_cohorts_of_one() -> None:
    together, apart = (train(ReferenceLoop, UNEQUAL, MODELS[1], CHAINS[3], chunk) for chunk in (6, 1))
    assert_same(together, apart, rel=0)


def test_the_chunk_changes_rounding_only() -> None:
    whole = train(StackedCohort, UNEQUAL, MODELS[1], CHAINS[1], chunk=6)
    for chunk in (1, 2, 5, 50):
        assert_same(train(StackedCohort, UNEQUAL, MODELS[1], CHAINS[1], chunk), whole, rel=1e-12)


@pytest.mark.parametrize(("momentum", "weight_decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.1), (0.9, 0.01)])
def test_the_reference_loop_equals_torch_optim(momentum: float, weight_decay: float) -> None:
    rules = [rule("sgd", momentum=momentum, weight_decay=weight_decay)]
    delta, loss = train(ReferenceLoop, UNEQUAL, MODELS[1], rules, chunk=1)
    reader = FakeReader(sample_shape=(8, 8))
    flat_model = FlatModel(MODELS[1], reader.sample_shape, reader.num_labels)
    for task, steps in enumerate(step_counts(UNEQUAL)):
        module = MODELS[1].build(reader.sample_shape, reader.num_labels).double()
        start = torch.tensor(flat_model.initial(STREAMS, task)).double()
        nn.utils.vector_to_parameters(start.clone(), module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), 0.1, momentum, weight_decay=weight_decay)
        losses = []
        for rows in task_batches(UNEQUAL, task, int(steps), STREAMS):
            optimiser.zero_grad()
            x, y = torch.tensor(reader.features(rows)).double(), torch.tensor(reader.labels(rows))
            value = nn.functional.cross_entropy(module(x), y)
            value.backward()
            optimiser.step()
            losses.append(value.item())
        theirs = (nn.utils.parameters_to_vector(module.parameters()) - start).detach().numpy()
        np.testing.assert_allclose(delta[task], theirs, rtol=1e-12, atol=1e-15)
        assert loss[task] == pytest.approx(np.mean(losses) if losses else np.nan, rel=1e-12, nan_ok=True)


def test_cohorts_are_sorted_by_steps_and_hold_one_batch_size() -> None:
    tasks = wave(counts=[5] * 5, steps=[1, 3, 2, 3, 2], batch_size=[4, 4, 2, 4, 4])
    reader = FakeReader()
    starts = np.zeros((5, 28), dtype=np.float32)
    formed = list(cohorts(tasks, starts, reader, STREAMS, chunk=3))
    assert [cohort.tasks.tolist() for cohort in formed] == [[2], [1, 3, 4], [0]]
    assert [cohort.active.tolist() for cohort in formed] == [[1, 1], [3, 3, 2], [1]]
    third = list(formed[1].batches())[2]
    assert third[0].shape == (2, 4, 6)
    rows = [task_batches(tasks, task, 3, STREAMS)[2] for task in (1, 3)]
    assert np.array_equal(third[0].numpy(), reader.x[np.stack(rows)])
    assert np.array_equal(third[1].numpy(), reader.y[np.stack(rows)])
