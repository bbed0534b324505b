"""A trace: which labelled sample reaches which client at which data step. Nothing in it moves.

What does is a `TraceStream`, a cursor over it.
"""

from __future__ import annotations

import hashlib
import math
from copy import copy

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import InputError
from emulator.messages import SampleRanges
from emulator.ports import Split
from traces.arrivals import DTYPES, NOISE_NUMBERS, SPLITS, Arrivals
from traces.images import ImageSet
from traces.samples import NoisyImages
from traces.tables.base import CHUNK_ROWS, Table
from traces.tables.flipped_labels import FlippedLabels

DIGESTED_PIXELS = 2**22
"""Pixels that are turned into features at once, for the digest."""


class Trace:
    """An immutable table of samples, and the features behind them.

    A sample is its image plus sensor noise: `noise` times a stretch of one shared table of standard normal
    numbers that starts where the row says. So every row has noise of its own, the same whenever it is read,
    and none of it is stored (the trick is that of evolution strategies' shared noise table, Salimans et al.
    2017, section 2.1). Pixels are not clipped.

    A training sample is held for `retain_steps` data steps, a test sample for `test_retain_steps` (the same,
    unless given). `concepts` (steps + 1, num_clients), where the truth is known, says of which concept each
    client's training arrivals of each step are; its last row belongs to the last test samples. Such a trace
    tests, then trains: the test samples of a step are the training arrivals of the next.
    """

    def __init__(
        self,
        images: ImageSet,
        table: Table,
        *,
        retain_steps: int,
        rounds_per_step: int,
        noise: float,
        generator: np.random.Generator,
        test_retain_steps: int | None = None,
        concepts: Ints | None = None,
    ) -> None:
        table.seal()
        self.table = table
        self.retain_steps = retain_steps
        self.test_retain_steps = retain_steps if test_retain_steps is None else test_retain_steps
        self.concepts = concepts
        self.rounds_per_step = rounds_per_step
        self.noise = noise
        self._images = images
        normal = generator.standard_normal(NOISE_NUMBERS, dtype=np.float32)
        self.samples = NoisyImages(images, noise, normal)
        self._refuse_clients_without_data()

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_clients(self) -> int:
        return self.table.num_clients

    @property
    def last_step(self) -> int:
        """The data step of the last arrivals."""
        return self.table.last_step

    @property
    def num_labels(self) -> int:
        return self._images.num_labels

    @property
    def label_names(self) -> tuple[str, ...]:
        """What the table that the labels come from calls them, class by class; empty where there is none."""
        return self._images.label_names

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self._images.shape

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape) the samples of table rows `rows`."""
        starts = self.table.take("noise_start", rows) if self.noise > 0 else None
        return self.samples.features(self.table.take("image", rows).astype(np.int64), starts)

    def labels(self, rows: Ints) -> Ints:
        """(n,) the labels of table rows `rows`."""
        return self.table.take("label", rows).astype(np.int64)

    def held(self, ids: Ints, split: Split, step: int) -> SampleRanges:
        """What each client holds at `step`: arrivals of the newest, retained steps, one range each."""
        return self._arrivals(ids, split, self._oldest(split, step), step)

    def arrived(self, ids: Ints, first_step: int, last_step: int, step: int) -> SampleRanges:
        """What each client holds at `step` of the training samples that arrived in [first_step, last_step].

        What it owned from the start counts as arrived at step 0.
        """
        oldest = self._oldest("train", step)
        if first_step > 0:
            oldest = max(oldest, first_step)
        newest = min(step, last_step) if last_step >= 0 else self.table.first_step - 1
        return self._arrivals(ids, "train", oldest, newest)

    def with_flipped_labels(self, clients: Ints) -> Trace:
        """This trace, where the training samples of `clients`, ascending, have label L - 1 - y instead of y.

        The pixels, and all the table stores, are shared.
        """
        if len(clients) == 0:
            return self
        flipped = copy(self)
        flipped.table = FlippedLabels(self.table, clients, self.num_labels)
        return flipped

    def columns(self) -> Arrivals:
        """All columns, whole and in the order of the table: for traces that fit into memory."""
        return Arrivals(**{name: self.table.column(name, 0, self.num_clients) for name in DTYPES})

    def digest(self) -> str:
        """sha256 over every column, for the manifest."""
        state = hashlib.sha256()
        chunk = max(1, CHUNK_ROWS * self.num_clients // max(1, len(self)))
        for name in DTYPES:
            for first in range(0, self.num_clients, chunk):
                last = min(first + chunk, self.num_clients)
                state.update(self.table.column(name, first, last).tobytes())
                self.table.drop_pages()
        drawn = self._drawn_images()
        chunk = max(1, DIGESTED_PIXELS // max(1, math.prod(self.sample_shape)))
        for first in range(0, len(drawn), chunk):
            state.update(self._images.features(drawn[first : first + chunk]).tobytes())
        state.update(repr((self.num_clients, self.retain_steps, self.rounds_per_step, self.noise)).encode())
        # Only where a trace has it, so that those without keep the digest that their runs are filed under.
        if self.test_retain_steps != self.retain_steps:
            state.update(f"test {self.test_retain_steps}".encode())
        if self.concepts is not None:
            state.update(f"concepts {self.concepts.shape}".encode())
            state.update(np.ascontiguousarray(self.concepts, dtype=np.int64).tobytes())
        return state.hexdigest()

    def _drawn_images(self) -> Ints:
        """The images, ascending, that any row is of."""
        image = self.table.stored("image")
        drawn = np.zeros(len(self._images.pixels), dtype=np.bool_)
        for first in range(0, len(image), CHUNK_ROWS):
            drawn[image[first : first + CHUNK_ROWS]] = True
        self.table.drop_pages()
        return np.flatnonzero(drawn)

    def _oldest(self, split: Split, step: int) -> int:
        """The earliest arrival that is still held at `step`."""
        retained = self.retain_steps if split == "train" else self.test_retain_steps
        return step - retained + 1

    def _arrivals(self, ids: Ints, split: Split, oldest: int, newest: int) -> SampleRanges:
        """The rows of each client that arrived in [oldest, newest]: one range each."""
        return SampleRanges.one_each(*self.table.ranges(ids, SPLITS.index(split), oldest, newest + 1))

    def _refuse_clients_without_data(self) -> None:
        everyone = np.arange(self.num_clients)
        for split in SPLITS:
            empty = np.flatnonzero(self.held(everyone, split, 0).counts() == 0)
            if len(empty):
                raise InputError(
                    f"trace: client {empty[0]} has no {split} samples at the start "
                    f"({len(empty)} of {self.num_clients} clients have none); every client needs at least one"
                )


class TraceStream:
    """A cursor over a trace: the `SampleStream` of one run.

    Label counts follow arrivals and expiries only; advancing costs what changes, not what is held.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._step = -1
        # The smallest integers that hold any count: a million clients' ten labels take ten megabytes.
        dtype = np.min_scalar_type(trace.table.most_held(trace.retain_steps))
        self._counts = np.zeros((trace.num_clients, trace.num_labels), dtype=dtype)

    @property
    def num_clients(self) -> int:
        return self.trace.num_clients

    @property
    def num_labels(self) -> int:
        return self.trace.num_labels

    @property
    def step(self) -> int:
        """The present data step; -1 before the first call of `advance_to_round`."""
        return self._step

    def advance_to_round(self, round_: int) -> Ints:
        step = round_ // self.trace.rounds_per_step
        if step < self._step:
            raise ValueError(f"round {round_} (step {step}) lies before the present step {self._step}")
        if step == self._step:
            return np.zeros(0, dtype=np.int64)
        retain = self.trace.retain_steps
        first_call = self._step < 0
        # Held before: (old - retain, old]; held now: (step - retain, step]. Where whole retention windows are
        # skipped, what arrived and expired on the way was never counted: it changed clients, but no count.
        old = step - retain if first_call else self._step
        changed = np.full(self.num_clients, first_call)
        if not first_call:
            self._follow(old - retain, min(old, step - retain), np.subtract, changed)
            self._follow(old, step - retain, None, changed)
        self._follow(max(old, step - retain), step, np.add, changed)
        self._step = step
        self.trace.table.drop_pages()
        return np.flatnonzero(changed)

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        return self.trace.held(ids, split, self._step)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        return self.trace.arrived(ids, first_step, last_step, self._step)

    @property
    def concepts(self) -> Ints | None:
        return self._concepts_of(self._step)

    @property
    def test_concepts(self) -> Ints | None:
        return self._concepts_of(self._step + 1)

    def label_histograms(self, ids: Ints) -> Floats:
        counts = self._counts[ids]
        histograms: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return histograms

    def _concepts_of(self, batch: int) -> Ints | None:
        """(N,) the row of the table of concepts; None where the trace has none."""
        if self.trace.concepts is None:
            return None
        if self._step < 0:
            raise ValueError("concepts are asked for before the first call of advance_to_round")
        row: Ints = self.trace.concepts[batch]
        return row

    def _follow(self, after: int, until: int, change: np.ufunc | None, changed: Bools) -> None:
        """Mark whose training samples arrived in (after, until], and `change` the counts by them."""
        table, counts = self.trace.table, self._counts.reshape(-1)
        one = counts.dtype.type(1)
        for step in range(max(after + 1, table.first_step), min(until, table.last_step) + 1):
            for client, label in table.trained_at(step):
                changed[client] = True
                if change is not None:
                    # NOTE: of one type and in place, `at` takes a nanosecond or two a sample.
                    change.at(counts, client * self.num_labels + label, one)
