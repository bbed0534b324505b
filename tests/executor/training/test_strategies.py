"""The batched strategies against the reference loop, and the reference loop against torch.optim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from emulator.arrays import Floats, Floats32
from emulator.counts import LastBatch
from emulator.messages import StateSpec, TrainTasks
from emulator.plugins import NoSettings
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.inference.prediction import Predictor
from executor.models import MODELS as REGISTERED
from executor.models.base import ModelSpec
from executor.rules import RULES
from executor.rules.adam import Adam
from executor.rules.base import LocalRule, LocalRun, build_chain
from executor.rules.sgd import Sgd
from executor.settings import Batches
from executor.training import dense
from executor.training.batches import step_counts, task_batches
from executor.training.dense import DenseStrategy
from executor.training.epochs import Epochs
from executor.training.groups import Strategy, Wave
from executor.training.held_out import HeldOut, HeldOutLosses
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from tests.executor.fakes import FakeReader, Ready, model, rule, wave
from tests.executor.models.thin import THIN

STREAMS = RandomStreams(9)
READER = FakeReader(sample_shape=(8, 8))
DENSE = [
    model("linear"),
    model("mlp"),
    model("mlp", hidden=[5, 7]),
    model("masked", inner={"kind": "mlp", "hidden": [5]}),
]
MODELS = [
    *DENSE,
    model("cnn", channels=[3, 5]),
    model("resnet", depth=1, channels=2, groups=1),
    model("context"),
    model("mixture", size=4, experts=2),
    model("random_features", features=6),
]
AMSGRAD = rule("adam", amsgrad=True, weight_decay=0.01)
STOPPING = [rule("early_stopping", gamma=0.01), rule("sgd")]
CHAINS = [
    [rule("sgd")],
    [rule("sgd", momentum=0.9, weight_decay=0.01)],
    [rule("fedprox", mu=0.3), rule("sgd")],
    [rule("fedprox", mu=0.3), rule("sgd", momentum=0.9)],
    [rule("adam")],
    [rule("adam", keep="task", beta1=0.5)],
    [rule("fedprox", mu=0.3), AMSGRAD],
    [rule("scaffold"), rule("sgd", weight_decay=0.01)],
    [rule("feddyn", alpha=0.5), rule("sgd")],
    [rule("feddc", clip=0.5), rule("sgd")],
    [rule("feddyn", weights="samples", clip=0.5), rule("clip", norm=0.3), rule("adam")],
    [rule("fedprox", mu=0.3), rule("aso_memory", beta=0.2), rule("sgd")],
    [rule("ditto", pull=0.3), rule("sgd")],
    [rule("apfl", alpha=0.3, adaptive=True), rule("sgd", momentum=0.9)],
    [rule("apfl", alpha=0.3, adaptive=True, mix="outputs"), rule("sgd", momentum=0.9)],
    [rule("fedprox", mu=0.3), rule("early_stopping", gamma=0.01), rule("sgd", momentum=0.9)],
    STOPPING,
    [rule("personal_layers", keep="body", alternate=True, head_steps=0.3), rule("sgd", weight_decay=0.01)],
]
OF_LAYERS = CHAINS[-1]  # not of a model that trains a single layer
COMBINATIONS = [
    (spec, rules)
    for spec in MODELS
    for rules in CHAINS
    if rules is not OF_LAYERS or spec not in (DENSE[0], MODELS[-1])
]
NO_PULL = [rule("fedprox", mu=0.0), rule("sgd")]  # plain descent through the rules
UNEQUAL = wave(counts=[9, 3, 0, 12, 7, 1], steps=[4, 1, 5, 6, 4, 0], batch_size=[4, 4, 4, 4, 3, 3])
Kind = type[ReferenceLoop] | type[StackedStrategy] | type[DenseStrategy]


@cache
def flat(spec: ModelSpec) -> tuple[FlatModel, Floats32]:
    """The model, and as many initialisations of it as a wave has tasks at most."""
    flat_model = FlatModel(spec, READER.sample_shape, READER.num_labels)
    return flat_model, np.stack([flat_model.initial(STREAMS, number) for number in range(6)])


def train(
    kind: Kind,
    tasks: TrainTasks,
    spec: ModelSpec,
    rules: Sequence[LocalRule],
    chunk: int,
    dtype: torch.dtype = torch.float64,
    batches: Batches = "reshuffled",
    last: LastBatch = "filled",
) -> list[Floats]:
    """Updates (n, P), losses (n,) and the state of the solver, in `dtype`.

    The tasks start from different initialisations; a mask, the first 64 parameters, hides a third of the
    features.
    """
    flat_model, initial = flat(spec)
    chain = build_chain(rules, flat_model.layout)
    strategy: Strategy = kind(flat_model, chain)
    starts = initial[: len(tasks)].copy()
    if "mask" in flat_model.layout:
        starts[:, 0:64:3] = 0
    delta, loss = np.zeros(starts.shape), np.zeros(len(tasks))
    state: dict[str, Floats] = {}
    along = dict.fromkeys(chain.facts.receives, 0.1 * starts[::-1])
    tasks, everyone = replace(tasks, broadcast=along), np.arange(len(starts))
    how = dtype, batches, chain, last
    held_out = None
    if chain.stopping is not None:
        held_out = HeldOut(chain.stopping.held_out, READER, STREAMS)
        epochs = {"local_epochs": tasks.settings["local_steps"]}
        tasks = replace(tasks, settings={**tasks.settings, **epochs})
    whole = Wave(tasks, starts, everyone, READER, STREAMS, *how, held_out)
    losses = HeldOutLosses(Predictor(READER, flat_model, kind is DenseStrategy))
    for members in whole.cut(chunk):
        if held_out is None:
            group = whole.group(members)
            trained, received = strategy.train(group), group.start
        else:
            of_epochs = Epochs(chain, strategy, losses).train(whole, members)
            trained, received = of_epochs.trained, of_epochs.start
        delta[members] = (trained.parameters - received).numpy()
        loss[members] = trained.loss
        for name, rows in trained.state.items():
            column = state.setdefault(name, np.zeros((len(tasks), rows.shape[1])))
            column[members] = rows.numpy()
    return [delta, loss, *state.values()]


@cache
def by_loop(
    spec: ModelSpec, rules: tuple[LocalRule, ...], dtype: torch.dtype = torch.float64
) -> list[Floats]:
    """What the reference loop trains of the unequal tasks, one by one."""
    return train(ReferenceLoop, UNEQUAL, spec, rules, 1, dtype)


def assert_same(ours: list[Floats], theirs: list[Floats], rel: float) -> None:
    for column, expected in zip(ours, theirs, strict=True):
        largest = np.nanmax(np.abs(expected), initial=0.0) if np.isfinite(expected).any() else 0.0
        np.testing.assert_allclose(column, expected, rtol=0, atol=rel * largest)


def named(value: object) -> str:
    """The id of a strategy, a model or a chain of rules."""
    if isinstance(value, list):
        return "-".join(type(link).__name__ for link in value)
    return value.__name__ if isinstance(value, type) else type(value).__name__


@pytest.mark.parametrize(
    ("kind", "spec", "rules"),
    [
        (kind, spec, rules)
        for kind in (StackedStrategy, DenseStrategy)
        for spec, rules in COMBINATIONS
        if spec in DENSE or kind is StackedStrategy
    ],
    ids=named,
)
def test_a_batched_strategy_equals_the_reference_loop(
    kind: Kind, spec: ModelSpec, rules: list[LocalRule]
) -> None:
    exact = by_loop(spec, tuple(rules))
    assert_same(train(kind, UNEQUAL, spec, rules, chunk=4), exact, rel=1e-11)
    single = by_loop(spec, tuple(rules), torch.float32)
    # Where a gradient is nearly 0, Adam divides one rounding error by another.
    loose = 1e-2 if rules[-1].state else 2e-5
    assert_same(train(kind, UNEQUAL, spec, rules, 4, torch.float32), single, rel=loose)
    assert_same(single, exact, rel=loose)


@pytest.mark.parametrize("kind", [StackedStrategy, DenseStrategy])
def test_a_batched_strategy_equals_the_reference_loop_on_fixed_batches(kind: Kind) -> None:
    fixed = partial(train, tasks=UNEQUAL, spec=model("mlp"), rules=[rule("sgd")], batches="fixed")
    exact = fixed(ReferenceLoop, chunk=1)
    assert_same(fixed(kind, chunk=4), exact, rel=1e-11)
    reshuffled = train(ReferenceLoop, UNEQUAL, model("mlp"), [rule("sgd")], chunk=1)
    assert np.abs(reshuffled[0] - exact[0]).max() > 1e-3


@pytest.mark.parametrize("rules", [CHAINS[0], CHAINS[1], CHAINS[8], STOPPING], ids=named)
@pytest.mark.parametrize("kind", [StackedStrategy, DenseStrategy])
def test_a_batched_strategy_equals_the_reference_loop_on_short_batches(
    kind: Kind, rules: list[LocalRule]
) -> None:
    short = partial(train, tasks=UNEQUAL, spec=model("mlp"), rules=rules, last="short")
    exact = short(ReferenceLoop, chunk=1)
    assert_same(short(kind, chunk=4), exact, rel=1e-11)
    filled = train(ReferenceLoop, UNEQUAL, model("mlp"), rules, chunk=1)
    assert np.abs(filled[0] - exact[0]).max() > 1e-3


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy, DenseStrategy])
@pytest.mark.parametrize("rules", CHAINS, ids=lambda rules: "-".join(type(r).__name__ for r in rules))
def test_no_training_moves_a_mask(kind: Kind, rules: list[LocalRule]) -> None:
    delta = train(kind, UNEQUAL, DENSE[3], rules, chunk=3)[0]
    assert not delta[:, :64].any()
    assert delta[0, 64:].any()


def test_a_large_layer_whose_gradient_is_not_copied_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = train(DenseStrategy, UNEQUAL, DENSE[2], CHAINS[1], chunk=4)
    monkeypatch.setattr(dense, "COPIED_BELOW", 0)
    assert_same(train(DenseStrategy, UNEQUAL, DENSE[2], CHAINS[1], chunk=4), copied, rel=1e-12)


GROUPS = st.lists(
    st.tuples(
        st.integers(0, 9),  # samples
        st.integers(0, 4),  # steps
        st.sampled_from([1, 3, 8]),  # batch size
        st.sampled_from([0.01, 0.1, 0.3]),  # learning rate
    ),
    min_size=1,
    max_size=6,
)


def test_every_registered_model_and_rule_is_compared() -> None:
    # The published networks are compared as thin ones of them, and models of texts, by their own tests; and
    # by their contract what takes vectors.
    compared = {type(spec) for spec in MODELS} | {kind.__mro__[1] for kind in THIN.values()}
    compared |= {REGISTERED.find(name) for name in ("char_lstm", "context", "mixture", "word_transformer")}
    assert compared == {REGISTERED.find(name) for name in REGISTERED.names()}
    assert {type(link) for chain in CHAINS for link in chain} == {RULES.find(name) for name in RULES.names()}


@pytest.mark.parametrize(("spec", "rules"), COMBINATIONS, ids=named)
@given(group=GROUPS, chunk=st.integers(1, 4))
@settings(max_examples=5)
def test_batched_strategies_equal_the_loop_for_any_group(
    spec: ModelSpec, rules: list[LocalRule], group: list[tuple[int, int, int, float]], chunk: int
) -> None:
    counts, steps, batch_sizes, rates = (list(column) for column in zip(*group, strict=True))
    tasks = wave(counts, steps, batch_sizes, rates)
    theirs = train(ReferenceLoop, tasks, spec, rules, chunk=1)
    idle = step_counts(tasks) == 0
    kinds: list[Kind] = [StackedStrategy, *([DenseStrategy] if spec.dense else [])]
    for kind in kinds:
        ours = train(kind, tasks, spec, rules, chunk)
        # Where a gradient is nearly 0, Adam divides one rounding error by another.
        assert_same(ours, theirs, rel=1e-9 if isinstance(rules[-1], Adam) else 1e-12)
        assert not ours[0][idle].any()
        assert np.array_equal(np.isnan(ours[1]), idle)


def test_in_single_precision_updates_of_a_tenth_differ_by_a_ten_millionth() -> None:
    """A hundred samples per client and twenty steps, as in the bench, but with fewer clients."""
    tasks = wave([100] * 4, [20] * 4, 20)
    apart = train(ReferenceLoop, tasks, MODELS[1], CHAINS[0], 1, torch.float32)
    assert 0.05 < np.abs(apart[0]).max() < 1
    for kind, rules in ((StackedStrategy, CHAINS[0]), (DenseStrategy, CHAINS[0]), (DenseStrategy, NO_PULL)):
        ours = train(kind, tasks, MODELS[1], rules, 4, torch.float32)
        np.testing.assert_allclose(ours[0], apart[0], rtol=0, atol=1.5e-7)


def test_batchnorm_without_running_statistics_trains_as_in_the_loop() -> None:
    norm = partial(nn.BatchNorm1d, 5, track_running_stats=False)
    spec = Ready(nn.Flatten, partial(nn.Linear, 64, 5), norm, nn.ReLU, partial(nn.Linear, 5, 4))
    apart = train(ReferenceLoop, UNEQUAL, spec, CHAINS[1], chunk=1)
    assert_same(train(StackedStrategy, UNEQUAL, spec, CHAINS[1], chunk=3), apart, rel=1e-12)


class HalfFrozen(ModelSpec):
    """A dense network whose first layer is not trainable."""

    stacks = dense = True

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        first = nn.Linear(64, 5).requires_grad_(False)
        return nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Linear(5, num_labels))


def test_a_layer_that_is_frozen_is_in_no_update() -> None:
    spec = HalfFrozen(NoSettings())
    apart = train(ReferenceLoop, UNEQUAL, spec, CHAINS[0], chunk=1)
    ours = train(StackedStrategy, UNEQUAL, spec, CHAINS[0], chunk=3)
    assert ours[0].shape == (len(UNEQUAL), 5 * 4 + 4)
    assert ours[0].any()
    assert_same(ours, apart, rel=1e-12)


class Clipped(Sgd):
    """Plain descent along clipped gradients."""

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return super().correct(run, gradient.clamp_(-1e-3, 1e-3))


def test_a_subclass_of_sgd_is_not_taken_for_plain_descent() -> None:
    rules: list[LocalRule] = [Clipped(Sgd.Settings())]
    by_loop = train(ReferenceLoop, UNEQUAL, MODELS[1], rules, chunk=1)
    assert_same(train(DenseStrategy, UNEQUAL, MODELS[1], rules, chunk=3), by_loop, rel=1e-12)
    assert np.abs(by_loop[0]).max() < np.abs(train(ReferenceLoop, UNEQUAL, MODELS[1], CHAINS[0], 1)[0]).max()


@pytest.mark.parametrize("kind", [ReferenceLoop, DenseStrategy])
@pytest.mark.parametrize("spec", DENSE, ids=lambda spec: type(spec).__name__)
def test_plain_descent_equals_the_way_through_the_rules(kind: Kind, spec: ModelSpec) -> None:
    assert build_chain(CHAINS[0]).is_plain_descent
    layout = flat(MODELS[1])[0].layout
    assert not any(
        build_chain(rules, layout).is_plain_descent for rules in (*CHAINS[1:], NO_PULL) if rules != STOPPING
    )
    assert build_chain(STOPPING, layout).is_plain_descent  # early stopping leaves the steps as they are
    by_rules = train(kind, UNEQUAL, spec, NO_PULL, chunk=3)
    assert_same(train(kind, UNEQUAL, spec, CHAINS[0], chunk=3), by_rules, rel=1e-12)


class Counting(LocalRule):
    """Leaves the steps as they are, and remembers how many there have been."""

    Settings = NoSettings
    changes_steps = False

    @property
    def state(self) -> Mapping[str, StateSpec]:
        return {"counting.steps": StateSpec("scalar", until="run")}

    def correct(self, run: LocalRun, gradient: Tensor) -> Tensor:
        return gradient

    def finish(self, run: LocalRun) -> None:
        run.state["counting.steps"].add_(run.steps)


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy, DenseStrategy])
def test_a_rule_that_only_remembers_does_so_in_every_strategy(kind: Kind) -> None:
    counted = train(kind, UNEQUAL, MODELS[1], [Counting(NoSettings()), *CHAINS[0]], chunk=3)[-1]
    assert counted[:, 0].tolist() == [4, 1, 0, 6, 4, 0]


def test_the_loop_trains_a_group_of_many_as_groups_of_one() -> None:
    together, apart = (train(ReferenceLoop, UNEQUAL, MODELS[1], CHAINS[3], chunk) for chunk in (6, 1))
    assert_same(together, apart, rel=0)


@pytest.mark.parametrize("kind", [StackedStrategy, DenseStrategy])
def test_the_chunk_changes_rounding_only(kind: Kind) -> None:
    whole = train(kind, UNEQUAL, MODELS[1], CHAINS[1], chunk=6)
    for chunk in (1, 2, 5, 50):
        assert_same(train(kind, UNEQUAL, MODELS[1], CHAINS[1], chunk), whole, rel=1e-12)


def by_torch(
    start: torch.Tensor,
    make: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
    tasks: list[TrainTasks],
) -> tuple[list[Floats], list[float]]:
    """Updates and losses of the first task of each wave, one after the other, by an optimiser of torch.

    The parameters are reset to `start` before each task; the optimiser keeps its state.
    """
    module = MODELS[1].build(READER.sample_shape, READER.num_labels).double()
    optimiser = make(module.parameters())
    updates, means = [], []
    for wave_ in tasks:
        with torch.no_grad():
            nn.utils.vector_to_parameters(start.clone(), module.parameters())
        losses = []
        for rows in task_batches(wave_, np.array([0]), step_counts(wave_), STREAMS)[:, 0]:
            optimiser.zero_grad()
            x, y = torch.tensor(READER.features(rows)).double(), torch.tensor(READER.labels(rows))
            value = nn.functional.cross_entropy(module(x), y)
            value.backward()
            optimiser.step()
            losses.append(value.item())
        updates.append((nn.utils.parameters_to_vector(module.parameters()) - start).detach().numpy())
        means.append(float(np.mean(losses)) if losses else float("nan"))
    return updates, means


def start_of(task: int) -> torch.Tensor:
    return torch.tensor(flat(MODELS[1])[1][task]).double()


@pytest.mark.parametrize(("momentum", "weight_decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.1), (0.9, 0.01)])
def test_the_reference_loop_equals_torch_optim(momentum: float, weight_decay: float) -> None:
    rules = [rule("sgd", momentum=momentum, weight_decay=weight_decay)]
    delta, loss = train(ReferenceLoop, UNEQUAL, MODELS[1], rules, chunk=1)
    for task in range(len(UNEQUAL)):
        theirs, means = by_torch(
            start_of(task),
            lambda parameters: torch.optim.SGD(parameters, 0.1, momentum, weight_decay=weight_decay),
            [UNEQUAL.take(np.array([task]))],
        )
        np.testing.assert_allclose(delta[task], theirs[0], rtol=1e-12, atol=1e-15)
        assert loss[task] == pytest.approx(means[0], rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("kind", [ReferenceLoop, StackedStrategy, DenseStrategy])
@pytest.mark.parametrize("keep", ["step", "task"])
@pytest.mark.parametrize(("amsgrad", "weight_decay"), [(False, 0.0), (True, 1e-3)])
def test_adam_equals_torch_optim_over_two_tasks_of_a_pair(
    kind: Kind, keep: str, amsgrad: bool, weight_decay: float
) -> None:
    """Its moments last from task to task, or start at zero; the parameters are reset in any case."""
    rules = [rule("adam", amsgrad=amsgrad, weight_decay=weight_decay, keep=keep)]
    slots = list(rules[0].state)
    second = replace(UNEQUAL, dispatch=UNEQUAL.dispatch + 1)
    earlier = train(kind, UNEQUAL, MODELS[1], rules, chunk=4)
    state = dict(zip(slots, earlier[2:], strict=True))  # in float64: exact
    later = train(kind, replace(second, state=state), MODELS[1], rules, chunk=4)

    def adam(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, 0.1, amsgrad=amsgrad, weight_decay=weight_decay)

    for task in range(len(UNEQUAL)):
        of_task = [tasks.take(np.array([task])) for tasks in (UNEQUAL, second)]
        for waves in [of_task] if keep == "step" else [of_task[:1], of_task[1:]]:
            theirs, _ = by_torch(start_of(task), adam, waves)
            ours = [earlier, later] if keep == "step" else [earlier] if waves[0] is of_task[0] else [later]
            for trained, update in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(trained[0][task], update, rtol=1e-7, atol=1e-10)


def test_groups_are_sorted_by_steps_and_hold_one_batch_size() -> None:
    tasks = wave(counts=[5] * 5, steps=[1, 3, 2, 3, 2], batch_size=[4, 4, 2, 4, 4])
    reader = FakeReader()
    starts = np.zeros((5, 28), dtype=np.float32)
    whole = Wave(tasks, starts, np.arange(len(starts)), reader, STREAMS)
    assert [members.tolist() for members in whole.cut(3)] == [[2], [1, 3], [4, 0]]
    formed = [whole.group(members) for members in whole.cut(3)]
    assert [group.active.tolist() for group in formed] == [[1, 1], [2, 2, 2], [2, 1]]
    second = list(formed[2].batches())[1]
    assert second[0].shape == (1, 4, 6)
    rows = task_batches(tasks, np.array([4]), np.array([2]), STREAMS)[1]
    assert np.array_equal(second[0].numpy(), reader.x[rows])
    assert np.array_equal(second[1].numpy(), reader.y[rows])


@given(st.integers(0, 40), st.integers(1, 12))
def test_a_wave_is_cut_into_as_few_and_as_even_groups_as_the_chunk_allows(n: int, chunk: int) -> None:
    starts = np.zeros((n, 28), dtype=np.float32)
    whole = Wave(wave([3] * n, [1] * n), starts, np.arange(len(starts)), FakeReader(), STREAMS)
    sizes = [len(members) for members in whole.cut(chunk)]
    assert sum(sizes) == n
    assert len(sizes) == -(-n // chunk)
    assert max(sizes, default=0) <= chunk
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
