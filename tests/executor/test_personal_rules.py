"""Rules with memory, by hand on quadratics and in the executor: SCAFFOLD, Ditto, APFL, layers that stay.

A quadratic `a (w - m)^2 / 2` has the gradient `a (w - m)`: K steps of rate `eta` multiply the distance from
its minimum m by `r^K`, with `r = 1 - eta a`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import FedAvg, FedAvgSettings
from coordinator.aggregators.scaffold import CONTROL, OWN, Scaffold, ScaffoldSettings
from coordinator.assignment import Assignment
from emulator.arrays import Floats32
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates, TrainTasks
from emulator.ports import Segment
from executor.executor import LocalExecutor
from executor.rules.base import LocalRule, LocalRun, build_chain
from tests.executor.fakes import FakeReader, executor, model, rule, wave
from tests.fakes import a_view

RATE = 0.1
STRATEGIES = ("loop", "stacked", "dense")
LAYOUT = {
    "0.weight": Segment(0, 2, (2,)),
    "0.bias": Segment(2, 3, (1,)),
    "1.weight": Segment(3, 4, (1,)),
    "1.bias": Segment(4, 5, (1,)),
}
BODY, HEAD = [0, 1, 2], [3, 4]


@dataclass
class Quadratics:
    """n tasks side by side, each on a quadratic of its own; rows of `curvature` and `minimum` (n, P)."""

    curvature: Tensor
    minimum: Tensor
    path: list[list[list[float]]] = field(default_factory=list)  # the parameters after each step

    def gradient(self, parameters: Tensor) -> Tensor:
        rows = len(parameters)
        return self.curvature[:rows] * (parameters - self.minimum[:rows])

    def train(
        self,
        rules: Sequence[LocalRule],
        received: Tensor,
        steps: Sequence[int],
        state: Mapping[str, Tensor] | None = None,
        broadcast: Mapping[str, Tensor] | None = None,
        layout: Mapping[str, Segment] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The parameters of the tasks and their slots after so many `steps` of each, descending."""
        chain = build_chain(rules, layout)
        present, slots = received.clone(), chain.remembered(received, state or {})
        rates = {"learning_rate": torch.full_like(received[:, :1], RATE)}
        counts = torch.tensor(steps, dtype=received.dtype)[:, None]

        def all_tasks() -> LocalRun:
            return LocalRun(received, present, rates, dict(slots), None, broadcast or {}, counts)

        run = all_tasks()
        chain.begin(run)
        self.path = []
        for step in range(max(steps)):
            run.keep_first(sum(count > step for count in steps))
            chain.step(run, self.gradient(run.present), self.gradient if chain.looks_again else None)
            self.path.append(present.tolist())
        chain.finish(all_tasks())
        return present, slots


def column(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)[:, None]


# -- SCAFFOLD ----------------------------------------------------------------------------------------------

CURVATURES, MINIMA, STEPS = (1.0, 5.0), (0.0, 1.0), 10
OPTIMUM = 5 / 6  # sum of a m / sum of a
SHARES = [1 - (1 - RATE * curvature) ** STEPS for curvature in CURVATURES]  # of the way to m, in K steps
BIASED = SHARES[1] / sum(SHARES)  # where the mean of `share (m - w)` is 0


def federated(rules: Sequence[LocalRule], aggregator: Aggregator, rounds: int) -> float:
    """The model of both quadratics, from 3 on, after rounds of K steps of each."""
    both = Quadratics(column(*CURVATURES), column(*MINIMA))
    members = Assignment.fresh(np.zeros(2, dtype=np.int64), 1, np.zeros(1, dtype=np.float32))
    models, state = np.array([[3.0]], dtype=np.float32), dict[str, Tensor]()
    for _ in range(rounds):
        remembered = (state or {OWN: column(0.0)}).items()
        means = {name: rows.numpy().mean(axis=0)[None] for name, rows in remembered}
        view = a_view(models=models, model_ids=[0], num_clients=2, assignment=members, remembered=means)
        sent = {
            name: torch.from_numpy(rows).double().expand(2, 1)
            for name, rows in aggregator.broadcast(view).items()
        }
        received = torch.from_numpy(models).double().expand(2, 1)
        trained, state = both.train(rules, received, [STEPS, STEPS], state, sent)
        updates = ArrayUpdates(
            client=np.arange(2),
            model=np.zeros(2, dtype=np.int64),
            num_samples=np.ones(2, dtype=np.int64),
            num_steps=np.full(2, STEPS),
            delta=(trained - received).numpy().astype(np.float32),
        )
        models = aggregator.aggregate(updates, view)
    return float(models[0, 0])


