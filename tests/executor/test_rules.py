from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from emulator.errors import ConfigurationError, UnknownNameError
from executor.rules import RULES
from executor.rules.base import LocalRun, build_chain
from tests.executor.fakes import rule


def run_of(*present: float, learning_rate: float = 0.5) -> LocalRun:
    """Tasks of one parameter each, that received 0."""
    column = torch.tensor(present, dtype=torch.float64)[:, None]
    rates = torch.full_like(column, learning_rate)
    return LocalRun(torch.zeros_like(column), column.clone(), {"learning_rate": rates})


def test_fedprox_pulls_towards_the_received_model() -> None:
    run = run_of(2.0, -2.0)
    pulled = rule("fedprox", mu=0.5).correct(run, torch.ones(2, 1, dtype=torch.float64))
    assert pulled.flatten().tolist() == [2.0, 0.0]  # 1 + 0.5 (w - 0)


def test_the_parity_flag_pushes_away_as_fedscale_does() -> None:
    run = run_of(2.0, -2.0)
    pushed = rule("fedprox", mu=0.5, fedscale_sign=True).correct(run, torch.ones(2, 1, dtype=torch.float64))
    assert pushed.flatten().tolist() == [0.0, 2.0]


def test_fedprox_on_a_parabola_stops_between_the_received_model_and_the_minimum() -> None:
    """f = (w - 4)^2 / 2 with mu = 1 from 0: -4 takes w to 2, where -2 + 1 (2 - 0) = 0."""
    run = run_of(0.0)
    chain = build_chain([rule("fedprox", mu=1.0), rule("sgd")])
    chain.begin(run)
    path = []
    for _ in range(3):
        chain.step(run, run.present - 4)
        path.append(run.present.item())
    assert path == [2.0, 2.0, 2.0]
    assert run.step == 3


def test_momentum_and_weight_decay_by_hand() -> None:
    """g = 1, momentum 0.5, decay 0.1, rate 0.5: v 1 -> w -0.5; v 0.5 + 0.95 = 1.45 -> w -1.225."""
    run = run_of(0.0)
    chain = build_chain([rule("sgd", momentum=0.5, weight_decay=0.1)])
    chain.begin(run)
    path = []
    for _ in range(2):
        chain.step(run, torch.ones(1, 1, dtype=torch.float64))
        path.append(run.present.item())
    assert path == pytest.approx([-0.5, -1.225], rel=1e-14)


def test_each_task_has_its_own_learning_rate() -> None:
    run = run_of(0.0, 0.0)
    run.settings = {"learning_rate": torch.tensor([[1.0], [0.25]], dtype=torch.float64)}
    build_chain([rule("sgd")]).step(run, torch.ones(2, 1, dtype=torch.float64))
    assert run.present.flatten().tolist() == [-1.0, -0.25]


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ([], r"solver \[\]"),
        (["fedprox"], r"solver \[FedProx\]: the last rule, and no other, must be an optimiser"),
        (["sgd", "fedprox"], r"solver \[Sgd, FedProx\]"),
        (["sgd", "sgd"], r"solver \[Sgd, Sgd\]"),
    ],
)
def test_the_last_rule_and_no_other_is_the_optimiser(kinds: list[str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        build_chain([rule(kind) for kind in kinds])


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("sgd", {"momentum": 1.0}),
        ("sgd", {"weight_decay": -0.1}),
        ("fedprox", {"mu": -1}),
        ("sgd", {"lr": 1}),
    ],
)
def test_parameters_out_of_range_or_unknown_are_refused(kind: str, parameters: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        rule(kind, **parameters)


def test_an_unknown_rule_lists_the_choices() -> None:
    with pytest.raises(UnknownNameError, match="unknown local rule 'prox'; choices: fedprox, sgd"):
        RULES.find("prox")
