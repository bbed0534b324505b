"""Scores of the toy models: sums for four metrics, a fixed function of parameters and table rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.messages import Metric, Scores

METRICS: frozenset[Metric] = frozenset(get_args(Metric))


def target_of(concepts: Ints) -> Floats:
    """The target of each concept: the number towards which a task on it moves a model's weights.

    The weights of a toy model start at a whole number (`ports.initial`). No target equals one below 4, so
    none of the first four initial models is at a target already.
    """
    return 1.3 * concepts.astype(np.float64) + 1.1


def scores_of(
    models: Floats32, rows: Sequence[Ints], row_concept: Ints, num_labels: int, metrics: frozenset[Metric]
) -> Scores:
    """The scores of all `models` (m, P) on each of n requests for `rows` of the table.

    A model's value is the mean of its weights, plus a hundredth of the sum of its mask, which distinguishes
    models of equal weights. It gives the true label a probability that falls with the distance between its
    value and the target of the row's concept, and is right where the probability exceeds a number that
    depends on the row alone. Row r has label r modulo L; a wrong model predicts the next label.
    """
    shape = (len(rows), len(models))
    correct, loss, error = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    confusion = np.zeros((*shape, num_labels, num_labels))
    value = models[:, :3].astype(np.float64).mean(axis=1) + 0.01 * models[:, 3:].sum(axis=1)
    for request, table_rows in enumerate(rows):
        distance = np.abs(value[:, None] - target_of(row_concept[table_rows]))
        probability = 0.02 + 0.97 * np.exp(-distance)  # (m, rows)
        right = probability > (table_rows * 0.6180339887) % 1.0
        correct[request] = right.sum(axis=1)
        loss[request] = -np.log(probability).sum(axis=1)
        error[request] = ((1 - probability) ** 2).sum(axis=1)
        if "confusion" not in metrics:
            continue
        true = np.broadcast_to(table_rows % num_labels, right.shape)
        taken_for = np.where(right, true, (true + 1) % num_labels)
        np.add.at(confusion[request], (np.arange(len(models))[:, None], true, taken_for), 1.0)
    return Scores(
        counts=np.array([len(table_rows) for table_rows in rows], dtype=np.int64),
        correct=correct if "correct" in metrics else None,
        loss=loss if "loss" in metrics else None,
        true_class_error=error if "true_class_error" in metrics else None,
        confusion=confusion if "confusion" in metrics else None,
    )
