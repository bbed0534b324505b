"""A trace: which labelled sample reaches which client at which data step. Columns, and nothing that moves.

The rows are sorted by (client, split, arrival), so what a client holds of one split at any step is one slice
[first, last) of the table, found by binary search.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import InputError
from emulator.messages import SampleRanges
from emulator.ports import Split
from traces.arrivals import NOISE_NUMBERS, SPLITS, Arrivals
from traces.images import ImageSet


class Trace:
    """Immutable columns of shape (rows,), and the features behind them.

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
        arrivals: Arrivals,
        *,
        num_clients: int,
        retain_steps: int,
        rounds_per_step: int,
        noise: float,
        generator: np.random.Generator,
        test_retain_steps: int | None = None,
        concepts: Ints | None = None,
    ) -> None:
        order = np.lexsort((arrivals.arrival, arrivals.split, arrivals.client))
        self.client = arrivals.client[order]
        self.split = arrivals.split[order]
        self.arrival = arrivals.arrival[order]
        self.label = arrivals.label[order]
        self.image = arrivals.image[order]
        self._noise_start = arrivals.noise_start[order]
        self.num_clients = num_clients
        self.retain_steps = retain_steps
        self.test_retain_steps = retain_steps if test_retain_steps is None else test_retain_steps
        self.concepts = concepts
        self.rounds_per_step = rounds_per_step
        self.noise = noise
        self._images = images
        self._pixels = int(np.prod(images.shape))
        self._normal = generator.standard_normal(NOISE_NUMBERS, dtype=np.float32)
        self._first_arrival = int(self.arrival.min(initial=0))
        self.last_step = int(self.arrival.max(initial=0))
        self._span = self.last_step - self._first_arrival + 2
        self._key = self._key_of(self.client, self.split, self.arrival)
        self._refuse_clients_without_data()

    def __len__(self) -> int:
        return len(self.client)

    @property
    def num_labels(self) -> int:
        return self._images.num_labels

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self._images.shape

    def features(self, rows: Ints) -> Floats32:
        """(n, *sample_shape) the samples of table rows `rows`."""
        samples = self._images.features(self.image.take(rows).astype(np.int64))
        if self.noise > 0:
            windows = np.lib.stride_tricks.sliding_window_view(self._normal, self._pixels)
            samples += np.float32(self.noise) * windows[self._noise_start[rows]].reshape(samples.shape)
        return samples

    def labels(self, rows: Ints) -> Ints:
        """(n,) the labels of table rows `rows`."""
        return self.label[rows].astype(np.int64)

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
        newest = min(step, last_step) if last_step >= 0 else self._first_arrival - 1
        return self._arrivals(ids, "train", oldest, newest)

    @cached_property
    def train_by_arrival(self) -> tuple[Ints, Ints]:
        """Training rows in order of arrival, and their arrival steps: what advancing reads."""
        rows = np.flatnonzero(self.split == SPLITS.index("train"))
        rows = rows[np.argsort(self.arrival[rows], kind="stable")]
        return rows, self.arrival[rows].astype(np.int64)

    def digest(self) -> str:
        """sha256 over every column, for the manifest."""
        state = hashlib.sha256()
        for column in (self.client, self.split, self.arrival, self.label, self.image, self._noise_start):
            state.update(np.ascontiguousarray(column).tobytes())
        state.update(self._images.features(np.unique(self.image).astype(np.int64)).tobytes())
        state.update(repr((self.num_clients, self.retain_steps, self.rounds_per_step, self.noise)).encode())
        # Only where a trace has it, so that those without keep the digest that their runs are filed under.
        if self.test_retain_steps != self.retain_steps:
            state.update(f"test {self.test_retain_steps}".encode())
        if self.concepts is not None:
            state.update(f"concepts {self.concepts.shape}".encode())
            state.update(np.ascontiguousarray(self.concepts, dtype=np.int64).tobytes())
        return state.hexdigest()

    def _oldest(self, split: Split, step: int) -> int:
        """The earliest arrival that is still held at `step`."""
        retained = self.retain_steps if split == "train" else self.test_retain_steps
        return step - retained + 1

    def _arrivals(self, ids: Ints, split: Split, oldest: int, newest: int) -> SampleRanges:
        """The rows of each client that arrived in [oldest, newest]: one range each."""
        index = np.int64(SPLITS.index(split))
        until = max(min(newest, self.last_step) + 1, self._first_arrival)
        since = min(max(oldest, self._first_arrival), until)
        first = np.searchsorted(self._key, self._key_of(ids, index, np.int64(since)))
        last = np.searchsorted(self._key, self._key_of(ids, index, np.int64(until)))
        return SampleRanges.one_each(first.astype(np.int64), last.astype(np.int64))

    def _key_of(
        self, client: np.ndarray, split: np.ndarray | np.int64, arrival: np.ndarray | np.int64
    ) -> Ints:
        """One integer that sorts like (client, split, arrival)."""
        slot: Ints = client.astype(np.int64) * len(SPLITS) + split
        return slot * self._span + (arrival - self._first_arrival)

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
        self._counts = np.zeros((trace.num_clients, trace.num_labels), dtype=np.int64)

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
        first_call = self._step < 0
        retain = self.trace.retain_steps
        rows, arrival = self.trace.train_by_arrival
        # Held before: (old - retain, old]; held now: (step - retain, step]. Where whole retention windows are
        # skipped, what arrived and expired on the way was never counted: it changed clients, but no count.
        old = self._step if not first_call else step - retain
        gone = (
            self._between(arrival, old - retain, min(old, step - retain)) if not first_call else slice(0, 0)
        )
        come = self._between(arrival, max(old, step - retain), step)
        passed = self._between(arrival, old, step - retain) if step - retain > old else slice(0, 0)
        self._count(rows[gone], -1)
        self._count(rows[come], +1)
        self._step = step
        if first_call:
            return np.arange(self.num_clients)
        changed = np.concatenate([rows[gone], rows[passed], rows[come]])
        return np.unique(self.trace.client[changed]).astype(np.int64)

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

    @staticmethod
    def _between(arrival: Ints, after: int, until: int) -> slice:
        """The slice of rows, sorted by arrival, that arrived in (after, until]."""
        return slice(*np.searchsorted(arrival, (after, until), side="right"))

    def _count(self, rows: Ints, sign: int) -> None:
        np.add.at(self._counts, (self.trace.client[rows], self.trace.label[rows]), sign)
