"""Contracts of models and of local rules; imports torch, unlike the other checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import SampleRanges, StateSpec, TrainTasks
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.flops import forward_flops
from executor.models.base import ModelSpec
from executor.models.masked import Masked
from executor.models.mlp import Mlp
from executor.parallel import one_thread
from executor.rules.base import Chain, LocalRule, LocalRun, build_chain
from executor.rules.fedprox import FedProx
from executor.rules.sgd import Sgd
from executor.training.dense import DenseStrategy
from executor.training.groups import Strategy, Wave
from executor.training.layers import Layers
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from experiments.contracts.generators import and_no_global_generator

Shape = tuple[int, ...]
Kind = type[ReferenceLoop] | type[StackedStrategy] | type[DenseStrategy]

SHAPES: tuple[Shape, ...] = ((1,), (6,), (3, 3), (8, 8), (3, 12, 10), (2, 3, 4, 5))
"""What a model is tried on besides the samples it is meant for: it takes them or refuses them."""

STREAMS = RandomStreams(9)
WIDTH = 5
STEPS = (3, 2, 1)
"""Local steps of each task that a rule is watched over."""

MODELS_AGREE, RULES_AGREE = 1e-4, 1e-9
"""How far two strategies may lie apart, in units of the largest number. Models are trained in single
precision, as in a run; rules in double, since a rule may divide one rounding error by another."""


@and_no_global_generator
@one_thread()
def check_model(make: Callable[[], ModelSpec], sample_shape: Shape = (8, 8), num_labels: int = 7) -> None:
    """Check a model on its own samples and on samples of other shapes.

    * It maps samples to finite float32 logits; it may refuse other shapes than its own, with a
      ConfigurationError of one line when it is built.
    * A sample's logits do not depend on the other samples of the batch; equal calls return equal logits; it
      writes neither to samples nor to parameters.
    * Initial parameters are a function of seed and number, and differ between seeds and between numbers.
    * Every trainable tensor has a finite gradient; a forward pass has matrix products or convolutions.
    * `stacks` and `dense` are bool; a dense model has `stacks = True` and is what `ModelSpec` defines as
      dense.
    * All strategies train it to the same parameters up to rounding.

    Args:
        make: Makes a fresh model.
        sample_shape: The shape of the samples that it is meant for.
        num_labels: The number of labels.

    Raises:
        AssertionError: The model breaks a rule, which the message names.
        ConfigurationError: The model refuses samples of `sample_shape`.
    """
    for shape in dict.fromkeys((sample_shape, *SHAPES)):
        try:
            with _named(f"samples of shape {shape}"):
                _check_logits(FlatModel(make(), shape, num_labels), shape)
        except ConfigurationError as refusal:
            if shape == sample_shape:
                raise
            refused = str(refusal)
        else:
            refused = ""
        assert "\n" not in refused, f"samples of shape {shape} are refused in more than one line: {refused}"
    spec = make()
    model = FlatModel(spec, sample_shape, num_labels)
    assert model.layout == FlatModel(make(), sample_shape, num_labels).layout, "it is built in two ways"
    _check_initial(model)
    _check_gradients(model, sample_shape)
    flops = forward_flops(spec, sample_shape, num_labels)
    assert flops > 0, "a forward pass without a matrix product or convolution: no time can be told from it"
    for name in ("stacks", "dense"):
        assert isinstance(getattr(spec, name), bool), f"{name} = {getattr(spec, name)!r}: True or False"
    if spec.dense:
        assert spec.stacks, "a dense model is trained fastest side by side: stacks must be True"
        _check_layers(model, sample_shape)
    for rules in ([_sgd()], [FedProx(FedProx.Settings()), _sgd(momentum=0.9)]):
        _check_strategies(model, sample_shape, spec.dense, build_chain(rules), torch.float32, MODELS_AGREE)


@and_no_global_generator
@one_thread()
def check_rule(make: Callable[[], LocalRule]) -> None:
    """Check a local rule on several tasks, together and alone, and on tasks that follow one another.

    * `correct` returns a finite number for each parameter, independently for each task, and writes only to
      the gradient and to the rule's own state.
    * That state has keys of the form "rule.name", is created in `begin` and written in place.
    * The state that `state` declares starts at zero, and later tasks depend on nothing else.
    * If `is_plain_descent`, the rule is an optimiser and returns the gradient times the learning rate.
    * All strategies train to the same parameters by it, up to rounding.

    Args:
        make: Makes a fresh rule.

    Raises:
        AssertionError: The rule breaks a rule of the contract, which the message names.
    """
    rule = make()
    assert isinstance(rule.is_optimiser, bool), f"is_optimiser = {rule.is_optimiser!r}: True or False"
    everyone = range(len(STEPS))
    together = _answers(rule, everyone, {})
    assert torch.equal(_answers(make(), everyone, {}), together), "equal tasks get different answers"
    for row in everyone:
        alone = _answers(make(), [row], {})
        assert torch.equal(alone[0], together[row]), "a task is treated otherwise than if it were alone"
    _check_remembered(make, together)
    if rule.is_plain_descent:
        assert rule.is_optimiser, "plain descent moves the parameters, which an optimiser alone does"
        plain = torch.zeros_like(together)
        for row in everyone:
            for step in range(STEPS[row]):
                plain[row, step] = _gradient(step)[row] * _settings([row])["learning_rate"]
        assert torch.equal(together, plain), (
            "it says it is plain descent, and does not answer with the gradient times the learning rate"
        )
    chain = build_chain([rule] if rule.is_optimiser else [rule, _sgd()])
    inner = {"kind": "mlp", "hidden": [5]}
    for spec in (
        Mlp(Mlp.Settings(hidden=(5,))),
        Masked(Masked.Settings.model_validate({"inner": inner})),
    ):
        _check_strategies(FlatModel(spec, (6,), 4), (6,), True, chain, torch.float64, RULES_AGREE)


# -- models --------------------------------------------------------------------------------------------------


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Within it, any error but a ConfigurationError becomes an AssertionError that starts with `what`."""
    try:
        yield
    except (ConfigurationError, AssertionError):
        raise
    except Exception as error:
        raise AssertionError(
            f"{what}: {type(error).__name__}: {error}; what a model cannot take it refuses with a "
            f"ConfigurationError when it is built"
        ) from error


