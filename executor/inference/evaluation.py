"""The accuracy and loss of each client with the models that serve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Combine, Evaluation, InferencePlan, SampleRanges
from executor.flat import FlatModel
from executor.inference.prediction import EVALUATION_BATCH, Predictor, Use
from executor.objectives.base import Objective
from executor.objectives.labels import is_labels
from executor.parallel import Threads
from executor.ranges import rows_of, slabs

SLAB = (
    4 * EVALUATION_BATCH
)  # samples of one model; smaller slabs are slower, larger ones too few to share out
AT_ONCE = 200_000  # samples times outputs in a slab, where clients are served by several models


def evaluate(
    predictor: Predictor,
    threads: Threads,
    models: Floats32,
    plan: InferencePlan,
    samples: SampleRanges,
    wanted: Sequence[Ints],
) -> Evaluation:
    """Each client's accuracy and mean loss on its `samples`, served by `models` (M, P) according to `plan`.

    `wanted`: some of the slabs that `cut` returns; only their clients are evaluated. NaN for all others, and
    for a client without samples or without a model.
    """
    accuracy, loss = np.full(len(plan.models), np.nan), np.full(len(plan.models), np.nan)
    own = plan.is_own and predictor.dense

    def evaluate_slab(clients: Ints) -> None:
        if own and len(clients) > 1:  # a single one may have any number of samples
            evaluation = _by_own(predictor, models[clients], samples.take(clients))
        else:
            evaluation = _of_slab(predictor, models, plan.take(clients), samples.take(clients))
        accuracy[clients], loss[clients] = evaluation.accuracy, evaluation.loss

    threads.run(evaluate_slab, wanted)
    return Evaluation(accuracy, loss)


def cut(plan: InferencePlan, samples: SampleRanges, num_outputs: int, dense: bool) -> list[Ints]:
    """The clients of each slab; slabs are evaluated independently of one another.

    Where every client is served by at most one model, a slab has the clients of one model. Clients without a
    model are then in no slab; otherwise they are in one, but do not count towards its size. If models are
    `dense` and each client is served by its own, a slab has clients with similar numbers of samples.
    """
    counts = samples.counts()
    if plan.is_own and dense:
        return _cut_by_size(counts)
    if not _served_by_one(plan):
        weighed = np.where(plan.used.any(axis=1), counts, 0)
        return list(slabs(weighed, max(1, AT_ONCE // num_outputs)))
    serves = _serves(plan)
    cut_slabs = []
    for model in np.unique(serves[serves >= 0]):
        clients = np.flatnonzero(serves == model)
        cut_slabs += [clients[slab] for slab in slabs(counts[clients], SLAB)]
    return cut_slabs


def _cut_by_size(counts: Ints) -> list[Ints]:
    """Clients by descending `counts` (n,), in slabs that have at most SLAB samples if all had the most."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    cut_slabs, first = [], 0
    while first < len(order):
        size = max(1, SLAB // int(counts[order[first]]))
        cut_slabs.append(order[first : first + size])
        first += size
    return cut_slabs


def _by_own(predictor: Predictor, models: Floats32, samples: SampleRanges) -> Evaluation:
    """Evaluate each of n clients with its row of `models` (n, P), all at once."""
    rows, counts = rows_of(samples, np.arange(len(models)))
    results = _OfSamples(predictor.model.objective, np.zeros(len(rows)), np.zeros(len(rows)))
    logits, labels = predictor.of_each(torch.from_numpy(models), rows, counts)
    results.add(slice(None), logits, labels)
    return Evaluation(_means(results.correct, counts), _means(results.loss, counts))


def _of_slab(
    predictor: Predictor, models: Floats32, plan: InferencePlan, samples: SampleRanges
) -> Evaluation:
    of_slab = _by_one if _served_by_one(plan) else _by_many
    return of_slab(predictor, models, plan, samples)


def _by_one(predictor: Predictor, models: Floats32, plan: InferencePlan, samples: SampleRanges) -> Evaluation:
    """Evaluate each client with the only model that serves it; NaN for a client without one."""
    serves, column = _serves(plan), _column(plan)
    accuracy, loss = np.full(len(serves), np.nan), np.full(len(serves), np.nan)
    for model in np.unique(serves[serves >= 0]):
        clients = np.flatnonzero(serves == model)
        rows, counts = rows_of(samples, clients)
        results = _OfSamples(predictor.model.objective, np.zeros(len(rows)), np.zeros(len(rows)))
        use = _as_read(plan, np.repeat(clients, counts), np.repeat(column[clients], counts), results.add)
        predictor.of_one(models[model], rows, use)
        accuracy[clients] = _means(results.correct, counts)
        loss[clients] = _means(results.loss, counts)
    return Evaluation(accuracy, loss)


def _by_many(
    predictor: Predictor, models: Floats32, plan: InferencePlan, samples: SampleRanges
) -> Evaluation:
    """Evaluate each client with the weighted mean of its models' predictions, or a weighted vote."""
    accuracy, loss = np.full(len(plan.models), np.nan), np.full(len(plan.models), np.nan)
    served = plan.used
    counts = np.where(served.any(axis=1), samples.counts(), 0)
    clients = np.flatnonzero(counts > 0)
    tally_of = _Tally if is_labels(predictor.model.objective) else _Mean
    tally = tally_of(int(counts[clients].sum()), predictor.model, plan.combine)
    begins = np.cumsum(counts[clients]) - counts[clients]
    for model in np.unique(plan.models[clients][served[clients]]):
        for column in range(plan.models.shape[1]):
            uses = (plan.models[clients, column] == model) & served[clients, column]
            rows, lengths = rows_of(samples, clients[uses])
            # The positions of these samples among those of the slab.
            positions = np.arange(len(rows))
            positions += np.repeat(begins[uses] - (np.cumsum(lengths) - lengths), lengths)
            weights = np.repeat(plan.weights[clients[uses], column], lengths)
            owners = np.repeat(clients[uses], lengths)
            use = _as_read(plan, owners, np.full(len(owners), column), partial(tally.add, positions, weights))
            predictor.of_one(models[model], rows, use)
    correct, losses = tally.outcome()
    accuracy[clients] = _means(correct, counts[clients])
    loss[clients] = _means(losses, counts[clients])
    return Evaluation(accuracy, loss)


def _served_by_one(plan: InferencePlan) -> bool:
    return int(plan.used.sum(axis=1).max(initial=0)) <= 1


def _column(plan: InferencePlan) -> Ints:
    """(N,) the column of the only model that serves each client; 0 for a client without one."""
    used = plan.used
    return used.argmax(axis=1) if used.shape[1] else np.zeros(len(used), dtype=np.int64)


def _serves(plan: InferencePlan) -> Ints:
    """(N,) the only model that serves each client; -1 for a client without one."""
    used = plan.used
    serves: Ints = np.where(used.any(axis=1), plan.models[np.arange(len(used)), _column(plan)], -1)
    return serves


def _as_read(plan: InferencePlan, owners: Ints, columns: Ints, use: Use) -> Use:
    """`use`, with the logits that clients read from a model's: by their `outputs` and `offsets` of the plan.

    `owners` and `columns`, one for each of the rows: whose sample it is, and the model's column in the plan.
    """
    if plan.outputs is None and plan.offsets is None:
        return use

    def read(part: slice, logits: Tensor, labels: Tensor) -> None:
        cells = owners[part], columns[part]
        if plan.outputs is not None:
            logits = logits.gather(1, torch.from_numpy(plan.outputs[cells]))
        if plan.offsets is not None:
            logits = logits + torch.from_numpy(plan.offsets[cells]).to(logits.dtype)
        use(part, logits, labels)

    return read


@dataclass(frozen=True)
class _OfSamples:
    """The results of one model on each sample, by the objective: `correct` are its hits."""

    objective: Objective
    correct: Floats
    loss: Floats

    def add(self, part: slice, logits: Tensor, labels: Tensor) -> None:
        self.correct[part] = self.objective.hits(logits, labels).numpy()
        self.loss[part] = self.objective.losses(logits, labels).numpy()


class _Tally:
    """The combined predictions of the models added so far, sample by sample."""

    def __init__(self, num_samples: int, model: FlatModel, combine: Combine) -> None:
        self._combine = combine
        self._shares = np.zeros((num_samples, model.num_outputs))
        self._labels = np.zeros(num_samples, dtype=np.int64)
        self._loss = np.zeros(num_samples)  # used for votes: the weighted mean of the models' losses
        self._log_probability = np.full(num_samples, -np.inf)  # used for probabilities: of the true label

    def add(self, positions: Ints, weights: Floats, part: slice, logits: Tensor, labels: Tensor) -> None:
        """Add one model's predictions for a batch: the `part` of the samples at `positions`.

        `weights`: the model's weight for each of the samples at `positions`, which are all different.
        """
        positions, weights = positions[part], weights[part]
        log_probabilities = torch.log_softmax(logits.double(), 1).numpy()
        of_true = log_probabilities[np.arange(len(positions)), labels.numpy()]
        self._labels[positions] = labels.numpy()
        if self._combine == "logits":
            self._shares[positions] += weights[:, None] * logits.double().numpy()
        elif self._combine == "votes":
            self._shares[positions, logits.argmax(dim=1).numpy()] += weights
            self._loss[positions] -= weights * of_true
        else:
            self._shares[positions] += weights[:, None] * np.exp(log_probabilities)
            # In logarithms, so that a probability too small for a float still has a finite loss.
            with np.errstate(invalid="ignore"):  # of a diverged model it is NaN
                self._log_probability[positions] = np.logaddexp(
                    self._log_probability[positions], np.log(weights) + of_true
                )

    def outcome(self) -> tuple[Floats, Floats]:
        """For each sample, 1.0 if the label of largest share is the true one, else 0.0; and its loss.

        Ties go to the lowest label.
        """
        correct = (self._shares.argmax(axis=1) == self._labels).astype(np.float64)
        if self._combine == "logits":
            logits, labels = torch.from_numpy(self._shares), torch.from_numpy(self._labels)
            return correct, functional.cross_entropy(logits, labels, reduction="none").numpy()
        return correct, self._loss if self._combine == "votes" else -self._log_probability


class _Mean:
    """The weighted mean of what the models added so far predict, sample by sample, for other objectives."""

    def __init__(self, num_samples: int, model: FlatModel, combine: Combine) -> None:
        self._objective, self._of_outputs = model.objective, combine == "logits"
        shape = model.objective.output_shape(model.sample_shape, model.num_outputs)
        self._mean = torch.zeros(num_samples, *shape, dtype=torch.float64)
        self._targets: Tensor | None = None

    def add(self, positions: Ints, weights: Floats, part: slice, outputs: Tensor, targets: Tensor) -> None:
        """Add one model's outputs, as `_Tally.add` its logits."""
        place = torch.from_numpy(positions[part])
        outputs = outputs.double()
        predicted = outputs if self._of_outputs else self._objective.predicted(outputs)
        shares = torch.from_numpy(weights[part]).view(-1, *[1] * (outputs.dim() - 1))
        self._mean.index_add_(0, place, predicted * shares)
        if self._targets is None:
            self._targets = targets.new_zeros(len(self._mean), *targets.shape[1:])
        self._targets[place] = targets

    def outcome(self) -> tuple[Floats, Floats]:
        """For each sample, its hits and its loss with the mean."""
        if self._targets is None:
            return np.zeros(0), np.zeros(0)
        outputs = self._mean if self._of_outputs else self._objective.outputs_of(self._mean)
        both = outputs, self._targets
        return self._objective.hits(*both).numpy(), self._objective.losses(*both).numpy()


def _means(values: Floats, counts: Ints) -> Floats:
    """(k,) the mean of each of k clients' values; NaN for a client without values.

    `values`: those of the first client, then those of the next; `counts` (k,) has the number of each.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(owner, weights=values, minlength=len(counts))
    means = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
