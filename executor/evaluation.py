"""How clients are served: accuracy and loss of each with the models that answer for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Evaluation, InferencePlan, SampleRanges
from executor.prediction import Predictor
from executor.ranges import rows_of, slabs

AT_ONCE = 4_000_000  # samples times labels; bounds memory


def evaluate(
    predictor: Predictor, models: Floats32, plan: InferencePlan, samples: SampleRanges
) -> Evaluation:
    """Each client's mean accuracy and loss on its `samples`, with what `plan` says of `models` (M, P).

    NaN for a client without samples, or without a model.
    """
    weights = np.where(plan.models >= 0, plan.weights, 0.0)
    used = weights > 0
    if used.sum(axis=1).max(initial=0) <= 1:
        column = used.argmax(axis=1) if used.shape[1] else np.zeros(len(used), dtype=np.int64)
        serves = np.where(used.any(axis=1), plan.models[np.arange(len(used)), column], -1)
        return _by_one(predictor, models, serves, samples)
    return _by_many(predictor, models, plan, samples)


def _by_one(predictor: Predictor, models: Floats32, serves: Ints, samples: SampleRanges) -> Evaluation:
    """Each client with the one model that `serves` (N,) names, -1 for none."""
    accuracy, loss = np.full(len(serves), np.nan), np.full(len(serves), np.nan)
    for model in np.unique(serves[serves >= 0]):
        clients = np.flatnonzero(serves == model)
        rows, counts = rows_of(samples, clients)
        seen = _Seen(np.zeros(len(rows)), np.zeros(len(rows)))
        predictor.of_one(models[model], rows, True, seen.add)
        accuracy[clients] = _means(seen.correct, counts)
        loss[clients] = _means(seen.loss, counts)
    return Evaluation(accuracy, loss)


def _by_many(
    predictor: Predictor, models: Floats32, plan: InferencePlan, samples: SampleRanges
) -> Evaluation:
    """Each client with a mean of its models' probabilities, or a count of their votes."""
    accuracy, loss = np.full(len(plan.models), np.nan), np.full(len(plan.models), np.nan)
    served = (plan.models >= 0) & (plan.weights > 0)
    counts = np.where(served.any(axis=1), samples.counts(), 0)
    num_labels = predictor.model.num_labels
    for slab in slabs(counts, AT_ONCE // num_labels):
        clients = slab[counts[slab] > 0]
        tally = _Tally(int(counts[clients].sum()), num_labels, plan.combine == "votes")
        begins = np.cumsum(counts[clients]) - counts[clients]
        for model in np.unique(plan.models[clients][served[clients]]):
            for column in range(plan.models.shape[1]):
                asked = (plan.models[clients, column] == model) & served[clients, column]
                rows, lengths = rows_of(samples, clients[asked])
                # Where these samples are among those of the slab.
                places = np.arange(len(rows)) + np.repeat(
                    begins[asked] - (np.cumsum(lengths) - lengths), lengths
                )
                weights = np.repeat(plan.weights[clients[asked], column], lengths)
                predictor.of_one(models[model], rows, True, partial(tally.add, places, weights))
        correct, losses = tally.outcome()
        accuracy[clients] = _means(correct, counts[clients])
        loss[clients] = _means(losses, counts[clients])
    return Evaluation(accuracy, loss)


@dataclass(frozen=True)
class _Seen:
    """What one model says: of each sample, 1.0 where it is right, and the loss."""

    correct: Floats
    loss: Floats

    def add(self, part: slice, logits: Tensor, labels: Tensor) -> None:
        self.correct[part] = (logits.argmax(dim=1) == labels).numpy()
        self.loss[part] = functional.cross_entropy(logits, labels, reduction="none").numpy()


class _Tally:
    """What the models asked so far say, sample by sample."""

    def __init__(self, num_samples: int, num_labels: int, votes: bool) -> None:
        self._votes = votes
        self._shares = np.zeros((num_samples, num_labels))
        self._labels = np.zeros(num_samples, dtype=np.int64)
        self._loss = np.zeros(num_samples)  # of votes: the weighted mean of the models' own
        self._log_probability = np.full(num_samples, -np.inf)  # of probabilities: that of the true label

    def add(self, places: Ints, weights: Floats, part: slice, logits: Tensor, labels: Tensor) -> None:
        """What one model says of a `part` of the samples at `places`, each once, counted `weights` times."""
        places, weights = places[part], weights[part]
        log_probabilities = torch.log_softmax(logits.double(), 1).numpy()
        of_true = log_probabilities[np.arange(len(places)), labels.numpy()]
        self._labels[places] = labels.numpy()
        if self._votes:
            self._shares[places, logits.argmax(dim=1).numpy()] += weights
            self._loss[places] -= weights * of_true
        else:
            self._shares[places] += weights[:, None] * np.exp(log_probabilities)
            # In logarithms, so that a probability too small for a float still has a finite loss.
            self._log_probability[places] = np.logaddexp(
                self._log_probability[places], np.log(weights) + of_true
            )

    def outcome(self) -> tuple[Floats, Floats]:
        """Of each sample: 1.0 where the label of largest share, the lowest of equals, is right; its loss."""
        correct = (self._shares.argmax(axis=1) == self._labels).astype(np.float64)
        return correct, self._loss if self._votes else -self._log_probability


def _means(values: Floats, counts: Ints) -> Floats:
    """(k,) the mean of each client's run of `values`; `counts` (k,) gives their lengths, 0 makes NaN."""
    owner = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(owner, weights=values, minlength=len(counts))
    means = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
