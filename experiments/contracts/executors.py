"""Contracts of models, of local rules and of objectives; imports torch, unlike the other checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import LOSS_METRICS, SampleRanges, TrainTasks
from emulator.ports import Segment, Tokens
from emulator.seeding import RandomStreams
from executor.flat import FlatModel, Mode, inputs
from executor.flops import forward_flops
from executor.models.base import ModelSpec
from executor.models.masked import Masked
from executor.models.mlp import Mlp
from executor.objectives.base import Objective
from executor.objectives.labels import LABELS
from executor.objectives.next_token import NextToken
from executor.parallel import one_thread
from executor.probing import probed
from executor.rules.base import Beside, Chain, LocalRule, LocalRun, build_chain
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
"""The shapes of samples that a model is tried on besides its own: it must accept or refuse them."""

STREAMS = RandomStreams(9)
WIDTH = 5
STEPS = (3, 2, 1)
"""The local steps of each task on which a rule is checked."""

LAYOUT = {"0.weight": Segment(0, 2, (2,)), "1.weight": Segment(2, WIDTH, (WIDTH - 2,))}
"""The model of two layers on which a rule is checked."""

MODELS_AGREE, RULES_AGREE = 1e-4, 1e-9
"""How much two strategies may differ, relative to the largest number.

Models are trained in single precision, as in a run; rules in double, since a rule may divide one rounding
error by another.
"""


@and_no_global_generator
@one_thread()
def check_model(make: Callable[[], ModelSpec], sample_shape: Shape = (8, 8), num_labels: int = 7) -> None:
    """Check a model on its own samples and on samples of other shapes.

    One that tells the next token is given token ids, and `num_labels` is the size of the vocabulary.

    * It maps samples to finite float32 logits; it may refuse other shapes than its own, with a
      ConfigurationError of one line when it is built.
    * A sample's logits do not depend on the other samples of the batch; equal calls return equal logits; it
      writes neither to samples nor to parameters.
    * Initial parameters are a function of seed and number, and differ between seeds and between numbers.
    * Every trainable tensor has a finite gradient; a forward pass has matrix products or convolutions.
    * `stacks` is bool or None, `dense` bool; a dense model has `stacks = True` and is what `ModelSpec`
      defines as dense.
    * All strategies train it to the same parameters and metrics up to rounding.

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
                _check_logits(_flat(make(), shape, num_labels), shape)
        except ConfigurationError as refusal:
            if shape == sample_shape:
                raise
            refused = str(refusal)
        else:
            refused = ""
        assert "\n" not in refused, f"samples of shape {shape} are refused in more than one line: {refused}"
    spec = make()
    model = _flat(spec, sample_shape, num_labels)
    assert model.layout == _flat(make(), sample_shape, num_labels).layout, (
        "two fresh models of the same settings have different tensors"
    )
    _check_initial(model)
    _check_gradients(model, sample_shape)
    flops = forward_flops(spec, sample_shape, num_labels, model.integers)
    assert flops > 0, (
        "a forward pass without a matrix product or convolution: its duration cannot be estimated"
    )
    assert isinstance(spec.dense, bool), f"dense = {spec.dense!r}: must be bool"
    assert isinstance(spec.stacks, bool | None), f"stacks = {spec.stacks!r}: must be bool, or None"
    try:
        known = probed(model, STREAMS)
    except ConfigurationError as refusal:
        raise AssertionError(str(refusal)) from refusal
    if model.dense:
        assert spec.stacks, "a dense model trains fastest in one batched step: stacks must be True"
        _check_layers(model, sample_shape)
    for rules in ([_sgd()], [FedProx(FedProx.Settings()), _sgd(momentum=0.9)]):
        chain = build_chain(rules, model.layout)
        kinds: list[Kind] = [] if known.unstackable else [StackedStrategy]
        kinds += [DenseStrategy] if model.dense else []
        _check_strategies(kinds, model, sample_shape, chain, torch.float32, MODELS_AGREE)


