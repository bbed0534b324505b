"""The means of labels over all clients that have reported so far: what each compares its own with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coordinator.adaptations.base import ClientView, Held
from emulator.arrays import Floats
from emulator.messages import BYTES_PER_REPORTED_NUMBER, Work
from emulator.storage.stateful import Stateful


@dataclass(frozen=True)
class Sums:
    """Over the samples of k clients: `counts` (k, L, 1) and `sums` (k, L, D) by label, `squares` (k, D)."""

    counts: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, held: Held, num_labels: int) -> Sums:
        """The sums of each of the k clients of `held`.

        >>> features = np.array([[1.0], [3.0], [5.0]], dtype=np.float32)
        >>> held = Held(np.arange(2), features, labels=np.array([1, 1, 0]), owner=np.array([0, 0, 1]))
        >>> of_labels = Sums.of(held, num_labels=2)
        >>> of_labels.means[:, :, 0].tolist(), of_labels.deviations.tolist()
        ([[nan, 2.0], [5.0, nan]], [[1.0], [0.0]])
        """
        flat = held.features.reshape(len(held.features), -1).astype(np.float64)
        cell = held.owner * num_labels + held.labels
        shape = len(held.rows), num_labels
        counts = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(*shape, 1).astype(np.float64)
        sums, squares = np.zeros((shape[0] * shape[1], flat.shape[1])), np.zeros((shape[0], flat.shape[1]))
        order = cell.argsort(kind="stable")
        cells, first = np.unique(cell[order], return_index=True)
        sums[cells] = np.add.reduceat(flat[order], first)
        owners, first = np.unique(held.owner, return_index=True)
        squares[owners] = np.add.reduceat(flat * flat, first)
        return cls(counts, sums.reshape(*shape, -1), squares)

    @property
    def total(self) -> Sums:
        """The same over all clients, as of a single one."""
        return Sums(*(column.sum(axis=0, keepdims=True) for column in vars(self).values()))

    @property
    def means(self) -> Floats:
        """(k, L, D) the mean of each label; NaN of one without samples."""
        with np.errstate(invalid="ignore"):
            means: Floats = self.sums / self.counts
        return means

    @property
    def mean(self) -> Floats:
        """(k, D) the mean of each feature over the samples of all labels."""
        mean: Floats = self.sums.sum(axis=1) / self.counts.sum(axis=1)
        return mean

    @property
    def deviations(self) -> Floats:
        """(k, D) the standard deviation of each feature over the samples of all labels."""
        variance = self.squares / self.counts.sum(axis=1) - self.mean**2
        deviations: Floats = np.sqrt(np.maximum(variance, 0.0))
        return deviations


class ClassMeans(Stateful):
    """The sums of all samples that clients have reported.

    State: those of `Sums`, of one client; empty before the first report.
    """

    state_fields = ("_counts", "_sums", "_squares")

    def __init__(self) -> None:
        self._counts: Floats = np.zeros((0, 0, 1))
        self._sums: Floats = np.zeros((0, 0, 0))
        self._squares: Floats = np.zeros((0, 0))

    def __bool__(self) -> bool:
        """Whether anybody has reported."""
        return len(self._counts) > 0

    @property
    def sums(self) -> Sums:
        """The sums over all reports, once somebody has reported."""
        return Sums(self._counts, self._sums, self._squares)

    def add(self, reported: Sums) -> None:
        """Add the reports of k clients."""
        total = reported.total
        if self:
            total = Sums(
                *(a + b for a, b in zip(vars(self.sums).values(), vars(total).values(), strict=True))
            )
        self._counts, self._sums, self._squares = total.counts, total.sums, total.squares

    def comparing(self, view: ClientView) -> Work:
        """What it costs each client of the view to be sent the sums; nothing before the first report."""
        return Work.of(len(view.clients), download_bytes=self._num_bytes)

    def reporting(self, view: ClientView) -> Work:
        """What it costs each client of the view to report its own sums, which have been added."""
        return Work.of(len(view.clients), upload_bytes=self._num_bytes)

    @property
    def _num_bytes(self) -> float:
        numbers = self._counts.size + self._sums.size + self._squares.size
        return float(BYTES_PER_REPORTED_NUMBER * numbers)