def test_fedavg_of_unequal_curvatures_ends_at_its_biased_fixed_point_and_scaffold_at_the_optimum() -> None:
    assert pytest.approx(0.6053, abs=1e-4) == BIASED
    fedavg = federated([rule("sgd")], FedAvg(FedAvgSettings()), 60)
    assert fedavg == pytest.approx(BIASED, abs=1e-6)
    scaffold = federated([rule("scaffold"), rule("sgd")], Scaffold(ScaffoldSettings()), 200)
    assert scaffold == pytest.approx(OPTIMUM, abs=1e-6)


def test_the_control_variate_of_a_task_is_its_mean_gradient_less_what_it_was_corrected_by() -> None:
    """Option II, of tasks of two, one and no steps: `c_i - c + (w - y) / (K eta)`."""
    tasks = Quadratics(column(1.0, 2.0, 4.0), column(0.0, 0.0, 0.0))
    received, own, sent = column(1.0, 1.0, 1.0), column(0.5, 0.5, 0.5), column(0.25, 0.25, 0.25)
    trained, state = tasks.train(
        [rule("scaffold"), rule("sgd")], received, [2, 1, 0], {"scaffold.own": own}, {CONTROL: sent}
    )
    once = 1 - RATE * (1 - 0.25)
    twice = once - RATE * (once - 0.25)
    assert trained.flatten().tolist() == pytest.approx([twice, 1 - RATE * (2 - 0.25), 1.0], rel=1e-12)
    controls = [0.25 + (1 - twice) / (2 * RATE), 0.25 + 1.75, 0.5]
    assert state["scaffold.own"].flatten().tolist() == pytest.approx(controls, rel=1e-12)


# -- Ditto and APFL ----------------------------------------------------------------------------------------

TASKS = wave(counts=[9, 3, 0, 12, 7], steps=[4, 1, 5, 6, 0], batch_size=[4, 4, 4, 4, 3])
CLIENTS = np.arange(len(TASKS))
UNPULLED = [rule("fedprox", mu=0.0), rule("sgd")]


def of_round(number: int, state: Mapping[str, Floats32] | None = None) -> TrainTasks:
    return replace(TASKS, dispatch=np.full(len(TASKS), number), state=state or {})


def of_strategy(strategy: str, rules: Sequence[LocalRule]) -> LocalExecutor:
    return executor(FakeReader(), model("mlp", hidden=[5]), rules, strategy=strategy)