@and_no_global_generator
@one_thread()
def check_rule(make: Callable[[], LocalRule]) -> None:
    """Check a local rule on several tasks, together and alone, and on tasks that follow one another.

    * `correct` returns a finite number for each parameter, independently for each task, and writes only to
      the gradient, to `still` and to the rule's own state.
    * That state has keys of the form "rule.name", is created in `begin` and written in place.
    * Later tasks depend on the slots that `state` declares, and on nothing else.
    * `after_step` takes the `gradients` that the rule declares, and changes no present parameters.
    * `personal` is pure, and finite; what is `unsent` is as received after `finish`.
    * If `is_plain_descent`, the rule is an optimiser and returns the gradient times the learning rate; if it
      declares `changes_steps = False`, the gradient itself.
    * If it `stops_early`, it has a share held out, and decides about each task independently.
    * All strategies train to the same parameters, state and metrics by it, up to rounding.

    Args:
        make: Makes a fresh rule.

    Raises:
        AssertionError: The rule breaks a rule of the contract, which the message names.
    """
    is_optimiser = make().is_optimiser
    assert isinstance(is_optimiser, bool), f"is_optimiser = {is_optimiser!r}: must be bool"
    rule = _checked(make)
    everyone = range(len(STEPS))
    together = _outcome(rule, everyone, {})
    assert _same(_outcome(_checked(make), everyone, {}), together), "equal tasks get different corrections"
    for row in everyone:
        alone = _outcome(_checked(make), [row], {})
        assert _same(alone, [column[[row]] for column in together]), (
            "a task's corrections depend on the other tasks"
        )
    _check_remembered(make, together)
    if rule.is_plain_descent:
        assert rule.is_optimiser, "is_plain_descent = True: must be an optimiser"
        assert torch.equal(together[0], _gradients(descends=True)), (
            "it declares plain descent, but does not return the gradient times the learning rate"
        )
    if not rule.changes_steps:
        assert torch.equal(together[0], _gradients()), "it declares changes_steps = False, but changes them"
    _check_stopping(rule)
    inner = {"kind": "mlp", "hidden": [5]}
    for spec in (
        Mlp(Mlp.Settings(hidden=(5,))),
        Masked(Masked.Settings.model_validate({"inner": inner})),
    ):
        model = FlatModel(spec, (6,), 4)
        rule = make()
        chain = build_chain([rule] if rule.is_optimiser else [rule, _sgd()], model.layout)
        kinds: list[Kind] = [StackedStrategy, DenseStrategy]
        _check_strategies(kinds, model, (6,), chain, torch.float64, RULES_AGREE)


# -- models --------------------------------------------------------------------------------------------------


