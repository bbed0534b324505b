"""When training stops, on losses that are set by hand, and that stopping changes nothing but the epochs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from emulator.arrays import Bools, Floats, Ints
from emulator.counts import LastBatch
from emulator.messages import TASK_METRICS, SampleRanges, TrainTasks
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.inference.prediction import Predictor
from executor.rules.base import Chain, LocalRule, build_chain
from executor.training.dense import DenseStrategy
from executor.training.epochs import Epochs
from executor.training.groups import Trained, Wave
from executor.training.held_out import HeldOut, HeldOutLosses
from executor.training.reference import ReferenceLoop
from tests.executor.fakes import FakeReader, model, rule, wave

STREAMS = RandomStreams(8)
READER = FakeReader(rows=64)
EVERY = set(TASK_METRICS) - {"step_norm"}  # which no strategy measures
Kind = type[ReferenceLoop] | type[DenseStrategy]
MODEL = FlatModel(model("linear"), READER.sample_shape, READER.num_labels)


class HeldOutHalf(HeldOut):
    """Holds out the first half of a client's samples, rounded down."""

    def __init__(self) -> None:
        super().__init__(0.5, READER, STREAMS)

    def split(self, samples: SampleRanges) -> list[Bools]:
        return [np.arange(count) < count // 2 for count in samples.counts().tolist()]


class Scripted(HeldOutLosses):
    """Sums of losses by a script for each client, of which it has `span` rows of the table; and who asked."""

    def __init__(self, scripts: Mapping[int, Sequence[float]], span: int = 8) -> None:
        super().__init__(Predictor(READER, MODEL, dense=True))
        self._scripts: dict[int, Iterator[float]] = {task: iter(of) for task, of in scripts.items()}
        self._span = span
        self.asked: list[list[int]] = []

    def sums(self, parameters: Tensor, models: Ints, rows: Sequence[Ints]) -> Tensor:
        assert len(models) == len(rows)
        tasks = [int(of_model[0]) // self._span for of_model in rows]
        self.asked.append(sorted(tasks))
        return torch.tensor([next(self._scripts[task]) for task in tasks], dtype=torch.float64)


class Falling(HeldOutLosses):
    """Losses that fall by 1 with every look, so that nobody stops early."""

    def __init__(self) -> None:
        super().__init__(Predictor(READER, MODEL, dense=True))
        self._looks = 0

    def sums(self, parameters: Tensor, models: Ints, rows: Sequence[Ints]) -> Tensor:
        self._looks += 1
        return torch.full((len(models),), 1000.0 - self._looks, dtype=torch.float64) * 10


def wave_of(tasks: TrainTasks, chain: Chain, last: LastBatch, held_out: HeldOut | None) -> Wave:
    """The wave in double precision, from models that differ, with what is sent along, if it is received."""
    starts = np.stack([MODEL.initial(STREAMS, number) for number in range(len(tasks))])
    along = dict.fromkeys(chain.facts.receives, 0.1 * starts[::-1])
    sent = replace(tasks, broadcast=along, measure=frozenset(EVERY))
    how: Any = (torch.float64, "reshuffled", chain, last, held_out)
    return Wave(sent, starts, np.arange(len(tasks)), READER, STREAMS, *how)


def by_task(members: Ints, of: Trained, start: Tensor) -> dict[str, Floats]:
    """The update, loss, state and measurements, by name, with the tasks in their own order."""
    columns = {"delta": (of.parameters - start).numpy(), "loss": of.loss}
    columns |= {name: rows.numpy() for name, rows in of.state.items()}
    columns |= dict(of.measured)
    return {name: column[np.argsort(members)] for name, column in columns.items()}


def stopped(
    tasks: TrainTasks,
    epochs: Sequence[int],
    losses: HeldOutLosses,
    rules: Sequence[LocalRule] = (),
    kind: Kind = DenseStrategy,
    last: LastBatch = "filled",
    **settings: Any,
) -> dict[str, Floats]:
    """What training of at most so many `epochs` of each task gives, as one group."""
    chain = build_chain([rule("early_stopping", **settings), *(rules or [rule("sgd")])], MODEL.layout)
    most = np.array(epochs, dtype=np.float64)
    tasks = replace(tasks, settings={**tasks.settings, "local_epochs": most})
    whole = wave_of(tasks, chain, last, HeldOutHalf())
    (members,) = whole.cut(len(tasks))
    of = Epochs(chain, kind(MODEL, chain), losses).train(whole, members)
    more = {"steps": of.steps, **of.metrics}
    return by_task(members, of.trained, of.start) | {
        name: np.asarray(column)[np.argsort(members)] for name, column in more.items()
    }


def plainly(
    tasks: TrainTasks, rules: Sequence[LocalRule], kind: Kind = DenseStrategy, last: LastBatch = "filled"
) -> dict[str, Floats]:
    """What training of the tasks' local steps gives, on the samples that are not held out."""
    held = tasks.samples.counts() // 2
    samples = SampleRanges.one_each(tasks.samples.first + held, tasks.samples.last)
    chain = build_chain(rules, MODEL.layout)
    whole = wave_of(replace(tasks, samples=samples), chain, last, None)
    (members,) = whole.cut(len(tasks))
    group = whole.group(members)
    return by_task(members, kind(MODEL, chain).train(group), group.start)


FOUR = wave(counts=[8, 8, 1, 0], steps=[1, 1, 1, 1], batch_size=3)
"""Tasks that hold out 4, 4, 0 and 0 samples and train on 4, 4, 1 and 0, so 2, 2, 1 and 0 steps an epoch."""

# With gamma = 0.3 the first task gains 0.4 >= 0.3 per sample, then 0.14 < 0.3 / 2, and stops after 2 epochs;
# the second one gains 0.5 >= 0.3, 0.2 >= 0.15 and 0.2 >= 0.1, and ends with the last of its 4 epochs.
SUMS = {0: [8.0, 6.4, 5.84], 1: [8.0, 6.0, 5.2, 4.4]}


@pytest.mark.parametrize("of", ["mean", "sum"])
@pytest.mark.parametrize("first", ["measured", "infinite"])
def test_clients_stop_as_the_script_of_their_losses_says(first: str, of: str) -> None:
    """Of the sum over four samples gamma is four times as large."""
    measured = first == "measured"
    losses = Scripted({task: of_task[not measured :] for task, of_task in SUMS.items()})
    gamma = {"mean": 0.3, "sum": 1.2}[of]
    came = stopped(FOUR, [4, 4, 4, 4], losses, gamma=gamma, loss=of, first=first)
    assert losses.asked == [*[[0, 1]] * (2 + measured), [1], []]
    assert came["epochs"].tolist() == [2, 4, 1, 0]
    assert came["steps"].tolist() == [4, 8, 1, 0]
    assert came["held_out"].tolist() == [4, 4, 0, 0]
    assert came["forward_samples"].tolist() == ([12, 16, 0, 0] if measured else [8, 12, 0, 0])
    assert came["trained_samples"].tolist() == [12, 24, 3, 0]


def test_short_batches_train_on_fewer_samples_and_the_most_epochs_of_a_task_are_its_own() -> None:
    """A task of one epoch at most has nothing to decide, and one without any takes no step."""
    losses = Scripted({0: SUMS[0]})
    came = stopped(FOUR, [4, 1, 4, 4], losses, last="short", gamma=0.3)
    assert losses.asked == [[0], [0], [0]]
    assert came["epochs"].tolist() == [2, 1, 1, 0]
    assert came["trained_samples"].tolist() == [8, 4, 1, 0]
    none = stopped(FOUR, [0, 0, 0, 0], Scripted({}), gamma=0.3)
    assert none["steps"].tolist() == [0, 0, 0, 0]
    assert not none["delta"].any()
    assert np.isnan(none["loss"]).all()


@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_client_whose_loss_is_not_a_finite_number_stops(loss: float) -> None:
    came = stopped(FOUR, [4] * 4, Scripted({0: [8.0, loss], 1: [8.0, loss]}), gamma=0.3)
    assert came["epochs"].tolist() == [1, 1, 1, 0]


ADAM = [rule("adam", amsgrad=True)]
MOMENTUM = [rule("fedprox", mu=0.3), rule("sgd", momentum=0.9, weight_decay=0.01)]
UNEQUAL = wave(counts=[9, 12, 4, 7], steps=[1] * 4, batch_size=3)
"""Tasks that train on 5, 6, 2 and 4 samples, so 2, 2, 1 and 2 steps an epoch."""


@pytest.mark.parametrize("kind", [ReferenceLoop, DenseStrategy])
@pytest.mark.parametrize(
    ("rules", "last"),
    [
        ([rule("sgd")], "filled"),
        ([rule("sgd")], "short"),
        (MOMENTUM, "short"),
        (ADAM, "filled"),
        ([rule("scaffold"), rule("sgd")], "filled"),
        ([rule("feddc", clip=0.5), rule("sgd")], "short"),
        ([rule("feddyn"), rule("sgd")], "filled"),
        ([rule("ditto"), rule("sgd")], "filled"),
        ([rule("apfl", adaptive=True), rule("sgd")], "filled"),
    ],
)
def test_epochs_until_the_most_are_the_steps_of_as_many_on_the_samples_that_are_not_held_out(
    kind: Kind, rules: list[LocalRule], last: LastBatch
) -> None:
    """Moments go on from epoch to epoch, and what is remembered at the end is of all steps.

    So are the measurements; none is of the last epoch alone but the squared losses of the last batch.
    """
    epochs = [3, 3, 3, 1]
    came = stopped(UNEQUAL, epochs, Falling(), rules, kind, last)
    assert came["epochs"].tolist() == epochs
    assert came["steps"].tolist() == [6, 6, 3, 2]
    steps = {**UNEQUAL.settings, "local_steps": came["steps"].astype(np.float64)}
    expected = plainly(replace(UNEQUAL, settings=steps), rules, kind, last)
    assert {"loss_before", "loss_squared", "batch_losses", "batch_errors"} <= expected.keys()
    for name, column in expected.items():
        np.testing.assert_allclose(came[name], column, rtol=1e-9, atol=1e-12, err_msg=name)


def test_tasks_that_stop_at_different_epochs_are_each_what_they_are_alone() -> None:
    """Training with others goes on without those that stopped, whose rows stay as they are."""
    together = stopped(FOUR, [4] * 4, Scripted(SUMS), MOMENTUM, gamma=0.3)
    for task, epochs in ((0, 2), (1, 4)):
        alone = stopped(FOUR, [epochs * (other == task) for other in range(4)], Falling(), MOMENTUM)
        for name in ("delta", "loss", "loss_squared", "batch_losses"):
            width = 2 * epochs if name == "batch_losses" else None
            ours, theirs = (np.atleast_1d(came[name][task])[:width] for came in (together, alone))
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=name)
    assert np.isnan(together["batch_losses"][0, 4:]).all()