def served(engine: LocalExecutor, rounds: int) -> Floats32:
    """(rounds, P) the models that the coordinator sends in each round, whatever comes back."""
    return np.stack([engine.initial(number) for number in range(rounds)])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "rules",
    [
        [rule("ditto", pull=0.3), rule("sgd")],
        [rule("apfl", alpha=0.3), rule("sgd")],
        [rule("apfl", alpha=0.7, adaptive=True), rule("sgd")],
    ],
    ids=lambda rules: repr(rules[0].settings),
)
def test_the_served_models_of_ditto_and_apfl_are_those_of_fedavg_to_the_bit(
    strategy: str, rules: list[LocalRule]
) -> None:
    engine, plain = of_strategy(strategy, rules), of_strategy(strategy, UNPULLED)
    state: Mapping[str, Floats32] = {}
    for number, sent in enumerate(served(engine, 3)):
        models, start = sent[None], np.zeros(len(TASKS), dtype=np.int64)
        updates = engine.train(of_round(number, state), models, start)
        without = plain.train(of_round(number), models, start)
        assert updates.delta.tobytes() == without.delta.tobytes()
        assert updates.metrics["loss"].tobytes() == without.metrics["loss"].tobytes()
        state = updates.state


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "rules",
    [[rule("ditto", pull=0.0), rule("sgd")], [rule("apfl", alpha=1.0), rule("sgd")]],
    ids=["ditto", "apfl"],
)
def test_without_a_pull_or_at_alpha_1_the_personal_model_is_that_of_training_alone(
    strategy: str, rules: list[LocalRule]
) -> None:
    engine, alone = of_strategy(strategy, rules), of_strategy(strategy, UNPULLED)
    sent = served(engine, 3)
    own = np.repeat(sent[:1], len(TASKS), axis=0)  # all begin with the first model that they receive
    state: Mapping[str, Floats32] = {}
    for number in range(3):
        updates = engine.train(of_round(number, state), sent, np.full(len(TASKS), number))
        state = updates.state
        own = own + alone.train(of_round(number), own, CLIENTS).delta
        personal = engine.personal(np.repeat(sent[number, None], len(TASKS), axis=0), state)
        np.testing.assert_allclose(personal, own, rtol=0, atol=1e-6)
    assert np.abs(own[[0, 1, 3]] - sent[0]).max() > 1e-2
    assert own[[2, 4]].tobytes() == sent[[0, 0]].tobytes()  # no samples, or no steps


def test_at_alpha_0_apfl_uses_the_served_model() -> None:
    engine = of_strategy("dense", [rule("apfl", alpha=0.0), rule("sgd")])
    first, later = served(engine, 2)
    updates = engine.train(of_round(0), first[None], np.zeros(len(TASKS), dtype=np.int64))
    received = np.repeat(later[None], len(TASKS), axis=0)
    assert engine.personal(received, updates.state).tobytes() == received.tobytes()
    assert (updates.state["apfl.own"] == first).all()  # the gradient of the mixture by v is 0


def test_ditto_by_hand_pulls_its_own_model_towards_the_received_one() -> None:
    """From v = 3, received 1, minimum 0, pull 0.5: `v <- v - 0.1 (v + 0.5 (v - 1))`, twice."""
    trained, state = Quadratics(column(1.0), column(0.0)).train(
        [rule("ditto", pull=0.5), rule("sgd")], column(1.0), [2], {"ditto.own": column(3.0)}
    )
    once = 3 - 0.1 * (3 + 0.5 * 2)
    twice = once - 0.1 * (once + 0.5 * (once - 1))
    assert state["ditto.own"].item() == pytest.approx(twice, rel=1e-12)
    assert trained.item() == pytest.approx(0.81, rel=1e-12)


def test_the_own_model_of_ditto_has_its_own_rate_if_it_is_given() -> None:
    _, state = Quadratics(column(1.0), column(0.0)).train(
        [rule("ditto", pull=0.0, learning_rate=0.5), rule("sgd")], column(1.0), [2]
    )
    assert state["ditto.own"].item() == 0.25


@pytest.mark.parametrize(
    ("own", "minimum", "present", "alpha"),
    [
        pytest.param(3.0, 0.0, 0.9, 0.5 - 0.1 * 2.1 * 1.95, id="between"),
        pytest.param(6.0, 30.0, 3.9, 1.0, id="0.5 + 0.1 x 2.1 x 25.05"),
        pytest.param(30.0, 0.0, 0.9, 0.0, id="0.5 - 0.1 x 29.1 x 15.45"),
    ],
)
def test_an_adaptive_alpha_moves_along_its_gradient_within_0_and_1(
    own: float, minimum: float, present: float, alpha: float
) -> None:
    """From 1, w first moves to `present`; v then moves by the gradient at the mean of both, by half of it."""
    trained, state = Quadratics(column(1.0), column(minimum)).train(
        [rule("apfl", alpha=0.5, adaptive=True), rule("sgd")], column(1.0), [1], {"apfl.own": column(own)}
    )
    assert trained.item() == pytest.approx(present, rel=1e-12)
    gradient = (own + present) / 2 - minimum
    moved = own - 0.1 * 0.5 * gradient
    assert state["apfl.own"].item() == pytest.approx(moved, rel=1e-12)
    assert 0.5 + state["apfl.change"].item() == pytest.approx(alpha, abs=1e-12)
    personal = rule("apfl", alpha=0.5, adaptive=True).personal(column(2.0), state)
    assert personal.item() == pytest.approx(alpha * moved + (1 - alpha) * 2, rel=1e-12)