def check_objective(make: Callable[[], Objective]) -> None:
    """Check an objective on samples that have labels, tokens and targets.

    Args:
        make: makes a fresh objective.

    Raises:
        AssertionError: a loss or a hit is not one number a sample, hits are outside [0, 1], a loss is not
            finite or has no slope, or a sample's numbers depend on the others of its batch.
    """
    objective, reader = make(), _Samples((6,), WIDTH, tokens=True)
    assert objective.word.strip(), "word must say what hits are called"
    shape = objective.output_shape(reader.sample_shape, objective.num_outputs(reader))
    rows = np.arange(40)
    targets = objective.targets(reader, rows)
    outputs = torch.randn(len(rows), *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs.requires_grad_()
    for name in ("losses", "hits", "errors"):
        of = getattr(objective, name)
        values = of(outputs, targets)
        assert values.shape == rows.shape, f"{name} must have shape {rows.shape}, not {tuple(values.shape)}"
        assert values.isfinite().all(), f"{name} must be finite"
        assert name == "losses" or ((values >= 0) & (values <= 1)).all(), f"{name} must be in [0, 1]"
        alone = torch.cat([of(outputs[row : row + 1], targets[row : row + 1]) for row in rows])
        assert torch.allclose(alone, values), f"{name} of a sample depend on the others of its batch"
    [slope] = torch.autograd.grad(objective.loss(outputs, targets), outputs)
    assert slope.isfinite().all(), "the slope of the loss must be finite"
    assert (slope != 0).any(), "the loss does not depend on the outputs"
    again = objective.outputs_of(objective.predicted(outputs))
    same = torch.allclose(objective.losses(again, targets), objective.losses(outputs, targets))
    assert same, "outputs_of must undo predicted"


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Within it, any error but a ConfigurationError becomes an AssertionError that starts with `what`."""
    try:
        yield
    except (ConfigurationError, AssertionError):
        raise
    except Exception as error:
        raise AssertionError(
            f"{what}: {type(error).__name__}: {error}; a model must refuse samples that it cannot take with "
            f"a ConfigurationError when it is built"
        ) from error


def _flat(spec: ModelSpec, shape: Shape, num_labels: int) -> FlatModel:
    """The model with the objective of what it tells: labels, or the next token."""
    tokens = spec.tells_next_token
    objective: Objective = NextToken(NextToken.Settings()) if tokens else LABELS
    return FlatModel(spec, shape, num_labels, integers=tokens, objective=objective)


def _check_logits(model: FlatModel, shape: Shape) -> None:
    assert model.trainable, "no tensor is trainable: all have requires_grad = False"
    features = torch.linspace(-1, 1, 4 * prod(shape)).reshape(4, *shape)
    if model.integers:
        features = torch.arange(4 * prod(shape)).reshape(4, *shape) % model.num_outputs
    flat = torch.tensor(model.initial(STREAMS, 0))
    features_before, flat_before = features.clone(), flat.clone()
    modes: tuple[Mode, ...] = ("scoring", "serving")
    for mode in modes:
        logits = model.logits(model.named(flat), features, mode)
        expected = (4, *model.objective.output_shape(shape, model.num_outputs))
        assert tuple(logits.shape) == expected, f"logits of shape {tuple(logits.shape)}, not {expected}"
        assert logits.dtype == torch.float32, f"logits are {logits.dtype}, not torch.float32"
        assert torch.isfinite(logits).all(), "logits must be finite"
        assert torch.equal(features, features_before), "it writes to the samples"
        assert torch.equal(flat, flat_before), "it writes to its parameters"
        again = model.logits(model.named(flat), features, mode)
        assert torch.equal(logits, again), "two equal calls return different logits"
        alone = model.logits(model.named(flat), features[2:3], mode)
        assert _same_but_for_rounding(logits[2:3], alone), (
            "a sample's logits depend on the other samples of its batch"
        )


def _same_but_for_rounding(left: Tensor, right: Tensor) -> bool:
    return torch.allclose(left, right, rtol=1.3e-6, atol=1e-5)


def _check_initial(model: FlatModel) -> None:
    first = model.initial(RandomStreams(1), 0)
    assert first.shape == (model.num_parameters,)
    assert first.dtype == np.float32
    assert first.tobytes() == model.initial(RandomStreams(1), 0).tobytes(), (
        "two initialisations of the same seed and number differ"
    )
    for second in (model.initial(RandomStreams(1), 1), model.initial(RandomStreams(2), 0)):
        assert first.tobytes() != second.tobytes(), "initial parameters do not depend on seed and number"


def _check_gradients(model: FlatModel, shape: Shape) -> None:
    named = model.named(torch.tensor(model.initial(STREAMS, 0)))
    trained = [name for name, segment in model.layout.items() if segment.trainable]
    tensors = [named[name].requires_grad_() for name in trained]
    reader = _Samples(shape, model.num_outputs, tokens=model.integers)
    rows = np.arange(8)
    with _named("a batch of 8 samples"):
        logits = model.logits(named, inputs(reader, rows), "scoring")
    loss = model.objective.loss(logits, model.objective.targets(reader, rows))
    for name, gradient in zip(trained, torch.autograd.grad(loss, tensors, allow_unused=True), strict=True):
        assert gradient is not None, f"no logit depends on {name}, so it cannot be trained"
        assert torch.isfinite(gradient).all(), f"the gradient of {name} must be finite"


def _check_layers(model: FlatModel, shape: Shape) -> None:
    """Check that a dense model is affine maps with ReLU between them, behind a mask if it has one."""
    flat = torch.tensor(np.stack([model.initial(STREAMS, number) for number in range(2)]))
    if "mask" in model.layout:
        flat[:, : prod(shape) : 3] = 0
    features = torch.from_numpy(
        _Samples(shape, model.num_outputs, tokens=model.integers).features(np.arange(5))
    )
    with _named("dense = True"):
        by_hand = Layers.of(model, flat).activations(features.flatten(1)[None])[-1]
        for row in range(len(flat)):
            logits = model.logits(model.named(flat[row]), features)
            assert _same_but_for_rounding(by_hand[row].T, logits), (
                "dense = True, but it is not a sequence of affine maps with ReLU between them"
            )


# -- rules ---------------------------------------------------------------------------------------------------


def _checked(make: Callable[[], LocalRule]) -> LocalRule:
    """A fresh rule, which has seen the model of two layers that it is checked on."""
    rule = make()
    build_chain([rule] if rule.is_optimiser else [rule, _sgd()], LAYOUT)
    return rule


def _same(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return all(torch.equal(column, other) for column, other in zip(ours, theirs, strict=True))


def _outcome(rule: LocalRule, rows: Sequence[int], earlier: Mapping[str, Tensor]) -> list[Tensor]:
    """What comes of the tasks `rows` (n of them), by a rule that is called as a strategy calls it.

    That is (n, steps, WIDTH) the results of `correct`, 0 after a task's last step; the parameters in the end;
    the declared slots; and the personal parameters. `earlier` are slots that earlier tasks left.
    """
    received = _numbers(seed=0)[list(rows)]
    broadcast = {name: _numbers(seed=20)[list(rows)] for name in rule.receives}
    steps = torch.tensor([[float(STEPS[row])] for row in rows])
    chain = build_chain([rule] if rule.is_optimiser else [rule, _sgd()], LAYOUT)
    declared = chain.remembered(received, {name: earlier[name] for name in rule.state if name in earlier})
    declared = {name: declared[name] for name in rule.state}

    start = received.clone()

    def whole(present: Tensor) -> LocalRun:
        state = dict(declared)
        return LocalRun(start, present, _settings(rows), state, None, dict(broadcast), steps)

    all_present = received.clone()
    run = whole(all_present)
    rule.begin(run)
    started = start.clone()
    _check_begun(rule, run, declared)
    corrections = torch.zeros(len(rows), max(STEPS), WIDTH)
    for step in range(max(STEPS[row] for row in rows)):
        active = [row for row in rows if STEPS[row] > step]
        run.keep_first(len(active))
        slots, present = dict(run.state), run.present.clone()
        corrected = rule.correct(run, _gradient(step)[active])
        assert corrected.shape == present.shape, (
            f"correct returns shape {tuple(corrected.shape)} for {tuple(present.shape)}"
        )
        assert corrected.dtype == present.dtype, f"correct returns {corrected.dtype} for {present.dtype}"
        assert torch.isfinite(corrected).all(), "what correct returns must be finite where gradients are"
        _check_untouched(run, rows=active, step=step, received=started, present=present)
        assert run.state.keys() == slots.keys(), "state must be created in begin, and never dropped"
        assert all(run.state[key] is slot for key, slot in slots.items()), "state must be written in place"
        corrections[: len(active), step] = corrected
        run.present.sub_(corrections[: len(active), step])
        run.step += 1
        _check_after_step(rule, run)
    ended = whole(all_present)
    rule.finish(ended)
    assert torch.equal(ended.received, started), "finish must not change the received parameters"
    for segment in rule.unsent(LAYOUT):
        kept = slice(segment.first, segment.last)
        assert torch.equal(all_present[:, kept], start[:, kept]), (
            "what stays with the client must be as received after finish, so that its update is zero"
        )
    served = _numbers(seed=30)[list(rows)]
    before = {name: slot.clone() for name, slot in declared.items()}
    own = rule.personal(served.clone(), declared) if rule.is_personal else served
    assert own.shape == served.shape, f"personal returns shape {tuple(own.shape)} for {tuple(served.shape)}"
    assert all(torch.equal(declared[name], slot) for name, slot in before.items()), (
        "personal must be a pure function, and writes into its slots"
    )
    assert torch.isfinite(own).all(), "personal parameters must be finite"
    assert torch.equal(own, rule.personal(served.clone(), declared)), "personal must be a pure function"
    return [corrections, all_present, *(declared[name] for name in sorted(declared)), own]


def _gradients(*, descends: bool = False) -> Tensor:
    """(tasks, steps, WIDTH) the tasks' gradients, 0 after the last; times the rate if one `descends`."""
    gradients = torch.zeros(len(STEPS), max(STEPS), WIDTH)
    for row, steps in enumerate(STEPS):
        for step in range(steps):
            rate = _settings([row])["learning_rate"] if descends else 1.0
            gradients[row, step] = _gradient(step)[row] * rate
    return gradients


def _check_stopping(rule: LocalRule) -> None:
    """Check what a rule holds out, and how it decides which tasks stop."""
    if not rule.stops_early:
        return
    assert 0 < rule.held_out < 1, f"held_out = {rule.held_out}: must be above 0 and below 1"
    after = torch.tensor([4.0, 1.0, torch.nan, 9.0], dtype=torch.float64)
    before = torch.tensor([4.1, 2.0, 3.0, torch.inf if not rule.measures_first else 9.5], dtype=torch.float64)
    samples = torch.tensor([3, 1, 2, 7])
    given = [column.clone() for column in (before, after, samples)]
    for epoch in (1, 2):
        stops = rule.stops(epoch, before, after, samples)
        assert stops.dtype == torch.bool, f"stops returns {stops.dtype}, not torch.bool"
        assert stops.shape == (4,), f"stops returns shape {tuple(stops.shape)} for 4 tasks"
        alone = [rule.stops(epoch, *(column[[row]] for column in given)) for row in range(4)]
        assert torch.equal(torch.cat(alone), stops), "whether a task stops depends on the other tasks"
        assert bool(stops[2]), "a task whose held-out loss is not a number must stop"
    for column, as_given in zip((before, after, samples), given, strict=True):
        assert torch.equal(column.nan_to_num(), as_given.nan_to_num()), (
            "stops must not write to its arguments"
        )


def _check_after_step(rule: LocalRule, run: LocalRun) -> None:
    """Check that a rule takes the gradients that it declares after a step, and moves no present parameter."""
    taken, present = 0, run.present.clone()

    def gradient_at(parameters: Tensor, beside: Beside = None) -> Tensor:
        nonlocal taken
        taken += 1
        assert parameters.shape == present.shape, "the gradient is taken at (n, P) parameters"
        return (
            parameters.sin() if beside is None else beside[1] * torch.lerp(beside[0], parameters, beside[1])
        )

    rule.after_step(run, gradient_at)
    assert torch.equal(run.present, present), "after_step must not change the present parameters"
    assert taken <= rule.gradients, f"after_step takes {taken} gradients; it declares {rule.gradients}"


def _check_untouched(
    run: LocalRun, *, rows: Sequence[int], step: int, received: Tensor, present: Tensor
) -> None:
    """Check that `correct` changed nothing in `run` but the state."""
    assert torch.equal(run.received, received[: len(rows)]), "it must not change the received parameters"
    assert torch.equal(run.present, present), "it must not change the present parameters, but return a step"
    for name, column in _settings(rows).items():
        assert torch.equal(run.settings[name], column), f"it must not change the setting {name}"
    assert run.step == step, "it must not change run.step"


def _check_begun(rule: LocalRule, run: LocalRun, state: Mapping[str, Tensor]) -> None:
    """Check the state that a rule created in `begin`, and the state that it declares."""
    assert all(run.state[key] is slot for key, slot in state.items()), (
        "state from an earlier task is replaced in begin"
    )
    prefixes = set()
    for key in {*run.state, *rule.state}:
        assert re.fullmatch(r"\w+\.\w+", key), (
            f"state {key!r} is not named after the rule: must have the form 'rule.name'"
        )
        prefixes.add(key.partition(".")[0])
    assert len(prefixes) <= 1, f"keys of its state name several rules: {sorted(prefixes)}"


def _check_remembered(make: Callable[[], LocalRule], first: Sequence[Tensor]) -> None:
    """Check that a fresh rule can continue from the declared slots alone, and that these matter."""
    everyone = range(len(STEPS))
    rule = _checked(make)
    slots = sorted(rule.state)
    _outcome(rule, everyone, {})
    state = dict(zip(slots, first[2:], strict=False))
    later = _outcome(rule, everyone, {name: rows.clone() for name, rows in state.items()})
    afresh = _outcome(_checked(make), everyone, {name: rows.clone() for name, rows in state.items()})
    assert _same(later, afresh), "it remembers earlier tasks outside the state that it declares"
    if slots:
        assert not _same(later, first), f"the declared state {slots} changes nothing"


def _settings(rows: Sequence[int]) -> dict[str, Tensor]:
    """The settings of the tasks `rows`, columns (n, 1)."""
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
    """Implements `emulator.ports.SampleReader`: normal features, or tokens, random labels, and targets.

    Targets, beside labels, are those of samples that have some of three things, and not the others.
    """

    num_targets = 3

    def __init__(self, sample_shape: Shape, num_labels: int, *, tokens: bool) -> None:
        generator = np.random.default_rng(5)
        self.sample_shape = sample_shape
        self.num_labels = num_labels
        self.tokens = Tokens(num_labels) if tokens else None
        self._features = generator.standard_normal((40, *sample_shape), dtype=np.float32)
        if tokens:
            ids = generator.integers(0, num_labels, (40, *sample_shape))
            self._features = ids.astype(np.float32)
        self._labels: Ints = generator.integers(0, num_labels, 40)

    def features(self, rows: Ints) -> Floats32:
        return self._features.take(rows, axis=0)

    def labels(self, rows: Ints) -> Ints:
        return self._labels.take(rows)

    def targets(self, rows: Ints) -> Floats32:
        return (rows[:, None] >> np.arange(self.num_targets) & 1).astype(np.float32)

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 0 * rows], axis=1)

    def reference_rows(self, per_label: int) -> Ints:
        of_label = [np.flatnonzero(self._labels == label)[:per_label] for label in range(self.num_labels)]
        return np.sort(np.concatenate(of_label))


