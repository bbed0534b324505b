"""Settings that name what published code does, beside plain loops of its formulas, over 30 steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor
from torch.nn import functional

from coordinator.aggregators.feddyn import FedDyn, FedDynSettings
from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates, InferencePlan
from emulator.ports import Segment
from executor.rules.base import LocalRun, build_chain
from tests.executor.fakes import FakeReader, executor, model, rule, wave
from tests.fakes import a_view

RATE = 0.05


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


# -- clipping ----------------------------------------------------------------------------------------------

CURVATURE, MINIMUM = np.array([[1.0, 4.0, 0.5], [3.0, 2.0, 6.0]]), np.array([[5.0, -9.0, 2.0], [40.0, 0, 8]])


def clipped(gradient: Floats, most: float) -> Floats:
    """As `torch.nn.utils.clip_grad_norm_`."""
    return gradient * min(1.0, most / (float(np.sqrt((gradient**2).sum())) + 1e-6))


@pytest.mark.parametrize("before", [True, False], ids=["the pull is clipped", "the pull is not"])
def test_a_clip_acts_on_what_the_rules_before_it_have_made_of_a_gradient(before: bool) -> None:
    pull, clip = rule("fedprox", mu=0.5), rule("clip", norm=7)
    momentum, decay, mu = 0.9, 0.1, 0.5
    chain = build_chain(
        [*([pull, clip] if before else [clip, pull]), rule("sgd", momentum=momentum, weight_decay=decay)]
    )
    start = np.ones((2, 3))
    received = torch.from_numpy(start)
    run = LocalRun(received, received.clone(), {"learning_rate": column(RATE, RATE)})
    chain.begin(run)
    expected, velocity, bites = start.copy(), 0 * start, set[bool]()
    for _ in range(30):
        chain.step(run, torch.from_numpy(CURVATURE) * (run.present - torch.from_numpy(MINIMUM)))
        for task in range(2):
            model = expected[task]
            gradient = CURVATURE[task] * (model - MINIMUM[task])
            towards = mu * (model - start[task])
            whole = gradient + towards if before else gradient
            bites.add(bool(np.linalg.norm(whole) > 7))
            step = clipped(whole, 7) + (0 if before else towards)
            velocity[task] = momentum * velocity[task] + step + decay * model
            expected[task] = model - RATE * velocity[task]
    assert bites == {True, False}
    assert run.present.numpy() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("clip_first", [True, False])
def test_a_norm_is_over_what_the_step_moves_whatever_the_one_before_it_moved(clip_first: bool) -> None:
    """The head takes the first of two steps, the body the second; behind the clip its norm is of both."""
    clip, layers = rule("clip", norm=5), rule("personal_layers", alternate=True)
    layout = {"0.weight": Segment(0, 2, (2,)), "1.weight": Segment(2, 3, (1,))}
    chain = build_chain([*([clip, layers] if clip_first else [layers, clip]), rule("sgd")], layout)
    received = torch.zeros(1, 3, dtype=torch.float64)
    state = chain.remembered(received, {})
    run = LocalRun(received, received.clone(), {"learning_rate": column(1)}, state, steps=column(2))
    chain.begin(run)
    for _ in range(2):
        chain.step(run, torch.tensor([[6.0, 8.0, 24.0]]).double())
    shares = (5 / 26, 5 / 26) if clip_first else (5 / 10, 5 / 24)
    assert run.present.numpy()[0] == pytest.approx([-6 * shares[0], -8 * shares[0], -24 * shares[1]])


@pytest.mark.parametrize("kind", ["clip", "feddyn"])
def test_parameters_that_no_step_moves_have_no_part_in_a_norm(kind: str) -> None:
    """A frozen weight is 100; the gradient (3, 4) of the others has the norm 5, and is not clipped."""
    clipping = rule("clip", norm=5) if kind == "clip" else rule("feddyn", alpha=1.0, clip=5)
    layout = {"frozen": Segment(0, 1, (1,), trainable=False), "weight": Segment(1, 3, (2,))}
    chain = build_chain([clipping, rule("sgd")], layout)
    received = torch.tensor([[100.0, 0.0, 0.0]]).double()
    state = chain.remembered(received, {})
    settings = {"learning_rate": column(1)}
    run = LocalRun(received, received.clone(), settings, state, frozen=chain.frozen, steps=column(1))
    chain.begin(run)
    chain.step(run, torch.tensor([[50.0 if kind == "clip" else 0.0, 3.0, 4.0]]).double())
    assert run.present.numpy()[0, 1:] == pytest.approx([-3.0, -4.0])


def test_steps_that_are_clipped_have_no_norm_of_a_constant_gradient_and_are_no_plain_descent() -> None:
    chain = build_chain([rule("clip"), rule("sgd")])
    assert chain.facts.form is None
    assert not chain.is_plain_descent


def test_a_clip_behind_the_optimiser_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"^solver \[Sgd, Clip\]: the last rule, .* an optimiser"):
        build_chain([rule("sgd"), rule("clip")])


# -- FedDyn ------------------------------------------------------------------------------------------------

SAMPLES = np.array([2, 3, 5, 30])
A = np.array([[1.0, 2.0], [4.0, 1.0], [0.5, 3.0], [2.0, 2.0]])
M = np.array([[1.0, -20.0], [4.0, 0.0], [-30.0, 2.0], [10.0, 3.0]])
STEPS = 5


def authors_rounds(
    selected: Sequence[Ints], alpha: float, weight_decay: float, most: float, steps: int
) -> Floats:
    """The cloud's model of the authors' code after rounds of these clients: `train_FedDyn`, quadratic losses.

    SGD decays weights by alpha, too, behind the clipping; `weight` is a client's samples over their mean.
    """
    weight = SAMPLES / SAMPLES.sum() * len(SAMPLES)
    cloud, local, trained = np.ones(2), np.zeros((4, 2)), np.ones((4, 2))
    for clients in selected:
        for client in clients.tolist():
            adapted = alpha / weight[client]
            model = cloud.copy()
            for _ in range(steps):
                gradient = A[client] * (model - M[client]) + adapted * (local[client] - cloud)
                model = model - RATE * (clipped(gradient, most) + (adapted + weight_decay) * model)
            local[client] += model - cloud
            trained[client] = model
        cloud = trained[clients].mean(axis=0) + local.mean(axis=0)
    return cloud


def our_rounds(
    selected: Sequence[Ints], alpha: float, weight_decay: float, clip: float | None, steps: int, weights: str
) -> Floats:
    """The same by the rule and the aggregator."""
    dyn = rule("feddyn", alpha=alpha, weights=weights, clip=clip)
    chain, aggregator = (
        build_chain([dyn, rule("sgd", weight_decay=weight_decay)]),
        FedDyn(FedDynSettings(alpha=alpha)),
    )
    relative = column(*(SAMPLES / SAMPLES.mean()))
    models, own = np.ones((1, 2), dtype=np.float32), torch.zeros(4, 2, dtype=torch.float64)
    for clients in selected:
        rows = torch.from_numpy(clients)
        received = torch.from_numpy(models).double().expand(len(clients), 2)
        settings = {
            "learning_rate": torch.full_like(received[:, :1], RATE),
            "relative_samples": relative[rows],
        }
        run = LocalRun(received, received.clone(), settings, {"feddyn.own": own[rows]})
        chain.begin(run)
        for _ in range(steps):
            chain.step(run, torch.from_numpy(A)[rows] * (run.present - torch.from_numpy(M)[rows]))
        chain.finish(run)
        own[rows] = run.state["feddyn.own"]
        ones = np.ones(len(clients), dtype=np.int64)
        delta = (run.present - received).numpy().astype(np.float32)
        updates = ArrayUpdates(clients, 0 * ones, ones, ones, delta)
        remembered = {"feddyn.own": own.numpy().mean(axis=0)[None]}
        view = a_view(models=models, model_ids=[0], num_clients=4, remembered=remembered)
        models = aggregator.aggregate(updates, view)
    return models[0].astype(np.float64)


@pytest.mark.parametrize(("most", "weight_decay"), [(10.0, 0.01), (1e6, 0.0)])
def test_feddyn_by_samples_and_clipped_makes_the_rounds_of_the_authors_code(
    most: float, weight_decay: float
) -> None:
    draw = np.random.default_rng(0)
    selected = [np.sort(draw.choice(4, size=draw.integers(1, 5), replace=False)) for _ in range(30)]
    theirs = authors_rounds(selected, 0.3, weight_decay, most, STEPS)
    ours = our_rounds(selected, 0.3, weight_decay, most, STEPS, "samples")
    assert ours == pytest.approx(theirs, abs=1e-5 * np.abs(M).max())
    alike = our_rounds(selected, 0.3, weight_decay, most, STEPS, "alike")
    assert np.abs(alike - theirs).max() > 0.1
    bites = np.abs(authors_rounds(selected, 0.3, weight_decay, 1e9, STEPS) - theirs).max() > 0.1
    assert bites == (most == 10)


def test_without_weights_its_own_clip_or_none_at_all_is_the_same_where_nothing_is_clipped() -> None:
    everybody = [np.arange(4)] * 10
    clips = [our_rounds(everybody, 0.3, 0.0, clip, STEPS, "alike") for clip in (None, 1e6)]
    assert clips[0] == pytest.approx(clips[1], abs=1e-4)


@pytest.mark.parametrize(("weights", "of"), [("alike", np.ones(4)), ("samples", SAMPLES)])
def test_feddyn_ends_at_the_optimum_of_clients_or_of_samples(weights: str, of: Floats) -> None:
    optimum = (of[:, None] * A * M).sum(axis=0) / (of[:, None] * A).sum(axis=0)
    ends = our_rounds([np.arange(4)] * 300, 1.0, 0.0, None, STEPS, weights)
    assert ends == pytest.approx(optimum, abs=1e-4)


# -- APFL --------------------------------------------------------------------------------------------------

READER, HIDDEN, LABELS = FakeReader(), 5, 4
INPUTS, CLASSES = torch.from_numpy(READER.x[:20]).double(), torch.from_numpy(READER.y[:20])


def logits(flat: Tensor) -> Tensor:
    """Those of a network with a hidden layer, on the samples of the client."""
    first, first_bias, last, last_bias = torch.split(flat, [HIDDEN * 6, HIDDEN, LABELS * HIDDEN, LABELS])
    hidden = torch.relu(INPUTS @ first.view(HIDDEN, 6).T + first_bias)
    return hidden @ last.view(LABELS, HIDDEN).T + last_bias


def slopes(outputs: Callable[..., Tensor], *models: Tensor) -> Sequence[Tensor]:
    """The gradient of the loss by each model."""
    leaves = [model.detach().requires_grad_() for model in models]
    return torch.autograd.grad(functional.cross_entropy(outputs(*leaves), CLASSES), leaves)


def mixed_logits(alpha: float, own: Tensor, other: Tensor) -> Tensor:
    return alpha * logits(own) + (1 - alpha) * logits(other)


def fedtorch_round(
    shared: Tensor, personal: Tensor, alpha: float, steps: int, adaptive: bool
) -> tuple[Tensor, Tensor, float]:
    """Both models and alpha after a round of a client, as FedTorch trains and updates alpha."""
    for step in range(steps):
        shared = shared - RATE * slopes(logits, shared)[0]
        of_personal, of_shared = slopes(partial(mixed_logits, alpha), personal, shared)
        personal = personal - RATE * of_personal
        if adaptive and step == 0:
            mixed = alpha * of_personal + (1 - alpha) * of_shared
            slope = float((personal - shared) @ mixed) + 0.02 * alpha
            alpha = min(max(alpha - RATE * slope, 0.0), 1.0)
    return shared, personal, alpha


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("strategy", ["loop", "stacked", "dense"])
def test_apfl_by_outputs_makes_the_30_steps_of_fedtorch_and_evaluates_as_it_does(
    strategy: str, adaptive: bool
) -> None:
    """Three rounds of ten steps on all samples at once; in between the received model is another one."""
    rules = [rule("apfl", alpha=0.4, adaptive=adaptive, mix="outputs"), rule("sgd")]
    engine = executor(READER, model("mlp", hidden=[HIDDEN]), rules, strategy=strategy)
    tasks = wave([20], [10], 20, learning_rate=RATE)
    received, state = engine.initial(0), dict[str, Floats32]()
    personal, alpha, alphas = torch.from_numpy(received).double(), 0.4, list[float]()
    mix = engine.solver.mixes
    assert mix is not None
    for number in range(3):
        updates = engine.train(replace(tasks, state=state), received[None], np.zeros(1, dtype=np.int64))
        state = dict(updates.state)
        start = torch.from_numpy(received).double()
        shared, personal, alpha = fedtorch_round(start, personal, alpha, 10, adaptive)
        assert received + updates.delta[0] == pytest.approx(shared.numpy(), abs=1e-5)
        assert state["apfl.own"][0] == pytest.approx(personal.numpy(), abs=1e-5)
        (ours,) = mix.shares(state, 1).tolist()
        alphas.append(ours)
        assert ours == pytest.approx(alpha, abs=1e-5)
        received = (engine.initial(number + 1) + received + updates.delta[0]) / 2
    assert len(set(alphas)) == (3 if adaptive else 1)
    own = engine.personal(received[None], state)
    plan = InferencePlan(np.array([[0, 1]]), np.array([[ours, 1 - ours]]), "logits")
    served = engine.evaluate(np.stack([own[0], received]), plan, tasks.samples)
    outputs = mixed_logits(alpha, personal, torch.from_numpy(received).double())
    assert served.loss[0] == pytest.approx(functional.cross_entropy(outputs, CLASSES).item(), abs=1e-5)
    assert served.accuracy[0] == (outputs.argmax(dim=1) == CLASSES).double().mean().item()


def test_where_all_clients_train_alone_or_not_at_all_the_mix_is_that_model() -> None:
    """At alpha 1 the own model is the trained one of plain descent from there on, and at 0 it stays."""
    for alpha in (0.0, 1.0):
        engine = executor(
            READER, model("mlp", hidden=[HIDDEN]), [rule("apfl", alpha=alpha, mix="outputs"), rule("sgd")]
        )
        start = engine.initial(0)
        updates = engine.train(wave([20], [10], 20), start[None], np.zeros(1, dtype=np.int64))
        expected = start + alpha * updates.delta[0]
        assert updates.state["apfl.own"][0] == pytest.approx(expected, abs=1e-6)


def test_the_mix_and_batch_norm_that_clients_keep_exclude_each_other_in_one_line() -> None:
    kept = [Segment(0, 1, (1,))]
    complaint = (
        r"^solver: Apfl, with these settings, .* training\.batch_norm = 'kept' keeps; take one of the two$"
    )
    with pytest.raises(ConfigurationError, match=complaint):
        build_chain([rule("apfl", mix="outputs"), rule("sgd")], {"0.weight": Segment(0, 1, (1,))}, kept)


def test_a_mix_of_anything_else_is_refused() -> None:
    with pytest.raises(ValidationError, match="mix"):
        rule("apfl", mix="probabilities")
