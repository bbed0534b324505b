"""Settings that name what published code does, beside plain loops of its formulas, over 30 steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from coordinator.aggregators.feddyn import FedDyn, FedDynSettings
from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates
from emulator.ports import Segment
from executor.rules.base import LocalRun, build_chain
from tests.executor.fakes import rule
from tests.fakes import a_view

RATE = 0.05


def column(*numbers: float) -> torch.Tensor:
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
