from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from emulator.errors import ConfigurationError, UnknownNameError
from emulator.messages import StateSpec
from executor.rules import RULES
from executor.rules.base import LocalRun, build_chain
from executor.rules.fedprox import FedProx
from tests.executor.fakes import rule


def run_of(*present: float, learning_rate: float = 0.5) -> LocalRun:
    """Tasks of one parameter, which all received 0."""
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
    """With f = (w - 4)^2 / 2 and mu = 1 from 0: -4 takes w to 2, where -2 + 1 (2 - 0) = 0."""
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
    """With g = 1, momentum 0.5, decay 0.1, rate 0.5: v 1 -> w -0.5; v 0.5 + 0.95 = 1.45 -> w -1.225."""
    run = run_of(0.0)
    chain = build_chain([rule("sgd", momentum=0.5, weight_decay=0.1)])
    chain.begin(run)
    path = []
    for _ in range(2):
        chain.step(run, torch.ones(1, 1, dtype=torch.float64))
        path.append(run.present.item())
    assert path == pytest.approx([-0.5, -1.225], rel=1e-14)


def test_two_steps_of_adam_by_hand() -> None:
    """Gradients 2 and then 0, with beta1 0.5, beta2 0.75 and rate 0.5.

    First m = 1 and v = 1, so the step is 0.5 (1 / 0.5) / sqrt(1 / 0.25) = 0.5; then m = 0.5 and v = 0.75, so
    it is 0.5 (0.5 / 0.75) / sqrt(0.75 / 0.4375) = 0.254588.
    """
    run = run_of(0.0)
    chain = build_chain([rule("adam", beta1=0.5, beta2=0.75)])
    chain.begin(run)
    path = []
    for gradient in (2.0, 0.0):
        chain.step(run, torch.full((1, 1), gradient, dtype=torch.float64))
        path.append(run.present.item())
    assert path == pytest.approx([-0.5, -0.754588], rel=1e-6)
    assert run.state["adam.steps"].item() == 2


def test_amsgrad_never_forgets_the_largest_gradient() -> None:
    """As above, but v stays 1, so the second step is 0.5 (0.5 / 0.75) / sqrt(1 / 0.4375) = 0.220479."""
    run = run_of(0.0)
    chain = build_chain([rule("adam", beta1=0.5, beta2=0.75, amsgrad=True)])
    chain.begin(run)
    for gradient in (2.0, 0.0):
        chain.step(run, torch.full((1, 1), gradient, dtype=torch.float64))
    assert run.present.item() == pytest.approx(-0.720479, rel=1e-6)
    assert run.state["adam.moment2_max"].item() == 1


def test_each_task_of_adam_counts_its_own_steps() -> None:
    """A first step has the size of the rate; so has the hundredth step of equal gradients."""
    run = run_of(0.0, 0.0)
    chain = build_chain([rule("adam", beta1=0.5, beta2=0.75)])
    run.state = chain.remembered(run.received, {})
    run.state["adam.moment1"][1] = run.state["adam.moment2"][1] = 1
    run.state["adam.steps"][1] = 99
    chain.begin(run)
    chain.step(run, torch.ones(2, 1, dtype=torch.float64))
    assert run.present.flatten().tolist() == pytest.approx([-0.5, -0.5], rel=1e-7)
    assert run.state["adam.steps"].flatten().tolist() == [1, 100]


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_takes_the_betas_of_a_task_where_it_has_some(amsgrad: bool) -> None:
    """Each task steps as it would alone by a rule with its betas."""
    betas = [(0.5, 0.75), (0.9, 0.99)]
    together = run_of(0.0, 0.0)
    columns = torch.tensor(betas, dtype=torch.float64)
    wide = {"adam.beta1": columns[:, :1], "adam.beta2": columns[:, 1:]}
    together.settings = {**together.settings, **wide}
    chain = build_chain([rule("adam", amsgrad=amsgrad)])
    assert chain.facts.settings == {"adam.beta1": 0.9, "adam.beta2": 0.999}
    chain.begin(together)
    alone = [run_of(0.0) for _ in betas]
    of_alone = [build_chain([rule("adam", beta1=one, beta2=two, amsgrad=amsgrad)]) for one, two in betas]
    for run, of_rule in zip(alone, of_alone, strict=True):
        of_rule.begin(run)
    for gradient in (1.0, -3.0, 0.5):
        chain.step(together, torch.full((2, 1), gradient, dtype=torch.float64))
        for run, of_rule in zip(alone, of_alone, strict=True):
            of_rule.step(run, torch.full((1, 1), gradient, dtype=torch.float64))
    expected = [run.present.item() for run in alone]
    assert together.present.flatten().tolist() == pytest.approx(expected, rel=1e-6)
    assert expected[0] != pytest.approx(expected[1], rel=1e-3)


def test_tasks_that_have_done_their_steps_keep_their_state() -> None:
    run = run_of(0.0, 0.0)
    chain = build_chain([rule("adam")])
    state = chain.remembered(run.received, {})
    run.state = dict(state)
    chain.begin(run)
    chain.step(run, torch.ones(2, 1, dtype=torch.float64))
    run.keep_first(1)
    chain.step(run, torch.ones(1, 1, dtype=torch.float64))
    assert state["adam.steps"].flatten().tolist() == [2, 1]
    assert state["adam.moment1"].flatten().tolist() == pytest.approx([0.19, 0.1])


