"""A trace: which labelled sample reaches which client at which data step. Columns, and nothing that moves.

The rows are sorted by (client, split, arrival), so what a client holds of one split at any step is one slice
[first, last) of the table, found by binary search.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from emulator.arrays import Floats, Floats32, Ints
from emulator.errors import InputError
from emulator.messages import SampleRanges
from emulator.ports import Split
from traces.images import ImageSet

SPLITS: tuple[Split, ...] = ("train", "test")

NOISE_NUMBERS = 2**20
"""Length of the shared table of standard normal numbers that sensor noise is read from."""


@dataclass(frozen=True)
class Arrivals:
    """The table's columns in any order, shape (rows,): what a source hands over."""

    client: npt.NDArray[np.int32]
    split: npt.NDArray[np.int8]  # index into SPLITS
    arrival: npt.NDArray[np.int32]  # data step; what a client owns from the start arrives at or before 0
    label: npt.NDArray[np.int16]
    image: npt.NDArray[np.int32]
    noise_start: npt.NDArray[np.int32]  # where in the table of noise the sample's own begins


def num_noise_starts(images: ImageSet) -> int:
    """How many places an image's noise can begin at; InputError for images that are too large."""
    pixels = int(np.prod(images.shape))
    if pixels >= NOISE_NUMBERS:
        raise InputError(
            f"trace: images of {' x '.join(map(str, images.shape))} have {pixels} pixels; "
            f"fewer than {NOISE_NUMBERS} are supported"
        )
    return NOISE_NUMBERS - pixels


class Trace:
    """Immutable columns of shape (rows,), and the features behind them.

    A sample is its image plus sensor noise: `noise` times a stretch of one shared table of standard normal
    numbers that starts where the row says. So every row has noise of its own, the same whenever it is read,
    and none of it is stored (the trick is that of evolution strategies' shared noise table, Salimans et al.
    2017, section 2.1). Pixels are not clipped.
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
        samples = self._images.features(self.image[rows].astype(np.int64))
        if self.noise > 0:
            windows = np.lib.stride_tricks.sliding_window_view(self._normal, self._pixels)
            samples += np.float32(self.noise) * windows[self._noise_start[rows]].reshape(samples.shape)
        return samples

    def labels(self, rows: Ints) -> Ints:
        """(n,) the labels of table rows `rows`."""
        return self.label[rows].astype(np.int64)

    def held(self, ids: Ints, split: Split, step: int) -> SampleRanges:
        """What each client holds at `step`: arrivals of the newest `retain_steps` steps, one range each."""
        index = np.int64(SPLITS.index(split))
        newest = min(step, self.last_step)
        oldest = max(step - self.retain_steps + 1, self._first_arrival)
        first = np.searchsorted(self._key, self._key_of(ids, index, np.int64(min(oldest, newest + 1))))
        last = np.searchsorted(self._key, self._key_of(ids, index, np.int64(newest + 1)))
        return SampleRanges.one_each(first.astype(np.int64), last.astype(np.int64))

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
        return state.hexdigest()

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

    def label_histograms(self, ids: Ints) -> Floats:
        counts = self._counts[ids]
        histograms: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return histograms

    @staticmethod
    def _between(arrival: Ints, after: int, until: int) -> slice:
        """The slice of rows, sorted by arrival, that arrived in (after, until]."""
        return slice(*np.searchsorted(arrival, (after, until), side="right"))

    def _count(self, rows: Ints, sign: int) -> None:
        np.add.at(self._counts, (self.trace.client[rows], self.trace.label[rows]), sign)