def _check_logits(model: FlatModel, shape: Shape) -> None:
    features = torch.linspace(-1, 1, 4 * prod(shape)).reshape(4, *shape)
    flat = torch.tensor(model.initial(STREAMS, 0))
    shown = [features.clone(), flat.clone()]
    for serving in (False, True):
        logits = model.logits(model.named(flat), features, serving)
        wanted = (4, model.num_labels)
        assert tuple(logits.shape) == wanted, f"logits of shape {tuple(logits.shape)}, not {wanted}"
        assert logits.dtype == torch.float32, f"logits are {logits.dtype}, not torch.float32"
        assert torch.isfinite(logits).all(), "logits must be finite"
        assert torch.equal(features, shown[0]), "it writes to the samples"
        assert torch.equal(flat, shown[1]), "it writes to its parameters"
        again = model.logits(model.named(flat), features, serving)
        assert torch.equal(logits, again), "asked twice, it answers with other logits"
        alone = model.logits(model.named(flat), features[2:3], serving)
        assert _same_but_for_rounding(logits[2:3], alone), (
            "a sample's logits depend on the other samples of its batch"
        )


def _same_but_for_rounding(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1.3e-6, atol=1e-5)


def _check_initial(model: FlatModel) -> None:
    first = model.initial(RandomStreams(1), 0)
    assert first.shape == (model.num_parameters,)
    assert first.dtype == np.float32
    assert first.tobytes() == model.initial(RandomStreams(1), 0).tobytes(), "one seed, two initialisations"
    for other in (model.initial(RandomStreams(1), 1), model.initial(RandomStreams(2), 0)):
        assert first.tobytes() != other.tobytes(), "it starts alike whatever the seed and the number"


def _check_gradients(model: FlatModel, shape: Shape) -> None:
    named = model.named(torch.tensor(model.initial(STREAMS, 0)))
    trained = [name for name, segment in model.layout.items() if segment.trainable]
    assert trained, "no tensor of it is trained: all have requires_grad = False"
    wanted = [named[name].requires_grad_() for name in trained]
    reader = _Samples(shape, model.num_labels)
    rows = np.arange(8)
    with _named("a batch of 8 samples"):
        logits = model.logits(named, torch.from_numpy(reader.features(rows)))
    loss = functional.cross_entropy(logits, torch.from_numpy(reader.labels(rows)))
    for name, gradient in zip(trained, torch.autograd.grad(loss, wanted, allow_unused=True), strict=True):
        assert gradient is not None, f"no logit depends on {name}, which cannot be trained then"
        assert torch.isfinite(gradient).all(), f"the gradient of {name} must be finite"


