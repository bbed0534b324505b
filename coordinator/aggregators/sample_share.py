"""The server of FedConD and ASO-Fed: an update counts by its client's share of all samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from coordinator.aggregators.base import Aggregator
from coordinator.aggregators.fedavg import sums
from coordinator.view import RunFacts, View
from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import ConfigurationError
from emulator.messages import Updates
from emulator.plugins import Settings
from emulator.ports import Segment


class SampleShareSettings(Settings):
    """What is done to the first layer after a step."""

    feature_learning: Literal["off", "literal"] = Field(
        "off",
        description="literal: multiply the first layer's weights by their attention after each step, as "
        "ASO-Fed prints it, which destroys the model",
    )


class SampleShare(Aggregator):
    """Adds each update, times its client's share of the samples of all clients of the model.

    model += sum_k n_k / N update_k over the updates of the model in this step, with the samples n_k that each
    trained on, and N those that all members of the model hold now; a client that belongs to several models
    counts in each. N is at least the sum of the n_k: members may have left, or samples expired, since the
    updates were dispatched.

    With `feature_learning = "literal"` the weights W of the first layer, rows by outputs, then become A W,
    entry by entry, where A is the softmax of |W| along each row; only of models with an update in the step.
    As A is below 1, the weights shrink at every step, to nothing.

    Source: Chen et al., "Asynchronous Federated Learning for Sensor Data with Concept Drift", 2021 (FedConD),
    algorithm 1; Chen et al., "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data",
    2020 (ASO-Fed), algorithm 1, and its feature learning.

    Of three clients with 2, 3 and 5 samples, the one with 3 moves their model by 10:

    >>> from types import SimpleNamespace as Of
    >>> from emulator.messages import ArrayUpdates, SampleRanges
    >>> one = np.ones(1, dtype=int)
    >>> updates = ArrayUpdates(one, 4 * one, 3 * one, one, np.full((1, 1), 10.0, dtype="f"))
    >>> view = Of(model_ids=4 * one, models=np.zeros((1, 1)), members=np.zeros((3, 1), int), num_clients=3)
    >>> view.held = SampleRanges.one_each(np.zeros(3, int), np.array([2, 3, 5])).take
    >>> SampleShare(SampleShareSettings()).aggregate(updates, view)
    array([[3.]], dtype=float32)
    """

    Settings = SampleShareSettings
    settings: SampleShareSettings

    def check_run(self, run: RunFacts) -> None:
        feature_learning = self.settings.feature_learning
        if feature_learning != "off" and first_layer(run.layout) is None:
            raise ConfigurationError(
                f"aggregator.feature_learning = {feature_learning!r}: the model has no trainable tensor of "
                f"two dimensions or more; leave it out"
            )

    def weights(self, model: Ints, num_samples: Ints, view: View) -> Floats:
        return _weights(model, num_samples, view.model_ids, _samples_of_models(view))

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        samples, ids = _samples_of_models(view), view.model_ids
        rows = np.zeros(int(ids.max()) + 1, dtype=np.int64)  # by id
        rows[ids] = np.arange(len(ids))

        def weights(some: Updates, of: Ints) -> Floats:
            return _weights(some.model, some.num_samples, of, samples[rows[of]])

        wide = sums(updates, view, weights)
        wide += view.models
        models: Floats32 = wide.astype(np.float32)
        if self.settings.feature_learning == "literal":
            segment = first_layer(view.layout)
            assert segment is not None, "a model without one is refused"
            for row in np.unique(rows[updates.model[updates.num_samples > 0]]).tolist():
                layer = models[row, segment.first : segment.last].reshape(segment.shape[0], -1)
                models[row, segment.first : segment.last] = attended(layer).ravel()
        return models


def first_layer(layout: Mapping[str, Segment]) -> Segment | None:
    """The weights of the first layer, the first trainable tensor of two or more dimensions; None without."""
    return next((part for part in layout.values() if part.trainable and len(part.shape) > 1), None)


def attended(weights: Floats32) -> Floats:
    """`weights` (rows, columns), times the softmax of their absolute values along each row.

    The softmax of (0, ln 3) is (1/4, 3/4):

    >>> attended(np.array([[0.0, -np.log(3)]])).round(6).tolist() == [[0.0, round(-0.75 * np.log(3), 6)]]
    True
    """
    wide = weights.astype(np.float64)
    size = np.abs(wide)
    powers = np.exp(size - size.max(axis=1, keepdims=True))
    learned: Floats = wide * (powers / powers.sum(axis=1, keepdims=True))
    return learned


def _samples_of_models(view: View) -> Floats:
    """(M,) the training samples that all members of each model hold now."""
    counts, totals = view.held(np.arange(view.num_clients)).counts(), np.zeros(len(view.model_ids))
    for members in view.members.T:
        belongs = members >= 0
        totals += np.bincount(members[belongs], weights=counts[belongs], minlength=len(totals))
    return totals


def _weights(model: Ints, num_samples: Ints, ids: Ints, samples: Floats) -> Floats:
    """(M, n) the weight of each of n updates in the step of its model, of those with these ids (M,).

    `samples` (M,) are those of each model's members.
    """
    shares = np.where(model == ids[:, None], num_samples, 0.0)
    weights: Floats = shares / np.maximum(np.maximum(samples, shares.sum(axis=1)), 1)[:, None]
    return weights
