"""FedDyn and FedDC by hand on quadratics: the real rules beside the real aggregators, in double precision.

A quadratic `a (w - m)^2 / 2` has the gradient `a (w - m)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.feddc import FedDC
from coordinator.aggregators.feddyn import FedDyn, FedDynSettings
from coordinator.aggregators.fednova import FedNova, FedNovaSettings
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates, StepForm
from emulator.plugins import NoSettings
from executor.rules.base import LocalRule, LocalRun, build_chain
from tests.executor.fakes import rule
from tests.fakes import a_view

RATE, STEPS = 0.1, 10
CURVATURES, MINIMA = torch.tensor([[1.0], [5.0]]).double(), torch.tensor([[0.0], [1.0]]).double()
OPTIMUM = 5 / 6  # sum of a m / sum of a


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


def shares(steps: Sequence[int], rate: float = RATE) -> list[float]:
    """How much of the way to its minimum each client goes, in so many steps of plain descent."""
    curvatures = CURVATURES.flatten().tolist()
    return [1 - (1 - rate * curvature) ** count for curvature, count in zip(curvatures, steps, strict=True)]


def biased(steps: Sequence[int], rate: float = RATE) -> float:
    """Where the mean of `share (m - w)` is 0: the fixed point of FedAvg."""
    of_first, of_second = shares(steps, rate)
    return of_second / (of_first + of_second)


def trained(
    rules: Sequence[LocalRule],
    received: Tensor,
    steps: Sequence[int],
    state: Mapping[str, Tensor] | None = None,
    broadcast: Mapping[str, Tensor] | None = None,
    rate: float = RATE,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The parameters and the slots of the two tasks after so many steps of each."""
    chain, count = build_chain(rules), torch.tensor(steps)[:, None]
    present, slots = received.clone(), chain.remembered(received, state or {})
    for row in ([0], [1]):  # one after the other, so that each may have its own number of steps
        own = {name: slot[row].clone() for name, slot in slots.items()}
        sent = {name: array[row] for name, array in (broadcast or {}).items()}
        rates = {"learning_rate": torch.full((1, 1), rate, dtype=torch.float64)}
        run = LocalRun(received[row].clone(), present[row].clone(), rates, own, None, sent, count[row])
        chain.begin(run)
        for _ in range(steps[row[0]]):
            chain.step(run, CURVATURES[row] * (run.present - MINIMA[row]))
        chain.finish(run)
        present[row] = run.present
        for name, slot in slots.items():
            slot[row] = run.state[name]
    return present, slots


def federated(
    rules: Sequence[LocalRule],
    aggregator: Aggregator,
    rounds: int,
    steps: Sequence[int] = (STEPS, STEPS),
    rate: float = RATE,
    start: float = 3.0,
) -> float:
    """The model of both quadratics, from `start` on, after rounds of these steps of each."""
    facts = build_chain(rules).facts
    models, state = np.array([[start]], dtype=np.float32), {name: column(0.0, 0.0) for name in facts.state}
    for _ in range(rounds):
        view = a_view(models=models, model_ids=[0], num_clients=2, remembered=means(state))
        sent = aggregator.broadcast(view).items()
        along = {name: torch.from_numpy(rows).double().expand(2, 1) for name, rows in sent}
        received = torch.from_numpy(models).double().expand(2, 1)
        present, state = trained(rules, received, steps, state, along, rate)
        norms = (facts.form or StepForm()).norms(np.array(steps), np.full(2, rate))
        updates = ArrayUpdates(
            client=np.arange(2),
            model=np.zeros(2, dtype=np.int64),
            num_samples=np.ones(2, dtype=np.int64),
            num_steps=np.array(steps),
            delta=(present - received).numpy().astype(np.float32),
            metrics={"step_norm": norms},
        )
        after = a_view(models=models, model_ids=[0], num_clients=2, remembered=means(state))
        models = aggregator.aggregate(updates, after)
    return float(models[0, 0])