def test_three_steps_of_aso_memory_over_two_tasks_by_hand() -> None:
    """Gradients 2, 5 and 4 with beta 0.25, the last in another task: z = g - g_before + h.

    h is 0 before the first two steps; after the second it is 0.75 x 2 = 1.5: z is 2, 5 - 2 and 4 - 5 + 1.5.
    Then h is 0.25 x 1.5 + 0.75 x 5.
    """
    chain = build_chain([rule("aso_memory", beta=0.25), rule("sgd")])
    first = run_of(0.0, learning_rate=1.0)
    first.state = chain.remembered(first.received, {})
    chain.begin(first)
    path = []
    for gradient in (2.0, 5.0):
        chain.step(first, torch.full((1, 1), gradient, dtype=torch.float64))
        path.append(first.present.item())
    assert path == [-2, -5]
    assert chain.facts.state.keys() == first.state.keys() == {"aso_memory.decayed", "aso_memory.previous"}
    second = run_of(0.0, learning_rate=1.0)
    second.state = chain.remembered(second.received, first.state)
    chain.begin(second)
    chain.step(second, torch.full((1, 1), 4.0, dtype=torch.float64))
    assert second.present.item() == -0.5
    assert second.state["aso_memory.decayed"].item() == 4.125
    assert second.state["aso_memory.previous"].item() == 4


def test_aso_memory_remembers_the_gradient_that_the_rules_before_it_make_and_none_after_it() -> None:
    """At 2 from 0, fedprox with mu 0.5 makes 4 of 3; momentum overwrites what it gets."""
    run = run_of(2.0)
    chain = build_chain([rule("fedprox", mu=0.5), rule("aso_memory"), rule("sgd", momentum=0.9)])
    run.state = chain.remembered(run.received, {})
    chain.begin(run)
    chain.step(run, torch.full((1, 1), 3.0, dtype=torch.float64))
    assert run.state["aso_memory.previous"].item() == 4
    assert run.present.item() == 0
    assert chain.facts.form is None


def test_what_aso_memory_remembers_outlives_new_data_and_the_model() -> None:
    slots = build_chain([rule("aso_memory"), rule("sgd")]).facts.state
    assert set(slots.values()) == {StateSpec("parameters", until="run", start="zeros")}


@pytest.mark.parametrize("last", ["adam", "sgd"])
def test_frozen_parameters_do_not_move_even_if_the_gradient_is_nan(last: str) -> None:
    run = LocalRun(
        received=torch.zeros(1, 2),
        present=torch.ones(1, 2),
        settings={"learning_rate": torch.ones(1, 1)},
        frozen=torch.tensor([True, False]),
    )
    chain = build_chain([rule("fedprox"), rule(last, weight_decay=0.5)])
    chain.begin(run)
    chain.step(run, torch.tensor([[float("nan"), 1.0]]))
    assert run.present[0, 0] == 1
    assert run.present[0, 1] < 1


def test_each_task_has_its_own_learning_rate() -> None:
    run = run_of(0.0, 0.0)
    run.settings = {"learning_rate": torch.tensor([[1.0], [0.25]], dtype=torch.float64)}
    build_chain([rule("sgd")]).step(run, torch.ones(2, 1, dtype=torch.float64))
    assert run.present.flatten().tolist() == [-1.0, -0.25]


@pytest.mark.parametrize(
    ("kinds", "complaint"),
    [
        ([], r"solver \[\]"),
        (["fedprox"], r"solver \[FedProx\]: the last rule, and no other, must be an optimiser"),
        (["sgd", "fedprox"], r"solver \[Sgd, FedProx\]"),
        (["sgd", "sgd"], r"solver \[Sgd, Sgd\]"),
    ],
)
def test_the_last_rule_and_no_other_is_the_optimiser(kinds: list[str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        build_chain([rule(kind) for kind in kinds])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("sgd", {"momentum": 1.0}),
        ("sgd", {"weight_decay": -0.1}),
        ("fedprox", {"mu": -1}),
        ("aso_memory", {"beta": 1}),
        ("sgd", {"lr": 1}),
        ("adam", {"beta1": 1.0}),
        ("adam", {"beta2": -0.1}),
        ("adam", {"epsilon": 0}),
        ("adam", {"keep": "round"}),
    ],
)
def test_settings_out_of_range_or_unknown_are_refused(kind: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        rule(kind, **settings)


def test_an_unknown_rule_lists_the_choices() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown local rule 'prox'; choices: adam, apfl, aso_memory, c"
    ):
        RULES.find("prox")


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"held_out": 0.5}, "stops_early = False and held_out = 0.5, and does not override stops"),
        ({"stops_early": True, "held_out": 0.5}, "and does not override stops"),
        ({"stops_early": True, "stops": lambda *losses: losses}, "held_out = 0, and overrides stops"),
        ({"stops": lambda *losses: losses}, "stops_early = False and held_out = 0, and overrides stops"),
    ],
)
def test_a_rule_that_has_half_of_what_stops_early_is_refused(
    declared: dict[str, object], problem: str
) -> None:
    kind = type("Half", (FedProx,), declared)
    with pytest.raises(ConfigurationError, match=f"solver: Half has .*{problem}; a rule that stops early"):
        build_chain([kind(FedProx.Settings()), rule("sgd")])
