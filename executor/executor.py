"""The executor: `emulator.ports.Executor` in this process.

Owns the choice of strategy, the threads, and evaluation. Knows no coordinator: what is trained, from what
and on which samples comes in a message.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, Evaluation, SampleRanges, TrainTasks
from emulator.ports import SampleReader
from emulator.seeding import RandomStreams
from executor.cohort import Strategy, cohorts
from executor.flat import FlatModel
from executor.models.base import ModelSpec
from executor.parameters import ExecutorParameters
from executor.ranges import rows_of
from executor.reference import ReferenceLoop
from executor.rules.base import LocalRule, build_chain
from executor.stacked import StackedCohort

EVALUATION_BATCH = 512  # samples; a constant, since the borders decide the last bits of a result


class LocalExecutor:
    """Trains and scores one model, by one chain of local rules, on the samples that `reader` gives.

    ConfigurationError when the model cannot be trained on them, or the rules are no chain.
    """

    def __init__(
        self,
        reader: SampleReader,
        model: ModelSpec,
        rules: Sequence[LocalRule],
        streams: RandomStreams,
        settings: ExecutorParameters | None = None,
    ) -> None:
        settings = settings or ExecutorParameters()
        torch.set_num_threads(settings.threads)
        self._reader = reader
        self._streams = streams
        self._model = FlatModel(model, reader.sample_shape, reader.num_labels)
        self._strategy: Strategy
        chain = build_chain(rules)
        if settings.strategy == "stacked" or (settings.strategy == "auto" and model.stacks):
            self.strategy = "stacked"  # what `auto` came to, for the log
            self._strategy, self._chunk = StackedCohort(self._model, chain), settings.chunk
        else:
            self.strategy = "loop"
            self._strategy, self._chunk = ReferenceLoop(self._model, chain), 1

    @property
    def num_parameters(self) -> int:
        return self._model.num_parameters

    def initial(self, number: int) -> Floats32:
        """(P,) the number-th initialisation of this seed."""
        return self._model.initial(self._streams, number)

    def train(self, tasks: TrainTasks, starts: Floats32) -> ArrayUpdates:
        """The update of each task, trained from its row of `starts` (n, P).

        `metrics["loss"]` is the mean of the loss over the task's batches, each before its step. A task
        without samples takes no step: its update is zero and its loss NaN. A task whose training diverges
        has an update that is not finite; whoever uses it must look.
        """
        delta = np.zeros_like(starts)
        steps = np.zeros(len(tasks), dtype=np.int64)
        loss = np.full(len(tasks), np.nan)
        for cohort in cohorts(tasks, starts, self._reader, self._streams, self._chunk):
            trained = self._strategy.train(cohort)
            delta[cohort.tasks] = (trained.parameters - cohort.start).numpy()
            steps[cohort.tasks] = cohort.steps
            loss[cohort.tasks] = trained.loss
        return ArrayUpdates(
            tasks.client, tasks.model, tasks.samples.counts(), steps, delta, metrics={"loss": loss}
        )

    def evaluate(self, models: Floats32, serves: Ints, samples: SampleRanges) -> Evaluation:
        """Each client's mean accuracy and cross-entropy on its `samples`, with row `serves` (N,) of `models`.

        NaN for a client without samples.
        """
        accuracy, loss = np.full(len(serves), np.nan), np.full(len(serves), np.nan)
        for row in np.unique(serves):
            clients = np.flatnonzero(serves == row)
            rows, counts = rows_of(samples, clients)
            correct, losses = self._score(models[row], rows)
            accuracy[clients] = _means(correct, counts)
            loss[clients] = _means(losses, counts)
        return Evaluation(accuracy, loss)

    @torch.inference_mode()
    def _score(self, parameters: Floats32, rows: Ints) -> tuple[Floats, Floats]:
        """Of each table row: 1.0 where the model is right, else 0.0; and its cross-entropy."""
        named = self._model.named(torch.tensor(parameters))
        correct, losses = np.zeros(len(rows)), np.zeros(len(rows))
        for first in range(0, len(rows), EVALUATION_BATCH):
            part = slice(first, first + EVALUATION_BATCH)
            labels = torch.from_numpy(self._reader.labels(rows[part]))
            logits = self._model.logits(named, torch.from_numpy(self._reader.features(rows[part])))
            correct[part] = (logits.argmax(dim=1) == labels).numpy()
            losses[part] = functional.cross_entropy(logits, labels, reduction="none").numpy()
        return correct, losses


def _means(values: Floats, counts: Ints) -> Floats:
    """(k,) the mean of each client's run of `values`; `counts` (k,) gives their lengths, 0 makes NaN."""
    owner = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(owner, weights=values, minlength=len(counts))
    means = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
