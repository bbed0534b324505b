"""Samples read in several ways: as a client that undoes a change of its features or labels reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import cached_property
from math import prod
from typing import Protocol, cast

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.ports import SampleReader, Tokens, WithTargets
from emulator.storage.stateful import Stateful

AT_ONCE = 2**22
"""Numbers of ways that are read at once."""

Read = Callable[[Floats32, Floats], Floats32]
"""Features (n, *shape) of samples, and the numbers (n, K) of the way of each -> (n, ...) as they are read."""


class Samples(SampleReader, Sized, Protocol):
    """A reader that knows how many rows it has."""


class Ways(Stateful):
    """Reads the samples of another reader in ways: row w N + r is row r of its N rows, read in way w.

    Way 0 is plain. A way has numbers (K,), which `read` knows what to do with, and the label (L,) as which
    each label is read. Nothing else of a row changes: its key, and so whether it is held out, is that of r.

    State: the ways that are known, by ascending number.
    """

    state_fields = ("_way", "_numbers", "_labels", "_next")

    def __init__(self, reader: Samples, read: Read) -> None:
        """Know no way but the plain one, whose numbers are NaN for `read`, or (n, 0) if no other is known."""
        self._reader = reader
        self._read = read
        self._next = 1
        self._way = np.zeros(0, dtype=np.int64)
        self._numbers: Floats = np.zeros((0, 0))
        self._labels: Ints = np.zeros((0, reader.num_labels), dtype=np.int64)

    def __len__(self) -> int:
        """N, the rows of the plain way."""
        return len(self._reader)

    @property
    def num_known(self) -> int:
        """The number of ways besides the plain one."""
        return len(self._way)

    def add(self, numbers: Floats, labels: Ints | None = None) -> Ints:
        """Add n ways; returns (n,) what to add to rows so that they are read so.

        Args:
            numbers: (n, K) of each way, NaN for features as they are; K is the same at each call.
            labels: (n, L) the label as which each label is read; None: as it is.
        """
        added = self._next + np.arange(len(numbers))
        if labels is None:
            labels = np.tile(np.arange(self._reader.num_labels), (len(numbers), 1))
        before = self._numbers if self.num_known else numbers[:0]
        self._way = np.append(self._way, added)
        self._numbers = np.concatenate([before, numbers])
        self._labels = np.concatenate([self._labels, labels])
        self._next += len(numbers)
        return added * len(self)

    @contextmanager
    def for_now(self, numbers: Floats, labels: Ints | None = None) -> Iterator[Ints]:
        """As `add`, and forget these ways at the end."""
        before = self._way, self._numbers, self._labels, self._next
        yield self.add(numbers, labels)
        self._way, self._numbers, self._labels, self._next = before

    @property
    def num_features(self) -> int:
        """D, the features of a sample in the plain way."""
        return prod(self._reader.sample_shape)

    def plain(self, rows: Ints) -> Floats32:
        """(n, *shape) the features of rows (n,) of the plain way, as the other reader has them."""
        return self._reader.features(rows)

    def keep(self, rows: Ints) -> None:
        """Forget all ways but those of `rows` (n,)."""
        kept = np.isin(self._way, rows // len(self))
        self._way, self._numbers, self._labels = self._way[kept], self._numbers[kept], self._labels[kept]

    # -- as the executor reads it ---------------------------------------------------------------------------

    @cached_property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample's features, as they are read."""
        none = np.zeros((0, *self._reader.sample_shape), dtype=np.float32)
        return self._read(none, np.zeros((0, 0))).shape[1:]

    @property
    def num_labels(self) -> int:
        """L, the number of labels."""
        return self._reader.num_labels

    @property
    def tokens(self) -> Tokens | None:
        """What the tokens are that the samples consist of; None: they are none."""
        return getattr(self._reader, "tokens", None)

    @property
    def integers(self) -> bool:
        """Whether features are whole numbers, as tokens are."""
        return self.tokens is not None

    @property
    def num_targets(self) -> int:
        """K, the number of targets that samples have beside their label."""
        return int(getattr(self._reader, "num_targets", 0))

    def targets(self, rows: Ints) -> Floats32:
        """(n, K) the targets of rows (n,), however they are read."""
        return cast(WithTargets, self._reader).targets(rows % len(self))

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape) the features of rows (n,)."""
        some = max(1, AT_ONCE // max(1, self._numbers.shape[1]))
        firsts = range(0, max(1, len(rows)), some)
        parts = [self._features(rows[first : first + some]) for first in firsts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _features(self, rows: Ints) -> Floats32:
        way, row = np.divmod(rows, len(self))
        numbers = np.full((len(rows), self._numbers.shape[1]), np.nan)
        numbers[way > 0] = self._numbers[self._place(way[way > 0])]
        return self._read(self._reader.features(row), numbers)

    def labels(self, rows: Ints) -> Ints:
        """(n,) the labels of rows (n,), each as it is read."""
        way, row = np.divmod(rows, len(self))
        labels = self._reader.labels(row)
        other = way > 0
        if not other.any():
            return labels
        labels = labels.copy()
        labels[other] = self._labels[self._place(way[other]), labels[other]]
        return labels

    def sample_keys(self, rows: Ints) -> Ints:
        """(n, 2) which sample each of rows (n,) has, in whatever way."""
        return self._reader.sample_keys(rows % len(self))

    def reference_rows(self, per_label: int) -> Ints:
        """Rows in the plain way; see `SampleReader`."""
        return self._reader.reference_rows(per_label)

    def _place(self, way: Ints) -> Ints:
        """(n,) where ways (n,) are; KeyError if one is not known, or not any more."""
        place = self._way.searchsorted(way)
        if not np.array_equal(self._way.take(place, mode="clip"), way) if self.num_known else len(way):
            raise KeyError(f"ways {np.setdiff1d(way, self._way)[:3].tolist()} are not known")
        return place