# -- layers that stay with the client ----------------------------------------------------------------------

FEATURES = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]], dtype=torch.float64)
TWO = Quadratics(FEATURES, torch.tensor([[1.0] * 5, [-1.0] * 5], dtype=torch.float64))
Moves = Callable[[int, int], list[int]]
"""(step, steps) -> the numbers of the parameters that move in this step."""


def plain_loop(
    start: Sequence[float], task: int, steps: int, moves: Moves, momentum: float, decay: float = 0.0
) -> list[float]:
    """The parameters of one task, number by number; what rests gathers neither momentum nor decay."""
    parameters, velocity = list(start), [0.0] * 5
    for step in range(steps):
        for number in moves(step, steps):
            slope = FEATURES[task, number].item() * (parameters[number] - TWO.minimum[task, number].item())
            velocity[number] = momentum * velocity[number] + slope + decay * parameters[number]
            parameters[number] -= RATE * velocity[number]
    return parameters


def everything(step: int, steps: int) -> list[int]:
    return BODY + HEAD


def check_layers(
    kept: list[int], moves: Moves = everything, momentum: float = 0.0, decay: float = 0.0, **settings: Any
) -> None:
    """Two visits of two clients, of five and three steps; for the second, another model is sent."""
    part = rule("personal_layers", **settings)
    rules, steps = [part, rule("sgd", momentum=momentum, weight_decay=decay)], [5, 3]
    sent = [number for number in range(5) if number not in kept]
    own = [[4.0] * 5, [4.0] * 5]  # as first received
    state: dict[str, Tensor] = {}
    for first in (4.0, 2.0):
        received = torch.full((2, 5), first, dtype=torch.float64)
        trained, state = TWO.train(rules, received, steps, state, layout=LAYOUT)
        for task in range(2):
            start = [own[task][number] if number in kept else first for number in range(5)]
            own[task] = plain_loop(start, task, steps[task], moves, momentum, decay)
            expected = [start[number] if number in kept else own[task][number] for number in range(5)]
            assert trained[task].tolist() == pytest.approx(expected, rel=1e-12)
        assert (trained[:, kept] == received[:, kept]).all()  # the update is 0 to the bit
        personal = part.personal(torch.full((2, 5), 9.0, dtype=torch.float64), state)
        assert personal[:, kept].flatten().tolist() == pytest.approx(
            [row[number] for row in own for number in kept], rel=1e-12
        )
        assert (personal[:, sent] == 9).all()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize(
    ("kept", "settings"),
    [
        (HEAD, {}),
        (HEAD, {"keep": "head"}),
        (BODY, {"keep": "body"}),
        ([2, 3], {"keep": ["1.weight", "0.bias"]}),
    ],
)
def test_layers_that_stay_with_the_client_are_those_of_a_plain_loop(
    kept: list[int], settings: dict[str, Any], momentum: float
) -> None:
    check_layers(kept, momentum=momentum, **settings)


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.5, 0.25)])
@pytest.mark.parametrize(("keep", "kept"), [("head", HEAD), ("body", BODY)])
@pytest.mark.parametrize(
    ("share", "of_head"), [(0.5, {5: 3, 3: 2}), (0.2, {5: 1, 3: 1}), (0.0, {5: 0, 3: 0}), (1.0, {5: 5, 3: 3})]
)
def test_alternating_trains_the_head_for_its_share_of_each_tasks_steps_and_then_the_body(
    keep: str, kept: list[int], momentum: float, decay: float, share: float, of_head: dict[int, int]
) -> None:
    def moves(step: int, steps: int) -> list[int]:
        return HEAD if step < of_head[steps] else BODY

    check_layers(kept, moves, momentum, decay, keep=keep, alternate=True, head_steps=share)


