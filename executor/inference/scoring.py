"""The scores of several models on each request: sums of metrics over its samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import torch
from torch import Tensor

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import METRICS_BY_LABEL, Metric, SampleRanges, Scores
from executor.inference.prediction import EVALUATION_BATCH, Predictor
from executor.objectives.base import Objective
from executor.objectives.labels import is_labels
from executor.parallel import Threads
from executor.ranges import rows_of, slabs

SLAB = 4 * EVALUATION_BATCH  # samples in a slab; more where a batch of many models holds more


def score(
    predictor: Predictor,
    threads: Threads,
    models: Floats32,
    samples: SampleRanges,
    metrics: frozenset[Metric],
    wanted: Sequence[Ints],
) -> Scores:
    """The scores of every one of `models` (m, P) on each of n requests for `samples`.

    `wanted`: some of the slabs that `cut` returns; only their requests are scored, and the others' sums are
    zero.
    """
    counts, labels = samples.counts(), predictor.model.num_outputs
    sums: dict[Metric, Floats] = {name: np.zeros((len(counts), len(models))) for name in metrics}
    for name in sorted(METRICS_BY_LABEL & metrics):
        sums[name] = np.zeros((len(counts), len(models), labels, labels))

    def score_slab(requests: Ints) -> None:
        rows, lengths = rows_of(samples, requests)
        for name, values in _of_samples(predictor, models, rows, metrics).items():
            if name == "log_probabilities":
                labels_of_rows = predictor.reader.labels(rows)
                sums[name][requests] = _summed_by_label(values, lengths, labels_of_rows)
            else:
                sums[name][requests] = _summed(values, lengths, sums[name].shape[2:])

    threads.run(score_slab, wanted)
    return Scores(
        counts,
        correct=sums.get("correct"),
        loss=sums.get("loss"),
        true_class_error=sums.get("true_class_error"),
        confusion=sums.get("confusion"),
        log_probabilities=sums.get("log_probabilities"),
    )


def cut(predictor: Predictor, num_models: int, counts: Ints) -> list[Ints]:
    """The requests of each slab; slabs are scored independently of one another.

    `counts` (n,): the number of samples of each request.
    """
    if num_models == 0:
        return []
    return list(slabs(counts, max(SLAB, predictor.batch_of_many(num_models))))


def _of_samples(
    predictor: Predictor, models: Floats32, rows: Ints, metrics: frozenset[Metric]
) -> dict[Metric, Floats]:
    """(m, rows) for each metric, the value of each sample, of which `score` returns sums.

    For the confusion matrix, the index of each sample's cell in the flattened matrix; of log-probabilities
    all, (m, rows, L).
    """
    terms: dict[Metric, Floats] = {name: np.empty((len(models), len(rows))) for name in metrics}
    if "log_probabilities" in metrics:
        terms["log_probabilities"] = np.empty((len(models), len(rows), predictor.model.num_outputs))

    objective = predictor.model.objective
    add = _add_labels if is_labels(objective) else partial(_add_others, objective)
    predictor.of_many(models, rows, partial(add, terms))
    return terms


def _add_labels(terms: dict[Metric, Floats], part: slice, logits: Tensor, labels: Tensor) -> None:
    """Write into `terms` (m, rows) what the logits (m, L, b) of m models say of samples with labels (b,)."""
    if not terms.keys().isdisjoint(("correct", "confusion")):
        # NOTE: `max` also picks the first of equals; argmax takes ten times as long over a middle axis.
        likeliest = logits.max(dim=1).indices
        if "correct" in terms:
            terms["correct"][:, part] = (likeliest == labels).numpy()
        if "confusion" in terms:
            terms["confusion"][:, part] = (labels * logits.shape[1] + likeliest).numpy()
    if "log_probabilities" in terms:
        terms["log_probabilities"][:, part] = torch.log_softmax(logits, 1).mT.numpy()
    if not terms.keys().isdisjoint(("loss", "true_class_error")):
        true_labels = labels.expand(len(logits), 1, -1)
        log_probability = torch.log_softmax(logits, 1).gather(1, true_labels)[:, 0]
        if "loss" in terms:
            terms["loss"][:, part] = -log_probability.numpy()
        if "true_class_error" in terms:
            terms["true_class_error"][:, part] = (1 - log_probability.exp()).square_().numpy()


def _add_others(
    objective: Objective, terms: dict[Metric, Floats], part: slice, outputs: Tensor, targets: Tensor
) -> None:
    """Write into `terms` (m, rows) the hits and losses of m models' `outputs` (m, b, *output_shape)."""
    for name, values in terms.items():
        assert name in ("correct", "loss"), "the other metrics are of labels"
        of = objective.hits if name == "correct" else objective.losses
        values[:, part] = torch.stack([of(each, targets) for each in outputs]).numpy()


def _summed(values: Floats, lengths: Ints, cells: tuple[int, ...]) -> Floats:
    """(n, m, *cells) the sums of `values` (m, samples) over each request's samples, `lengths` (n,) of them.

    With `cells`, `values` are indices of flattened cells, and the result counts the samples in each.
    """
    models = len(values)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    bins = owner * models + np.arange(models)[:, None]
    size = len(lengths) * models
    if cells:
        per_model = prod(cells)
        counted = np.bincount(
            (bins * per_model + values.astype(np.int64)).ravel(), minlength=size * per_model
        )
        counts: Floats = counted.astype(np.float64).reshape(len(lengths), models, *cells)
        return counts
    sums = np.bincount(bins.ravel(), weights=values.ravel(), minlength=size).astype(np.float64)
    return sums.reshape(len(lengths), models)


def _summed_by_label(values: Floats, lengths: Ints, labels: Ints) -> Floats:
    """(n, m, L, L) the sums of `values` (m, samples, L) over the samples of each request and label.

    `lengths` (n,): the number of samples of each request; `labels` (samples,): their labels.
    """
    models, _, num_labels = values.shape
    sums = np.zeros((len(lengths) * num_labels, models, num_labels))
    cell = np.repeat(np.arange(len(lengths)), lengths) * num_labels + labels
    order = cell.argsort(kind="stable")
    cells, first = np.unique(cell[order], return_index=True)
    if len(cells) > 0:
        sums[cells] = np.add.reduceat(values[:, order], first, axis=1).swapaxes(0, 1)
    return sums.reshape(len(lengths), num_labels, models, num_labels).swapaxes(1, 2)