def _check_layers(model: FlatModel, shape: Shape) -> None:
    """Check that a dense model is affine maps with ReLU between them, behind a mask if it has one."""
    flat = torch.tensor(np.stack([model.initial(STREAMS, number) for number in range(2)]))
    if "mask" in model.layout:
        flat[:, : prod(shape) : 3] = 0
    features = torch.from_numpy(_Samples(shape, model.num_labels).features(np.arange(5)))
    with _named("dense = True"):
        by_hand = Layers.of(model, flat).activations(features.flatten(1)[None])[-1]
        for row in range(len(flat)):
            logits = model.logits(model.named(flat[row]), features)
            assert _same_but_for_rounding(by_hand[row].T, logits), (
                "dense = True, and it is something else than affine maps with ReLU between them"
            )


# -- rules ---------------------------------------------------------------------------------------------------


def _answers(rule: LocalRule, rows: Sequence[int], state: dict[str, Tensor]) -> Tensor:
    """(n, steps, WIDTH) what the rule makes of the gradients of these tasks, as a strategy asks it; 0 where a
    task takes no more steps. `state`, from earlier tasks, is carried on in place."""
    received = _numbers(seed=0)[list(rows)]
    run = LocalRun(received.clone(), received.clone(), _settings(rows), dict(state))
    rule.begin(run)
    _check_begun(rule, run, state)
    made = torch.zeros(len(rows), max(STEPS), WIDTH)
    for step in range(max(STEPS[row] for row in rows)):
        active = [row for row in rows if STEPS[row] > step]
        run.keep_first(len(active))
        slots, present = dict(run.state), run.present.clone()
        answer = rule.correct(run, _gradient(step)[active])
        assert answer.shape == present.shape, (
            f"answers with shape {tuple(answer.shape)} to {tuple(present.shape)}"
        )
        assert answer.dtype == present.dtype, f"answers with {answer.dtype} to {present.dtype}"
        assert torch.isfinite(answer).all(), "answers must be finite where gradients are"
        assert torch.equal(run.received, received[: len(active)]), (
            "the received parameters are not its to change"
        )
        assert torch.equal(run.present, present), "the present parameters are not its to change: it answers"
        for name, column in _settings(active).items():
            assert torch.equal(run.settings[name], column), f"the setting {name} is not its to change"
        assert run.step == step, "steps are not its to count: run.step"
        assert run.state.keys() == slots.keys(), "state is made in begin, and never dropped"
        assert all(run.state[key] is slot for key, slot in slots.items()), "state is written in place"
        made[: len(active), step] = answer
        run.present.sub_(made[: len(active), step])
        run.step += 1
    return made


def _check_begun(rule: LocalRule, run: LocalRun, state: Mapping[str, Tensor]) -> None:
    """Check the state that a rule created in `begin`, and the state that it declares."""
    assert all(run.state[key] is slot for key, slot in state.items()), (
        "what was remembered is replaced in begin"
    )
    shapes = get_args(get_type_hints(StateSpec)["shape"])
    prefixes = set()
    for key in {*run.state, *rule.state}:
        assert re.fullmatch(r"\w+\.\w+", key), (
            f"state {key!r} is not named by the rule and a dot: 'rule.name'"
        )
        prefixes.add(key.partition(".")[0])
    assert len(prefixes) <= 1, f"its state is named after several rules: {sorted(prefixes)}"
    for key, slot in rule.state.items():
        assert slot.shape in shapes, f"state {key} is of shape {slot.shape!r}; choices: {shapes}"
        assert key in run.state, f"state {key} is declared, and not there when a task begins"
        width = WIDTH if slot.shape == "parameters" else 1
        found, wanted = tuple(run.state[key].shape), (len(run.present), width)
        assert found == wanted, f"state {key} has shape {found}, and was declared as {slot.shape}: {wanted}"


def _check_remembered(make: Callable[[], LocalRule], first: Tensor) -> None:
    """Check that the declared state starts at zero, and is all that a fresh rule needs to continue."""
    everyone = range(len(STEPS))
    rule = make()
    declared = rule.state
    kept = build_chain([rule] if rule.is_optimiser else [rule, _sgd()]).remembered(_numbers(seed=0), {})
    assert torch.equal(_answers(rule, everyone, kept), first), "what it remembers does not start at zero"
    copies = {key: rows.clone() for key, rows in kept.items()}
    later = _answers(rule, everyone, kept)
    afresh = _answers(make(), everyone, copies)
    assert torch.equal(later, afresh), "it remembers an earlier task otherwise than in the state it declares"
    if declared:
        assert not torch.equal(later, first), (
            f"what it declares to remember, {sorted(declared)}, changes nothing"
        )


