"""Fake samples and small waves of tasks, with executors that train on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import nn

from emulator.arrays import Floats32, Ints
from emulator.messages import SampleRanges, TrainTasks
from emulator.ports import Tokens
from emulator.seeding import RandomStreams
from executor.executor import LocalExecutor
from executor.models import MODELS
from executor.models.base import ModelSpec
from executor.models.module import as_model
from executor.objectives import OBJECTIVES
from executor.objectives.base import Objective
from executor.objectives.labels import LABELS
from executor.rules import RULES
from executor.rules.base import LocalRule
from executor.settings import ExecutorSettings


@dataclass
class FakeReader:
    """Gaussian features, or tokens of a `vocabulary`, and random labels; `rows` samples of `sample_shape`.

    With `num_targets` samples have targets of 0 and 1 beside their label; token 0 is padding.
    """

    rows: int = 400
    sample_shape: tuple[int, ...] = (6,)
    num_labels: int = 4
    vocabulary: int = 0
    num_targets: int = 0
    x: Floats32 = field(init=False)
    y: Ints = field(init=False)
    beside: Floats32 = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(5)
        shape = (self.rows, *self.sample_shape)
        self.x = (
            rng.integers(0, self.vocabulary, shape) if self.vocabulary else rng.standard_normal(shape)
        ).astype(np.float32)
        self.y = rng.integers(0, self.num_labels, self.rows)
        self.beside = rng.integers(0, 2, (self.rows, self.num_targets)).astype(np.float32)

    @property
    def tokens(self) -> Tokens | None:
        return Tokens(self.vocabulary, padding=0) if self.vocabulary else None

    def targets(self, rows: Ints) -> Floats32:
        return self.beside.take(rows, axis=0)

    def features(self, rows: Ints) -> Floats32:
        return self.x.take(rows, axis=0)

    def labels(self, rows: Ints) -> Ints:
        return self.y.take(rows)

    def sample_keys(self, rows: Ints) -> Ints:
        return np.stack([rows, 0 * rows], axis=1)


def wave(
    counts: Sequence[int],
    steps: Sequence[int],
    batch_size: Sequence[int] | int = 4,
    learning_rate: Sequence[float] | float = 0.1,
    round_: int = 2,
) -> TrainTasks:
    """A task per client, whose samples follow one another in the table."""
    n = len(counts)
    last = np.cumsum(np.array(counts, dtype=np.int64))
    return TrainTasks(
        client=np.arange(n),
        model=np.zeros(n, dtype=np.int64),
        visit=np.arange(n),
        samples=SampleRanges.one_each(last - np.array(counts, dtype=np.int64), last),
        settings={
            "learning_rate": np.broadcast_to(np.array(learning_rate, dtype=np.float64), n),
            "local_steps": np.array(steps, dtype=np.float64),
            "batch_size": np.broadcast_to(np.array(batch_size, dtype=np.float64), n),
        },
        dispatch=np.full(n, round_),
        step=np.zeros(n, dtype=np.int64),
    )


class Ready(ModelSpec):
    """A model of the layers that the given functions make."""

    stacks = True

    def __init__(self, *layers: Callable[[], nn.Module]) -> None:
        self.layers = layers

    def build(self, sample_shape: tuple[int, ...], num_labels: int) -> nn.Module:
        return nn.Sequential(*(layer() for layer in self.layers))


def model(kind: str, **settings: object) -> ModelSpec:
    spec = MODELS.find(kind)
    return spec(spec.Settings(**settings))


def module(make: Callable[..., nn.Module], **arguments: object) -> ModelSpec:
    """The model that a torch module, or a function that returns one, is with these arguments."""
    spec = as_model(make, f"{make.__module__}:{make.__name__}", "model")
    built: ModelSpec = spec(spec.Settings(**arguments))
    return built


def rule(kind: str, **settings: object) -> LocalRule:
    part = RULES.find(kind)
    return part(part.Settings(**settings))


def objective(kind: str, **settings: object) -> Objective:
    part = OBJECTIVES.find(kind)
    return part(part.Settings(**settings))


def executor(
    reader: FakeReader,
    spec: ModelSpec | None = None,
    rules: Sequence[LocalRule] = (),
    seed: int = 3,
    scored_by: Objective = LABELS,
    **settings: object,
) -> LocalExecutor:
    return LocalExecutor(
        reader,
        spec or model("linear"),
        rules or [rule("sgd")],
        RandomStreams(seed),
        ExecutorSettings.model_validate(settings),
        objective=scored_by,
    )


def of_probabilities(*rows: list[float]) -> Floats32:
    """(m, P) a linear model of one feature per row, which predicts these probabilities for every sample."""
    return np.array([[0.0] * len(row) + np.log(row).tolist() for row in rows], dtype=np.float32)


def requests(*spans: tuple[int, int]) -> SampleRanges:
    """A request for each span [first, last) of the table."""
    first, last = np.array(spans, dtype=np.int64).T
    return SampleRanges.one_each(first, last)


def labelled(labels: list[int], num_labels: int) -> LocalExecutor:
    """An executor of linear models on samples of one feature with these `labels`."""
    reader = FakeReader(rows=len(labels), sample_shape=(1,), num_labels=num_labels)
    reader.y = np.array(labels)
    return executor(reader)
