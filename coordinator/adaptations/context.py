"""The context of each client, for models that take it beside every sample: `context` and `mixture`."""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from coordinator.adaptations.base import Adaptation, ClientView, Served
from coordinator.adaptations.class_means import ClassMeans, Sums
from emulator.arrays import Floats, Floats32
from emulator.errors import ConfigurationError
from emulator.messages import Work
from emulator.plugins import NoSettings


class WithContext(Adaptation):
    """Each sample is read with the context of its client behind its features, in training and scores, too.

    No configuration names it: an arm whose model takes a context has it. The context tells how the client's
    mean of its training samples, and its mean of each label less that, differ from those of all samples that
    clients have reported as they took part; a label that it lacks adds nothing. That is projected to `size`
    numbers by a Gaussian matrix, the same for all clients of a seed, by which they are in the units of
    features. It is 0 before the first report, and for samples that are read plain.

    Source: ours.
    """

    state_fields = ("_means",)
    reads: ClassVar[bool] = True

    def __init__(self, size: int) -> None:
        super().__init__(NoSettings())
        self._size = size
        self._means = ClassMeans()

    @property
    def trains(self) -> bool:
        return True

    def check_features(self, shape: tuple[int, ...], *, integers: bool) -> None:
        if integers:
            raise ConfigurationError(
                "samples here are whole numbers, such as tokens, which have no mean; take a model without it"
            )

    def adapt(self, view: ClientView) -> Served:
        context = np.zeros((len(view.clients), self._size))
        if self._means:
            common = _profile(self._means.sums)
            for held in view.held():
                own = _profile(Sums.of(held, view.num_labels)) - common
                for row, means in enumerate(np.nan_to_num(own).swapaxes(0, 1)):
                    drawn = self.streams.generator("context", row).standard_normal((own.shape[2], self._size))
                    # NOTE: `@` rounds as it has threads, and rows, and what a client gets is its own.
                    context[held.rows] += np.einsum("kd,ds->ks", means, drawn) / np.sqrt(own[0].size)
        ways = np.repeat(context[:, None], view.plan.models.shape[1], axis=1)
        return Served(view.models, view.plan, ways)

    def sent_out(self, view: ClientView, served: Served) -> Work | None:
        for held in view.held():
            self._means.add(Sums.of(held, view.num_labels))
        return self._means.reporting(view)

    def choosing_work(self, view: ClientView) -> Work | None:
        return self._means.comparing(view)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        context = np.nan_to_num(ways) if ways.shape[1] > 0 else np.zeros((len(features), self._size))
        flat = features.reshape(len(features), prod(features.shape[1:]))
        return np.hstack([flat, context.astype(np.float32)])


def _profile(sums: Sums) -> Floats:
    """(k, 1 + L, D) of each of k clients the mean of all samples, and the mean of each label less that."""
    mean = sums.mean[:, None]
    return np.concatenate([mean, sums.means - mean], axis=1)
