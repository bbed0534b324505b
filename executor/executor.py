"""The executor: `emulator.ports.Executor` in this process.

Owns the choice of strategy and the threads. Knows no coordinator: what is trained or scored, from what and on
which samples comes in a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import (
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    Metric,
    SampleRanges,
    Scores,
    StateSpec,
    TrainTasks,
)
from emulator.ports import SampleReader, Segment
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.inference import evaluation, scoring
from executor.inference.prediction import Predictor
from executor.malloc import keep_freed_memory
from executor.models.base import ModelSpec
from executor.parallel import Threads
from executor.rules.base import Chain, LocalRule, build_chain
from executor.settings import ExecutorSettings
from executor.training.dense import DenseStrategy
from executor.training.groups import Strategy, Wave
from executor.training.out_of_memory import OutOfMemory, out_of_memory_named
from executor.training.reference import ReferenceLoop
from executor.training.stacked import StackedStrategy
from executor.training.tampering import tamper

STACKED_PARAMETERS = 250_000  # of all models together: with what else a step touches, near a core's cache
LEAST_STACKED, MOST_STACKED = 8, 25

StrategyName = Literal["stacked", "dense", "loop"]


class LocalExecutor:
    """Trains and scores one model, by one chain of local rules, on the samples that `reader` gives.

    ConfigurationError when the model cannot be trained on them, or not as the settings ask for, or the rules
    are no chain. ResumableError where there is no memory for the model.
    """

    def __init__(
        self,
        reader: SampleReader,
        model: ModelSpec,
        rules: Sequence[LocalRule],
        streams: RandomStreams,
        settings: ExecutorSettings | None = None,
    ) -> None:
        settings = settings or ExecutorSettings()
        keep_freed_memory()
        self._reader = reader
        self._streams = streams
        with out_of_memory_named("building the model"):
            self._model = FlatModel(model, reader.sample_shape, reader.num_labels)
        self._threads = Threads(settings.threads)
        self._predictor = Predictor(reader, self._model, model.dense)
        self._chain = build_chain(rules)
        self.strategy = _strategy(settings, model)  # what `auto` came to, for the log
        self._strategy = _build(self.strategy, self._model, self._chain)
        self.chunk = 1 if self.strategy == "loop" else settings.chunk or _chunk(self.num_parameters)
        self._out_of_memory = OutOfMemory(settings.on_out_of_memory, self.chunk)

    @property
    def layout(self) -> Mapping[str, Segment]:
        """The tensors of the model by name, in the order of the vector of parameters."""
        return self._model.layout

    @property
    def state(self) -> Mapping[str, StateSpec]:
        """What the rules remember of each (client, model) pair from task to task, as "rule.name"."""
        return self._chain.state

    @property
    def num_parameters(self) -> int:
        return self._model.num_parameters

    @property
    def halved_groups(self) -> int:
        """How many groups were trained in halves so far, for want of memory."""
        return self._out_of_memory.halved

    @property
    def num_labels(self) -> int:
        return self._model.num_labels

    def initial(self, number: int) -> Floats32:
        """(P,) the number-th initialisation of this seed."""
        return self._model.initial(self._streams, number)

    def cut(self, tasks: TrainTasks, models: Floats32, start: Ints) -> tuple[list[Ints], Ints]:
        """The rows of `tasks` in each group, and (n,) the steps of each task."""
        wave = Wave(tasks, models, start, self._reader, self._streams)
        return wave.cut(self.chunk), wave.steps

    def cut_scores(self, num_models: int, counts: Ints) -> list[Ints]:
        """Which requests, of `counts` (n,) samples, are scored together."""
        return scoring.cut(self._predictor, num_models, counts)

    def cut_evaluation(self, plan: InferencePlan, samples: SampleRanges) -> list[Ints]:
        """Which clients are evaluated together."""
        return evaluation.cut(plan, samples, self.num_labels)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        """The update of each task, trained from its row, `start` (n,), of `models` (M, P), as it arrives.
        They are all here, so `weights` makes no difference.

        `metrics["loss"]` is the mean of the loss over the task's batches, each before its step. A task
        without samples takes no step: its update is zero and its loss NaN. A task whose training diverges
        has an update that is not finite; whoever uses it must look.
        """
        return self.train_groups(tasks, models, start, None)

    def train_groups(
        self, tasks: TrainTasks, models: Floats32, start: Ints, numbers: Sequence[int] | None
    ) -> ArrayUpdates:
        """As `train`, of the groups that `cut` counts by these `numbers` alone (None: of all); the tasks of
        the others are left as if they had no samples."""
        wave = Wave(tasks, models, start, self._reader, self._streams)
        delta = np.zeros((len(tasks), self.num_parameters), dtype=np.float32)
        group_of = np.zeros(len(tasks), dtype=np.int64)
        loss = np.full(len(tasks), np.nan)
        widths = {"parameters": self.num_parameters, "scalar": 1}
        state = {
            name: np.zeros((len(tasks), widths[slot.shape]), dtype=np.float32)
            for name, slot in self.state.items()
        }

        def train_group(members: Ints) -> None:
            # Gathered here, so that no more groups than threads are in memory.
            group = wave.group(members)
            trained = self._strategy.train(group)
            moved = trained.parameters.numpy()
            moved -= group.start.numpy()
            delta[group.tasks] = moved
            loss[group.tasks] = trained.loss
            tamper(delta, tasks, group.tasks, self._streams)
            for name, rows in trained.state.items():
                state[name][group.tasks] = rows.numpy()

        groups = wave.cut(self.chunk)
        for number, members in enumerate(groups):
            group_of[members] = number
        wanted = groups if numbers is None else [groups[number] for number in numbers]
        self._threads.run(lambda members: self._out_of_memory.run(train_group, members), wanted)
        counts = tasks.samples.counts()
        return ArrayUpdates(
            tasks.client, tasks.model, counts, wave.steps, delta, {"loss": loss}, state, group_of
        )

    def score(
        self,
        models: Floats32,
        samples: SampleRanges,
        metrics: frozenset[Metric],
        slabs: Sequence[Ints] | None = None,
    ) -> Scores:
        """Score each of n requests for `samples` with every one of `models` (m, P); where `slabs` of
        `cut_scores` are given, those in them alone, and zeros for the others."""
        if slabs is None:
            slabs = self.cut_scores(len(models), samples.counts())
        with out_of_memory_named("scoring models"):
            return scoring.score(self._predictor, self._threads, models, samples, metrics, slabs)

    def evaluate(
        self,
        models: Floats32,
        plan: InferencePlan,
        samples: SampleRanges,
        slabs: Sequence[Ints] | None = None,
    ) -> Evaluation:
        """Each client's accuracy and loss on its `samples`, with what `plan` says of `models` (M, P); where
        `slabs` of `cut_evaluation` are given, of those in them alone, and NaN for the others."""
        if slabs is None:
            slabs = self.cut_evaluation(plan, samples)
        with out_of_memory_named("evaluating models"):
            return evaluation.evaluate(self._predictor, self._threads, models, plan, samples, slabs)


def _strategy(settings: ExecutorSettings, model: ModelSpec) -> StrategyName:
    """The strategy that was asked for, or suits the model."""
    if settings.strategy == "dense" and not model.dense:
        raise ConfigurationError(
            f'executor.strategy = "dense": the model {type(model).__name__} is not fully connected; use '
            f'"stacked", "loop" or "auto"'
        )
    if settings.strategy != "auto":
        return settings.strategy
    if model.dense:
        return "dense"
    return "stacked" if model.stacks else "loop"


def _chunk(num_parameters: int) -> int:
    """How many models of that size train fastest side by side, measured from 2,400 to 160,000 parameters."""
    return min(MOST_STACKED, max(LEAST_STACKED, STACKED_PARAMETERS // num_parameters))


def _build(name: StrategyName, model: FlatModel, chain: Chain) -> Strategy:
    kinds: dict[StrategyName, type[StackedStrategy | DenseStrategy | ReferenceLoop]] = {
        "stacked": StackedStrategy,
        "dense": DenseStrategy,
        "loop": ReferenceLoop,
    }
    return kinds[name](model, chain)
