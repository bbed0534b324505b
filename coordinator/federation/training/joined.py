"""Updates that were trained in several waves, as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.messages import ArrayUpdates, Updates


@dataclass(frozen=True)
class JoinedUpdates:
    """Implements `emulator.messages.Updates` over several of them.

    Row i is row `order[i]` of the `parts`, one after the other. Sums are taken within each part first.
    """

    parts: Sequence[Updates]
    order: Ints
    models: Ints | None = None  # (n,) once they are absorbed into other models
    late: Ints | None = None  # (n,) staleness; None: all 0

    @classmethod
    def of(cls, parts: Sequence[Updates], places: Sequence[Ints]) -> JoinedUpdates:
        """The updates of all parts; row j of part k is row `places[k][j]`."""
        return cls(parts, np.argsort(np.concatenate(places)))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def client(self) -> Ints:
        return self._joined([part.client for part in self.parts])

    @property
    def model(self) -> Ints:
        return self._joined([part.model for part in self.parts]) if self.models is None else self.models

    @property
    def num_samples(self) -> Ints:
        return self._joined([part.num_samples for part in self.parts])

    @property
    def num_steps(self) -> Ints:
        return self._joined([part.num_steps for part in self.parts])

    @property
    def staleness(self) -> Ints:
        return np.zeros(len(self), dtype=np.int64) if self.late is None else self.late

    @property
    def metrics(self) -> Mapping[str, Floats]:
        names = self.parts[0].metrics
        return {name: self._joined([part.metrics[name] for part in self.parts]) for name in names}

    @property
    def state(self) -> Mapping[str, Floats32]:
        names = self.parts[0].state
        return {name: self._joined([part.state[name] for part in self.parts]) for name in names}

    @property
    def finite(self) -> Bools:
        return self._joined([part.finite for part in self.parts])

    @property
    def statistics(self) -> Floats32:
        return self._joined([part.statistics for part in self.parts])

    def take(self, rows: Ints) -> JoinedUpdates:
        models, late = (None if column is None else column[rows] for column in (self.models, self.late))
        return JoinedUpdates(self.parts, self.order[rows], models, late)

    def absorbed(self, model: Ints, staleness: Ints) -> JoinedUpdates:
        return JoinedUpdates(self.parts, self.order, model, staleness)

    def weighted_sum(self, weights: Floats) -> Floats:
        lengths = [len(part) for part in self.parts]
        spread = np.zeros((len(weights), sum(lengths)))
        spread[:, self.order] = weights
        ends = np.cumsum(lengths)
        total: Floats = np.zeros((1, 1))
        for part, end in zip(self.parts, ends.tolist(), strict=True):
            total = total + part.weighted_sum(spread[:, end - len(part) : end])
        return total

    def gram(self) -> Floats:
        return self._arrays().gram()

    def norms(self) -> Floats:
        return self._joined([part.norms() for part in self.parts])

    def project(self, vectors: Floats | Floats32) -> Floats:
        return self._joined([part.project(vectors) for part in self.parts])

    def rows(self, columns: slice) -> Floats32:
        return self._joined([part.rows(columns) for part in self.parts])

    def _arrays(self) -> ArrayUpdates:
        return ArrayUpdates(self.client, self.model, self.num_samples, self.num_steps, self.rows(slice(None)))

    def _joined(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """A column, given for each part, in the order of the rows; numbers of batches are padded."""
        width = max(column.shape[1:] for column in columns)
        if any(column.shape[1:] != width for column in columns):
            fills = [np.full((len(column), *width), np.nan) for column in columns]
            for fill, column in zip(fills, columns, strict=True):
                fill[:, : column.shape[1]] = column
            columns = fills
        joined: np.ndarray = np.concatenate(columns)[self.order]
        return joined
