"""`LocalExecutor`: implements `emulator.ports.Executor` within this process.

Owns the choice of the training strategy and the threads. Knows no coordinator: tasks, models and samples
arrive in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from emulator.arrays import Floats, Floats32, Ints
from emulator.counts import LastBatch
from emulator.errors import ConfigurationError, RunError
from emulator.messages import (
    LOSS_METRICS,
    ArrayUpdates,
    Evaluation,
    InferencePlan,
    KeptModels,
    Metric,
    SampleRanges,
    Scores,
    SolverFacts,
    SummedUpdates,
    TrainTasks,
)
from emulator.ports import SampleReader, Segment
from emulator.seeding import RandomStreams
from executor.flat import FlatModel
from executor.group_sums import RunningSums
from executor.inference import embeddings, evaluation, gradients, scoring
from executor.inference.prediction import Predictor
from executor.malloc import keep_freed_memory
from executor.models.base import ModelSpec
from executor.models.files import ModelStart, write_models
from executor.objectives.base import Objective, tokens_of
from executor.objectives.labels import LABELS
from executor.parallel import Threads
from executor.pretraining import pretrained
from executor.probing import CONVOLUTIONS, MOST_STACKED_PARAMETERS, Probed, probed, refuse_misfit
from executor.rules.base import Chain, LocalRule, build_chain
from executor.settings import Batches, BatchNorm, ExecutorSettings
from executor.training.dense import DenseStrategy
from executor.training.epochs import Epochs
from executor.training.groups import Strategy, Wave
from executor.training.held_out import HeldOut, HeldOutLosses
from executor.training.out_of_memory import OutOfMemory, out_of_memory_named
from executor.training.reference import ReferenceLoop
from executor.training.results import Results
from executor.training.stacked import StackedStrategy
from executor.training.tampering import tamper

STACKED_PARAMETERS = 250_000  # over all models of a group: then a step about fills a core's cache
LEAST_STACKED, MOST_STACKED = 8, 25

StrategyName = Literal["stacked", "dense", "loop"]


class LocalExecutor:
    """Trains and scores models of one architecture, by one chain of local rules, on one reader's samples."""

    weights_from = 2**20

    def __init__(
        self,
        reader: SampleReader,
        model: ModelSpec,
        rules: Sequence[LocalRule],
        streams: RandomStreams,
        settings: ExecutorSettings | None = None,
        batches: Batches = "reshuffled",
        last: LastBatch = "filled",
        batch_norm: BatchNorm | None = None,
        known: Probed | None = None,
        start: ModelStart | None = None,
        objective: Objective = LABELS,
    ) -> None:
        """Build the model and choose the strategy; P, the number of parameters, is known afterwards.

        Args:
            reader: The samples, by table row; it gives their shape and the number of labels.
            model: The recipe of the model.
            rules: The local rules in their order; the last one, and no other, is an optimiser.
            streams: The random streams of initial models, batches and tampering.
            settings: How training is carried out; None stands for the defaults.
            batches: How the batches of local steps are drawn.
            last: Whether the last batch of a pass over the samples of a client is filled, or short.
            batch_norm: What becomes of batch norm's statistics; None: averaged, if the model has some.
            known: What probing the model has found; None: it is probed.
            start: The file that initial models begin with; None: they are drawn.
            objective: What models are trained on, and scored by.

        Raises:
            DataFileError: The file to start from is damaged, or its model does not fit.
            ConfigurationError: The model cannot be trained on these samples, or not with the configured
                strategy, or `rules` are not a chain.
            ResumableError: There is not enough memory for the model.
        """
        settings = settings or ExecutorSettings()
        keep_freed_memory()
        self.reader = reader
        """The samples, by table row."""
        self._streams = streams
        self._batches: tuple[Batches, LastBatch] = batches, last
        refuse_misfit(model, reader, objective)
        with out_of_memory_named("building the model"):
            self._model = FlatModel(
                model,
                reader.sample_shape,
                objective.num_outputs(reader),
                streams,
                integers=tokens_of(reader) is not None,
                objective=objective,
            )
        self._threads, self._ahead = Threads(settings.threads), 2 * settings.threads
        self.probed = known or probed(self._model, streams, reader)
        self._model.head = self.probed.head or ""
        if start is not None:
            start.begin(self._model)
        if last == "short" and self.probed.least > 1:
            raise ConfigurationError(
                f"training.last = 'short': a last batch of one sample has no variance for the batch norm of "
                f"{self._model.name}; set 'filled'"
            )
        self._predictor = Predictor(reader, self._model, self._model.dense)
        if batch_norm is not None and not self._model.statistics:
            raise ConfigurationError(
                f"training.batch_norm = {batch_norm!r}: {self._model.name} has no batch norm; leave it out"
            )
        kept = self._model.batch_norm if batch_norm == "kept" else ()
        self._chain = build_chain(rules, self._model.layout, kept)
        self._solver = replace(self._chain.facts, base=self._model.base)
        # `auto` resolved, for the log
        self.strategy, self.reason = _strategy(settings, model, self._model, self.probed, last)
        self._strategy = _build(self.strategy, self._model, self._chain)
        stopping = self._chain.stopping
        self._held_out = None if stopping is None else HeldOut(stopping.held_out, reader, streams)
        self._epochs = Epochs(self._chain, self._strategy, HeldOutLosses(self._predictor))
        self.chunk = (
            1 if self.strategy == "loop" else settings.chunk or _chunk(self.num_parameters + self._model.base)
        )
        self._out_of_memory = OutOfMemory(settings.on_out_of_memory, self.chunk)

    @property
    def layout(self) -> Mapping[str, Segment]:
        """The tensors of the model by name, in the order of the parameter vector."""
        return self._model.layout

    @property
    def solver(self) -> SolverFacts:
        """What the rules keep between tasks, receive, send and compute besides plain training."""
        return self._solver

    @property
    def num_parameters(self) -> int:
        """P: the numbers of a model, with the statistics of batch norm."""
        return self._model.num_parameters

    @property
    def _num_trained(self) -> int:
        """Q: the numbers of an update."""
        return self.num_parameters - self.solver.statistics

    @property
    def halved_groups(self) -> int:
        """How many times so far a task group was split in halves because memory ran out."""
        return self._out_of_memory.halved

    @property
    def num_outputs(self) -> int:
        """The number of outputs: of labels, by default."""
        return self._model.num_outputs

    def initial(self, number: int) -> Floats32:
        """The initial parameters of one model.

        Args:
            number: Which initialisation of this seed, from 0 on.

        Returns:
            Array of shape (P,), drawn from the stream ("init", number); with a file to start from see
            `FlatModel.begin`.

        Raises:
            ConfigurationError: The model has a kind of layer without a known initialisation.
        """
        return self._model.initial(self._streams, number)

    @property
    def shared_bytes(self) -> int:
        """What all models have in common: the bytes of constants, such as frozen parameters."""
        return sum(tensor.nbytes for tensor in self._model.constants.values())

    def write_models(self, path: Path, kept: KeptModels) -> None:
        """Write the models of a run; see `executor.models.files.write_models`."""
        write_models(path, self._model, kept)

    def held_out(self, samples: SampleRanges) -> Ints:
        """How many samples are held out, of those that each of n requests asks for.

        Args:
            samples: The samples of each request, n rows.

        Returns:
            Array of shape (n,); 0 unless the solver stops early.
        """
        if self._held_out is None:
            return np.zeros(len(samples), dtype=np.int64)
        return np.array([int(held.sum()) for held in self._held_out.split(samples)], dtype=np.int64)

    def cut(self, tasks: TrainTasks, models: Floats32, start: Ints) -> tuple[list[Ints], Ints]:
        """The task groups of a wave, as `train` forms them.

        Args:
            tasks: The wave, n tasks.
            models: Array of shape (M, P).
            start: Array of shape (n,): the row of `models` that each task starts from.

        Returns:
            The rows of `tasks` in each group, and the local steps of each task, of shape (n,).
        """
        wave = self._wave(tasks, models, start)
        return [np.sort(members) for members in wave.cut(self.chunk)], wave.steps

    def cut_scores(self, num_models: int, counts: Ints) -> list[Ints]:
        """The requests that are scored together, as `score` cuts them.

        Args:
            num_models: How many models score each request.
            counts: Array of shape (n,): the number of samples of each request.

        Returns:
            The requests of each slab, ascending.
        """
        return scoring.cut(self._predictor, num_models, counts)

    def cut_reports(self, counts: Ints) -> list[Ints]:
        """The requests whose embeddings or gradients are computed together.

        Args:
            counts: Array of shape (n,): the number of samples of each request.

        Returns:
            The requests of each slab, ascending.
        """
        return embeddings.cut(counts)

    def cut_evaluation(self, plan: InferencePlan, samples: SampleRanges) -> list[Ints]:
        """The clients that are evaluated together, as `evaluate` cuts them.

        Args:
            plan: Which models serve each of N clients.
            samples: The test samples of each client, N rows.

        Returns:
            The clients of each slab.
        """
        return evaluation.cut(plan, samples, self.num_outputs, self._predictor.dense)

    def train(
        self, tasks: TrainTasks, models: Floats32, start: Ints, weights: Floats | None = None
    ) -> ArrayUpdates:
        """Train every task; the updates are as they arrive at the coordinator, after any tampering.

        A task without samples takes no step: its update is zero, its metrics are NaN. A task whose training
        diverges has an update that is not finite: the caller must check `finite`.

        Args:
            tasks: n tasks; a solver that stops decides after each of their `local_epochs`, if they have such
                a setting.
            models: Array of shape (M, P).
            start: Array of shape (n,): the row of `models`, and of `tasks.broadcast`, that each task starts
                from.
            weights: Array of shape (k, n): with them, updates are added up group by group and let go, and
                what is returned has these sums alone. Not if an update, or its loss, is not finite: then all
                are trained once more, and kept.

        Returns:
            The updates, a row for each task. `metrics["loss"]`, of shape (n,), is the mean of the loss over
            the task's batches, each taken before its step; the metrics in `tasks.measure` are there too.

        Raises:
            ResumableError: Memory ran out, and the group may not be split, or is a single task.
        """
        wave = self._wave(tasks, models, start)
        if weights is not None:
            groups = wave.cut(self.chunk)
            sums = RunningSums(weights, groups, self._num_trained, self._ahead)
            updates = self._trained(tasks, wave, None, sums)
            if not sums.failed:
                place, known = np.arange(len(tasks)), (weights, sums.total)
                return SummedUpdates(**vars(updates), place=place, size=len(tasks), known=known)
        return self._trained(tasks, wave)

    def train_groups(
        self, tasks: TrainTasks, models: Floats32, start: Ints, numbers: Sequence[int] | None
    ) -> ArrayUpdates:
        """Train some of the task groups only.

        Args:
            tasks: n tasks.
            models: Array of shape (M, P).
            start: Array of shape (n,): the row of `models` that each task starts from.
            numbers: The positions, in the list that `cut` returns, of the groups to train; None trains all.

        Returns:
            The updates, as those of `train`; the update of a task in another group is zero, and its metrics
            are NaN, but for `step_norm`, which follows from its settings.

        Raises:
            ResumableError: As `train`.
        """
        return self._trained(tasks, self._wave(tasks, models, start), numbers)

    def _trained(
        self,
        tasks: TrainTasks,
        wave: Wave,
        numbers: Sequence[int] | None = None,
        sums: RunningSums | None = None,
    ) -> ArrayUpdates:
        """See `train_groups`; with `sums`, the updates go there, and what is returned has none.

        If one is not usable `sums` have failed, and the rest is left out.
        """
        results, groups = Results(tasks, wave, self.solver, self._num_trained), wave.cut(self.chunk)
        delta = np.zeros((len(tasks), 0 if sums else self._num_trained), dtype=np.float32)
        group_of = np.zeros(len(tasks), dtype=np.int64)
        for number, members in enumerate(groups):
            group_of[members] = number

        def train_some(number: int, members: Ints) -> None:
            # The group is gathered here, so that there are never more groups in memory than threads.
            if wave.epochs is None:
                group = wave.group(members)
                trained, begun = self._strategy.train(group), group.start
            else:
                of_epochs = self._epochs.train(wave, members)
                trained, begun = of_epochs.trained, of_epochs.start
                results.take_epochs(members, of_epochs)
            sent = wave.sent(members) if self._chain.kept else None
            moved = results.take(members, trained, begun, self._chain, sent)
            tamper(moved, tasks, members, self._streams, self._chain.sent)
            if sums is None:
                delta[members] = moved
            elif results.usable(members) and np.isfinite(moved).all():
                sums.put(number, members, moved)
            else:
                sums.fail()

        def train_group(number: int) -> None:
            if sums is None or not sums.failed:
                with nullcontext() if sums is None else sums.failing():
                    self._out_of_memory.run(partial(train_some, number), groups[number])

        self._threads.run(train_group, range(len(groups)) if numbers is None else numbers)
        steps, metrics = results.steps, results.metrics
        if "step_norm" in tasks.measure and self.solver.form is not None:
            metrics["step_norm"] = self.solver.form.norms(steps, tasks.settings["learning_rate"])
        told = tasks.client, tasks.model, results.counts, steps
        return ArrayUpdates(*told, delta, metrics, results.state, group_of, of_batch_norm=results.statistics)

    def personal(self, received: Floats32, state: Mapping[str, Floats32]) -> Floats32:
        """The parameters that clients use themselves, made of the models that serve them.

        Args:
            received: Array of shape (n, P): the model of each client.
            state: The rows of the slots `solver.personal`, (n, P) or (n, 1) each.

        Returns:
            Array of shape (n, P); parameters that training does not move are those received.
        """
        rows = {name: torch.from_numpy(column) for name, column in state.items()}
        own = self._chain.personal(torch.from_numpy(received), rows)
        return own.numpy()

    def score(
        self,
        models: Floats32,
        samples: SampleRanges,
        metrics: frozenset[Metric],
        slabs: Sequence[Ints] | None = None,
    ) -> Scores:
        """Score n requests, each with every model.

        Args:
            models: Array of shape (m, P).
            samples: The samples of each request, n rows.
            metrics: The metrics to compute.
            slabs: Some of the slabs of `cut_scores`: only their requests are scored, and the others' sums
                are zero. None scores all requests.

        Returns:
            The sums of each metric over a request's samples, per request and model.

        Raises:
            ResumableError: Memory ran out.
        """
        if slabs is None:
            slabs = self.cut_scores(len(models), samples.counts())
        with out_of_memory_named("scoring models"):
            return scoring.score(self._predictor, self._threads, models, samples, metrics, slabs)

    def pretrained(self, rows: Ints, epochs: int, batch_size: int, learning_rate: float) -> Floats32:
        """Initial model 0 after training on some rows, as `executor.pretraining.pretrained` states.

        Args:
            rows: Table rows, array of shape (n,), n >= 1.
            epochs: How many passes over the rows.
            batch_size: Samples in a batch.
            learning_rate: The learning rate.

        Returns:
            Array of shape (P,).

        Raises:
            ResumableError: Memory ran out.
            RunError: The model diverged.
        """
        with out_of_memory_named("training the reference model"):
            return pretrained(
                self._model,
                self.reader,
                rows,
                self._streams,
                epochs=epochs,
                batch_size=batch_size,
                learning_rate=learning_rate,
                draws=self.probed.draws,
            )

    @property
    def embedding_size(self) -> int:
        """The number of inputs of the model's last layer; ConfigurationError if it is not linear."""
        return self._model.embedding_size

    def embeddings(
        self, parameters: Floats32, samples: SampleRanges, slabs: Sequence[Ints] | None = None
    ) -> Floats32:
        """The mean embedding of each of n requests, at one model.

        Args:
            parameters: Array of shape (P,).
            samples: The samples of each request, n rows.
            slabs: Some of the slabs of `cut_reports`: only their requests are computed, and the others' rows
                are zero. None computes all.

        Returns:
            Array of shape (n, embedding_size); zeros for a request without samples.

        Raises:
            ResumableError: Memory ran out.
        """
        return self._reports(embeddings.embeddings, parameters, samples, slabs)

    def gradients(
        self, parameters: Floats32, samples: SampleRanges, slabs: Sequence[Ints] | None = None
    ) -> Floats32:
        """The gradient of the mean loss on each of n requests, at one model.

        Args:
            parameters: Array of shape (P,).
            samples: The samples of each request, n rows.
            slabs: As in `embeddings`.

        Returns:
            Array of shape (n, P); zeros for a request without samples.

        Raises:
            ResumableError: Memory ran out.
        """
        return self._reports(gradients.gradients, parameters, samples, slabs)

    def _reports(
        self,
        compute: Callable[[Predictor, Threads, Floats32, SampleRanges, Sequence[Ints]], Floats32],
        parameters: Floats32,
        samples: SampleRanges,
        slabs: Sequence[Ints] | None,
    ) -> Floats32:
        if slabs is None:
            slabs = self.cut_reports(samples.counts())
        with out_of_memory_named("computing reports"):
            return compute(self._predictor, self._threads, parameters, samples, slabs)

    def evaluate(
        self,
        models: Floats32,
        plan: InferencePlan,
        samples: SampleRanges,
        slabs: Sequence[Ints] | None = None,
    ) -> Evaluation:
        """Evaluate each of N clients with the models that serve it.

        Args:
            models: Array of shape (M, P).
            plan: Which rows of `models` serve each client, and their weights.
            samples: The test samples of each client, N rows.
            slabs: Some of the slabs of `cut_evaluation`: only their clients are evaluated, and the others'
                results are NaN. None evaluates all clients.

        Returns:
            Each client's mean accuracy and loss; NaN for a client without samples or without a model.

        Raises:
            ResumableError: Memory ran out.
        """
        if slabs is None:
            slabs = self.cut_evaluation(plan, samples)
        with out_of_memory_named("evaluating models"):
            return evaluation.evaluate(self._predictor, self._threads, models, plan, samples, slabs)

    def _wave(self, tasks: TrainTasks, models: Floats32, start: Ints) -> Wave:
        if (tasks.settings["batch_size"] < self.probed.least).any():
            raise RunError(
                f"{self._model.name}: batch norm needs batches of two samples, and a schedule sets 1"
            )
        return Wave(
            replace(tasks, measure=tasks.measure & LOSS_METRICS),
            models,
            start,
            self.reader,
            self._streams,
            batches=self._batches[0],
            chain=self._chain,
            last=self._batches[1],
            held_out=self._held_out,
            draws=self.probed.draws,
            objective=self._model.objective,
        )