@pytest.mark.parametrize("fedprox_first", [False, True])
def test_fedprox_pulls_layers_that_stay_to_what_they_were_as_the_visit_began(fedprox_first: bool) -> None:
    """One step of rate 0.1 moves nothing from its start; in the second, mu = 2 pulls each back to its own."""
    pair = [rule("personal_layers"), rule("fedprox", mu=2.0)]
    rules = [*(reversed(pair) if fedprox_first else pair), rule("sgd")]
    flat = Quadratics(torch.ones(1, 5, dtype=torch.float64), torch.zeros(1, 5, dtype=torch.float64))
    own = {"personal_layers.own": torch.full((1, 5), 4.0, dtype=torch.float64)}
    flat.train(rules, torch.full((1, 5), 2.0, dtype=torch.float64), [2], own, layout=LAYOUT)
    for number, start in ((BODY[0], 2.0), (HEAD[0], 4.0)):
        once = start - RATE * start
        assert flat.path[0][0][number] == pytest.approx(once, rel=1e-12)
        twice = once - RATE * (once + 2.0 * (once - start))
        assert flat.path[1][0][number] == pytest.approx(twice, rel=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tampering_leaves_layers_that_stay_alone(strategy: str) -> None:
    spoilt = {"noise": np.full(len(TASKS), 2.0), "nan": np.ones(len(TASKS))}
    engine = of_strategy(strategy, [rule("personal_layers"), rule("sgd")])
    models, start = engine.initial(0)[None], np.zeros(len(TASKS), dtype=np.int64)
    honest = engine.train(of_round(0), models, start)
    arrived = engine.train(replace(of_round(0), tampering=spoilt), models, start)
    sent = np.zeros(engine.num_parameters, dtype=bool)
    body = [segment for name, segment in engine.layout.items() if name.startswith(min(engine.layout)[:1])]
    for segment in body:
        sent[segment.first : segment.last] = True
    assert not arrived.delta[:, ~sent].any()
    assert np.isnan(arrived.delta[:, sent]).any(axis=1).all()
    for name, slot in arrived.state.items():
        assert slot.tobytes() == honest.state[name].tobytes()


def test_while_the_head_trains_the_body_rests_and_the_other_way_round() -> None:
    rules = [rule("personal_layers", alternate=True), rule("sgd", momentum=0.9, weight_decay=0.1)]
    TWO.train(rules, torch.full((2, 5), 4.0, dtype=torch.float64), [5, 3], layout=LAYOUT)
    path = np.array([[[4.0] * 5] * 2, *TWO.path])
    moved = (np.diff(path, axis=0) != 0).transpose(1, 0, 2)  # task, step, parameter
    of_head, of_body, of_none = [False] * 3 + [True] * 2, [True] * 3 + [False] * 2, [False] * 5
    assert moved[0].tolist() == [of_head] * 3 + [of_body] * 2
    assert moved[1].tolist() == [of_head] * 2 + [of_body] + [of_none] * 2


@pytest.mark.parametrize(
    ("share", "steps", "of_head"),
    [(0.14, 50, 7), (0.6, 25, 15), (0.28, 50, 14), (0.58, 50, 29), (0.3, 25, 8)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_share_of_the_steps_that_is_a_whole_number_is_not_rounded_up_to_the_next(
    share: float, steps: int, of_head: int, dtype: torch.dtype
) -> None:
    """0.14 x 50 is 7.000000000000001 in double precision, and 0.6 x 25 is above 15 in single precision."""
    rules = [rule("personal_layers", alternate=True, head_steps=share), rule("sgd")]
    one = Quadratics(FEATURES[:1].to(dtype) / 100, torch.zeros(1, 5, dtype=dtype))
    one.train(rules, torch.full((1, 5), 4.0, dtype=dtype), [steps], layout=LAYOUT)
    body = [step[0][0] for step in one.path]
    assert body[:of_head] == [4.0] * of_head
    assert body[of_head] < 4


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("keep", ["head", "body"])
def test_the_update_of_layers_that_stay_is_zero_and_they_are_what_the_client_uses(
    strategy: str, keep: str
) -> None:
    engine = of_strategy(strategy, [rule("personal_layers", keep=keep), rule("sgd")])
    sent, later = served(engine, 2)
    updates = engine.train(of_round(0), sent[None], np.zeros(len(TASKS), dtype=np.int64))
    head = np.zeros(engine.num_parameters, dtype=bool)
    head[-(5 * 4 + 4) :] = True  # five hidden units, four labels
    kept = head if keep == "head" else ~head
    trained = [0, 1, 3]
    assert not updates.delta[:, kept].any()
    assert (updates.delta[trained][:, ~kept] != 0).any(axis=1).all()
    personal = engine.personal(np.repeat(later[None], len(TASKS), axis=0), updates.state)
    assert (personal[:, ~kept] == later[~kept]).all()
    assert (personal[trained][:, kept] != sent[kept]).any(axis=1).all()
    assert (personal[[2, 4]][:, kept] == sent[kept]).all()  # no samples, or no steps
    assert engine.solver.unsent == kept.sum()


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "layout", "complaint"),
    [
        (
            [rule("personal_layers", keep=["0.weight", "last"]), rule("sgd")],
            LAYOUT,
            r"^solver: personal_layers\.keep names 'last', which the model has not; tensors: 0\.weight, "
            r"0\.bias, 1\.weight, 1\.bias$",
        ),
        (
            [rule("personal_layers", keep=sorted(LAYOUT)), rule("sgd")],
            LAYOUT,
            r"^solver: personal_layers\.keep = \[.*\] names all trained tensors of the model; must leave "
            r"some to send, and keep some; tensors: 0\.weight, .*$",
        ),
        (
            [rule("personal_layers"), rule("sgd")],
            {"weight": LAYOUT["0.weight"], "bias": LAYOUT["0.bias"]},
            r"^solver: personal_layers\.keep = 'head' names all trained tensors of .*: weight, bias$",
        ),
        (
            [rule("personal_layers", keep="body"), rule("sgd")],
            {"weight": LAYOUT["0.weight"], "bias": LAYOUT["0.bias"]},
            r"^solver: personal_layers\.keep = 'body' names no trained tensor of .*: weight, bias$",
        ),
        (
            [rule("scaffold"), rule("adam")],
            LAYOUT,
            r"^solver: scaffold takes a client's mean step .* under Adam; end the solver with 'sgd'.*$",
        ),
        (
            [rule("ditto"), rule("fedprox"), rule("ditto"), rule("sgd")],
            LAYOUT,
            r"^solver: two rules keep the slot 'ditto\.own'; each must have its own name$",
        ),
    ],
)
def test_rules_that_do_not_fit_the_model_or_each_other_are_refused_in_one_line(
    rules: list[LocalRule], layout: dict[str, Segment], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        build_chain(rules, layout)
    assert "\n" not in str(caught.value)


def test_a_tensor_that_is_never_trained_is_not_enough_to_keep() -> None:
    layout = {"mask": Segment(0, 2, (2,), trainable=False), "weight": Segment(2, 4, (2,))}
    with pytest.raises(ConfigurationError, match=r"keep = \['mask'\] names no trained tensor of the model"):
        build_chain([rule("personal_layers", keep=["mask"]), rule("sgd")], layout)


@pytest.mark.parametrize(
    ("kind", "settings", "complaint"),
    [
        ("apfl", {"alpha": 1.5}, "alpha"),
        ("apfl", {"alpha": -0.1}, "alpha"),
        ("ditto", {"pull": -0.1}, "pull"),
        ("ditto", {"learning_rate": -1}, "learning_rate"),
        ("personal_layers", {"keep": []}, "keep"),
        ("personal_layers", {"keep": "tail"}, "keep"),
        ("personal_layers", {"head_steps": 1.5}, "head_steps"),
        (
            "personal_layers",
            {"keep": ["0.weight"], "alternate": True},
            "needs keep = 'head' or 'body', not a list",
        ),
        ("scaffold", {"rate": 1}, "rate"),
    ],
)
def test_settings_of_personal_rules_out_of_range_or_unknown_are_refused(
    kind: str, settings: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        rule(kind, **settings)