def _check_strategies(
    kinds: Sequence[Kind], model: FlatModel, shape: Shape, chain: Chain, dtype: torch.dtype, tolerance: float
) -> None:
    by_loop = _trained(ReferenceLoop, model, shape, chain, dtype)
    for kind in kinds:
        for column, reference in zip(_trained(kind, model, shape, chain, dtype), by_loop, strict=True):
            assert np.isfinite(reference).all(), "training diverges"
            difference, largest = np.abs(column - reference).max(), np.abs(reference).max()
            assert difference <= tolerance * largest, (
                f"{kind.__name__} and {ReferenceLoop.__name__} differ by {difference:.3g}; must be at most "
                f"{tolerance:g} of the largest number, {largest:.3g}"
            )


def _trained(kind: Kind, model: FlatModel, shape: Shape, chain: Chain, dtype: torch.dtype) -> list[Floats]:
    """The updates, metrics and rule state of a few tasks, all from different initial parameters."""
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
        dispatch=np.full_like(everyone, 2),
        step=np.zeros_like(everyone),
        measure=LOSS_METRICS,
    )
    starts = np.stack([model.initial(STREAMS, number) for number in everyone.tolist()])
    if "mask" in model.layout:
        starts[:, : prod(shape) : 3] = 0
    size = starts.shape[1] - model.num_statistics
    along = dict.fromkeys(chain.facts.receives, 0.1 * starts[::-1, :size])
    strategy: Strategy = kind(model, chain)
    tasks = replace(tasks, broadcast=along)
    reader = _Samples(shape, model.num_outputs, tokens=model.integers)
    wave = Wave(
        tasks, starts, everyone, reader, STREAMS, dtype, chain=chain, draws=True, objective=model.objective
    )
    columns: list[list[Floats]] = []
    position: list[Ints] = []
    with _named(f"training by {kind.__name__}"):
        for members in wave.cut(1 if kind is ReferenceLoop else 3):
            group = wave.group(members)
            trained = strategy.train(group)
            update = (trained.parameters - group.start).numpy()
            state = [rows.numpy() for _, rows in sorted(trained.state.items())]
            metrics = [trained.loss, *(trained.measured[name] for name in sorted(LOSS_METRICS))]
            metrics = [of_batch for column in metrics for of_batch in _padded(column, int(steps.max()))]
            columns.append([update, *metrics, *state])
            position.append(group.tasks)
    order = np.argsort(np.concatenate(position))
    return [np.concatenate(parts)[order] for parts in zip(*columns, strict=True)]


def _padded(column: Floats, steps: int) -> list[Floats]:
    """A metric (n,), or one of batches as a column (n,) for each of so many steps; NaN as 0."""
    if column.ndim == 1:
        return [column]
    behind = np.zeros((len(column), steps - column.shape[1]))
    return list(np.nan_to_num(np.hstack([column, behind])).T)