def _strategy(
    settings: ExecutorSettings, spec: ModelSpec, model: FlatModel, known: Probed, last: LastBatch
) -> tuple[StrategyName, str]:
    """The configured strategy, or for `auto` the one that suits the model; and the reason, if it was counted.

    What decides follows from the model alone, and is never timed, since a strategy decides the last bits.
    """
    if settings.strategy == "dense" and not model.dense:
        why = "has frozen parameters" if model.base > 0 else "is trained on another objective than labels"
        why = why if spec.dense else "is not fully connected"
        raise ConfigurationError(
            f'executor.strategy = "dense": the model {type(spec).__name__} {why}; use "stacked", "loop" or '
            f'"auto"'
        )
    refused = known.unstackable
    if last == "short" and (model.statistics or known.draws):  # stacked batches are padded
        refused = refused or "what fills up short batches would be in the means of batch norm, or drawn for"
    if settings.strategy == "stacked" and refused:
        raise ConfigurationError(f'executor.strategy = "stacked": {refused}; use "loop" or "auto"')
    if settings.strategy != "auto":
        return settings.strategy, ""
    if model.dense:
        return "dense", ""
    if refused or spec.stacks is not None:
        return ("stacked" if spec.stacks and not refused else "loop"), refused
    return _counted(model)


def _counted(model: FlatModel) -> tuple[StrategyName, str]:
    """The strategy for a model that does not say which suits it, and why."""
    if model.layers(*CONVOLUTIONS):
        return "loop", "convolutions keep the machine busy with one client"
    num_parameters = model.num_parameters - model.num_statistics + model.base
    counted = f"{num_parameters:,} parameters"
    if num_parameters > MOST_STACKED_PARAMETERS:
        return "loop", f"{counted}, more than {MOST_STACKED_PARAMETERS:,}"
    return "stacked", f"no convolutions, and {counted}, at most {MOST_STACKED_PARAMETERS:,}"


def _chunk(num_parameters: int) -> int:
    """The number of tasks in a group with which models of `num_parameters` train fastest.

    The constants were measured on models of 2,400 to 160,000 parameters.
    """
    return min(MOST_STACKED, max(LEAST_STACKED, STACKED_PARAMETERS // num_parameters))


def _build(name: StrategyName, model: FlatModel, chain: Chain) -> Strategy:
    kinds: dict[StrategyName, type[StackedStrategy | DenseStrategy | ReferenceLoop]]
    kinds = {"stacked": StackedStrategy, "dense": DenseStrategy, "loop": ReferenceLoop}
    return kinds[name](model, chain)