def means(state: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    return {name: rows.numpy().mean(axis=0)[None] for name, rows in state.items()}


FEDDYN = [rule("feddyn", alpha=1.0), rule("sgd")], FedDyn(FedDynSettings(alpha=1.0))
FEDDC = [rule("feddc", alpha=0.5), rule("sgd")], FedDC(NoSettings())


@pytest.mark.parametrize("steps", [(STEPS, STEPS), (3, STEPS)], ids=["equal steps", "unequal steps"])
def test_fedavg_ends_at_its_biased_fixed_point_and_feddyn_and_feddc_at_the_optimum(
    steps: tuple[int, int],
) -> None:
    fedavg = federated([rule("sgd")], FedAvg(FedAvgSettings()), 100, steps)
    assert fedavg == pytest.approx(biased(steps), abs=1e-6)
    assert abs(fedavg - OPTIMUM) > 0.04
    assert federated(*FEDDYN, 150, steps) == pytest.approx(OPTIMUM, abs=1e-6)
    assert federated(*FEDDC, 150, steps) == pytest.approx(OPTIMUM, abs=1e-6)


def test_fednova_undoes_unequal_numbers_of_steps_to_first_order_in_the_rate() -> None:
    """From 3, with the mean number of steps tau, `3 - rate tau (mean gradient)` is what they should make.

    At half the rate FedNova misses it by a quarter as much, FedAvg, whose client of 10 steps counts for more,
    by half as much.
    """
    steps, tau, slope = (3, STEPS), (3 + STEPS) / 2, (1 * 3.0 + 5 * (3.0 - 1)) / 2

    def missed(aggregator: Aggregator, rate: float) -> float:
        return federated([rule("sgd")], aggregator, 1, steps, rate) - (3 - rate * tau * slope)

    fednova, fedavg = FedNova(FedNovaSettings()), FedAvg(FedAvgSettings())
    rate = 1e-3
    assert missed(fednova, rate) / missed(fednova, rate / 2) == pytest.approx(4, rel=0.05)
    assert missed(fedavg, rate) / missed(fedavg, rate / 2) == pytest.approx(2, rel=0.1)
    assert abs(missed(fednova, rate / 2)) < 0.1 * abs(missed(fedavg, rate / 2))


@pytest.mark.slow
def test_fednova_ends_where_the_way_per_step_of_all_clients_is_0() -> None:
    steps, small = (3, STEPS), 0.005

    def predicted(rate: float) -> float:
        of_first, of_second = (s / count for s, count in zip(shares(steps, rate), steps, strict=True))
        return of_second / (of_first + of_second)

    ends = federated([rule("sgd")], FedNova(FedNovaSettings()), 200, steps)
    assert ends == pytest.approx(predicted(RATE), abs=1e-6)
    stays = federated([rule("sgd")], FedNova(FedNovaSettings()), 100, steps, small, start=predicted(small))
    assert stays == pytest.approx(predicted(small), abs=1e-6)
    assert abs(stays - OPTIMUM) < 0.2 * abs(biased(steps, small) - OPTIMUM)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("sgd", momentum=0.5)], StepForm(momentum=0.5)),
        ([rule("fedprox", mu=0.5), rule("sgd")], StepForm(pull=0.5)),
        ([rule("fedprox", mu=0.5, fedscale_sign=True), rule("sgd")], StepForm(pull=-0.5)),
        ([rule("fedprox", mu=0.5), rule("sgd", momentum=0.25, weight_decay=0.25)], StepForm(0.75, 0.25)),
        ([rule("ditto"), rule("sgd")], StepForm()),
        ([rule("apfl"), rule("sgd")], StepForm()),
    ],
)
def test_the_norm_of_a_chains_steps_is_their_way_under_a_constant_gradient(
    rules: list[LocalRule], expected: StepForm
) -> None:
    """From 0, so that weight decay pulls towards the start, too."""
    chain = build_chain(rules)
    assert chain.facts.form == expected
    rates, steps = {"learning_rate": column(RATE)}, column(7.0)
    run = LocalRun(column(0.0), column(0.0), rates, chain.remembered(column(0.0), {}), None, {}, steps)
    chain.begin(run)
    for _ in range(7):
        chain.step(run, column(1.0))
    (norm,) = expected.norms(np.array([7]), np.array([RATE])).tolist()
    assert norm == pytest.approx(-run.present.item() / RATE, rel=1e-12)


@pytest.mark.parametrize(
    "rules",
    [
        [rule("adam")],
        [rule("scaffold"), rule("sgd")],
        [rule("feddyn"), rule("sgd")],
        [rule("feddc"), rule("sgd")],
    ],
)
def test_steps_that_are_corrected_or_scaled_have_no_norm(rules: list[LocalRule]) -> None:
    assert build_chain(rules).facts.form is None


def test_a_gradient_is_clipped_by_its_norm_over_all_parameters_after_the_correction() -> None:
    chain = build_chain([rule("feddc", alpha=1.0, clip=5.0), rule("sgd")])
    received = torch.zeros(2, 2, dtype=torch.float64)
    state = chain.remembered(received, {})
    state["feddc.drift"][:, 1] = 8.0  # the corrected gradients are (6, 8) and (3, 8 - 4)
    rates, sent = {"learning_rate": column(1.0, 1.0)}, {"feddc.gradients": torch.zeros_like(received)}
    run = LocalRun(received, received.clone(), rates, state, None, sent, column(1.0, 1.0))
    chain.begin(run)
    chain.step(run, torch.tensor([[6.0, 0.0], [3.0, -4.0]]).double())
    assert run.present.tolist() == [[-3.0, -4.0], [-3.0, -4.0]]
    chain.finish(run)
    assert state["feddc.drift"].tolist() == [[-3.0, 4.0], [-3.0, 4.0]]
    assert state["feddc.gradient"].tolist() == [[3.0, 4.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("optimiser", "named"), [(rule("adam"), "Adam"), (rule("sgd", momentum=0.5), "momentum")]
)
def test_feddc_refuses_an_optimiser_whose_mean_step_is_no_gradient(optimiser: LocalRule, named: str) -> None:
    complaint = rf"^solver: feddc takes a client's mean step .* under {named}; end the solver with 'sgd'.*$"
    with pytest.raises(ConfigurationError, match=complaint):
        build_chain([rule("feddc"), optimiser])