def _settings(rows: Sequence[int]) -> dict[str, Tensor]:
    """The settings of these tasks, columns (n, 1)."""
    columns = {"learning_rate": [0.5, 0.25, 0.125], "local_steps": STEPS, "batch_size": [4, 4, 4]}
    return {name: torch.tensor(column)[list(rows), None].float() for name, column in columns.items()}


def _gradient(step: int) -> Tensor:
    return _numbers(seed=10 + step)


def _numbers(seed: int) -> Tensor:
    """(tasks, WIDTH) normal numbers, from a local generator."""
    return torch.randn(len(STEPS), WIDTH, generator=torch.Generator().manual_seed(seed))


def _sgd(momentum: float = 0.0) -> Sgd:
    return Sgd(Sgd.Settings(momentum=momentum))


# -- strategies ----------------------------------------------------------------------------------------------


class _Samples:
    """Implements `emulator.ports.SampleReader`: normal features and random labels."""

    def __init__(self, sample_shape: Shape, num_labels: int) -> None:
        generator = np.random.default_rng(5)
        self.sample_shape = sample_shape
        self.num_labels = num_labels
        self._features = generator.standard_normal((40, *sample_shape), dtype=np.float32)
        self._labels: Ints = generator.integers(0, num_labels, 40)

    def features(self, rows: Ints) -> Floats32:
        return self._features.take(rows, axis=0)

    def labels(self, rows: Ints) -> Ints:
        return self._labels.take(rows)


def _check_strategies(
    model: FlatModel, shape: Shape, dense: bool, chain: Chain, dtype: torch.dtype, tolerance: float
) -> None:
    kinds: list[Kind] = [StackedStrategy, *([DenseStrategy] if dense else [])]
    by_loop = _trained(ReferenceLoop, model, shape, chain, dtype)
    for kind in kinds:
        for ours, theirs in zip(_trained(kind, model, shape, chain, dtype), by_loop, strict=True):
            assert np.isfinite(theirs).all(), "training diverges"
            apart, largest = np.abs(ours - theirs).max(), np.abs(theirs).max()
            assert apart <= tolerance * largest, (
                f"{kind.__name__} trains otherwise than {ReferenceLoop.__name__}: {apart:.3g} apart, where "
                f"{largest:.3g} is the largest number"
            )


def _trained(kind: Kind, model: FlatModel, shape: Shape, chain: Chain, dtype: torch.dtype) -> list[Floats]:
    """The updates, losses and rule state of a few tasks, all from different initial parameters."""
    counts, steps = np.array([9, 3, 12, 7, 1]), np.array([4.0, 1.0, 6.0, 4.0, 2.0])
    last = np.cumsum(counts)
    everyone = np.arange(len(counts))
    tasks = TrainTasks(
        client=everyone,
        model=np.zeros_like(everyone),
        visit=everyone,
        samples=SampleRanges.one_each(last - counts, last),
        settings={
            "learning_rate": np.full(len(counts), 0.05),
            "local_steps": steps,
            "batch_size": np.array([4.0, 4.0, 4.0, 3.0, 3.0]),
        },
        round=2,
    )
    starts = np.stack([model.initial(STREAMS, number) for number in everyone.tolist()])
    if "mask" in model.layout:
        starts[:, : prod(shape) : 3] = 0
    strategy: Strategy = kind(model, chain)
    wave = Wave(tasks, starts, everyone, _Samples(shape, model.num_labels), STREAMS, dtype)
    found: list[list[Floats]] = []
    position: list[Ints] = []
    with _named(f"training by {kind.__name__}"):
        for members in wave.cut(1 if kind is ReferenceLoop else 3):
            group = wave.group(members)
            trained = strategy.train(group)
            moved = (trained.parameters - group.start).numpy()
            found.append([moved, trained.loss, *(rows.numpy() for _, rows in sorted(trained.state.items()))])
            position.append(group.tasks)
    order = np.argsort(np.concatenate(position))
    return [np.concatenate(parts)[order] for parts in zip(*found, strict=True)]
