"""Traces: the labelled samples of every client, and the data step at which each arrives.

A `Trace` is immutable; a `TraceStream` is a cursor over it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from emulator.arrays import Bools, Floats, Floats32, Ints
from emulator.errors import InputError
from emulator.messages import SampleRanges
from emulator.ports import Split, Tokens, WithTargets
from emulator.seeding import RandomStreams
from traces.arrivals import DTYPES, NOISE_NUMBERS, SPLITS, STEPS_AHEAD, Arrivals, TestOn
from traces.onsets import Onsets, merged, newest, of_concepts, of_tests
from traces.samples import NoisyImages, SamplePool
from traces.tables.base import CHUNK_ROWS, Table, chunks_of_ranges, rows_of_ranges
from traces.tables.flipped_labels import FlippedLabels

if TYPE_CHECKING:
    from traces.changes.features import FeatureChanges
    from traces.drifts import Drifts, Turns

DIGESTED_PIXELS = 2**22
"""Pixels that are converted to features at once, for the digest."""

CHECKED_FIRST = 256
"""Clients that are checked first when one that holds samples is looked for; then twice as many, and so on."""


class Trace:
    """An immutable table of samples, with the images that they are made of.

    A sample is its image plus sensor noise: `noise` times a stretch of one shared table of standard normal
    numbers that begins where the row states. So every row has its own noise, the same whenever it is read,
    and none of it is stored (the idea is that of evolution strategies' shared noise table, Salimans et al.
    2017, section 2.1). Pixels are not clipped.

    A training sample is held for `retain_steps` data steps, a test sample for `test_retain_steps`; if rows
    carry their expiry (`Table.expires`), these are upper bounds. `concepts`
    (steps + 1, num_clients), if the truth is known, is the concept of each client's training arrivals at each
    step. By default such a trace tests, then trains: the test samples of a step are the training arrivals of
    the next, and the last row belongs to the last test samples. Without `test_then_train` test samples are of
    the step's own concept, and the last row repeats the one before.

    With `test_on` = "next" a client's test samples at a step are those that arrive at the next step, and no
    others, and their concepts are those of the next step. The table then has one data step more than the run,
    of which only the test samples are read.

    What clients hold may change (`traces.changes`): it is then sent anew, and a row that is sent anew keeps
    the age of its sample. What is done to features is applied when they are read, before the noise.

    Clients may come and go: a client takes part while it holds training samples, and may hold its first ones
    after step 0, lose its last ones, and receive others later.
    """

    def __init__(
        self,
        images: SamplePool,
        table: Table,
        *,
        retain_steps: int,
        rounds_per_step: int,
        noise: float,
        generator: np.random.Generator,
        test_retain_steps: int | None = None,
        concepts: Ints | None = None,
        test_then_train: bool = True,
        test_on: TestOn = "present",
        content: str | None = None,
        moves: Onsets | None = None,
        test_concepts: Ints | None = None,
        client_names: tuple[str, ...] | Ints | None = None,
    ) -> None:
        """Seal the table and draw the table of noise.

        Args:
            images: the pool of images.
            table: the rows of the trace; it becomes read-only.
            retain_steps: data steps for which a training sample is held, >= 1.
            rounds_per_step: the number of rounds between two data steps, >= 1.
            noise: standard deviation of the sensor noise in units of a feature, >= 0.
            generator: the source of the table of noise, and of the seed of `reference_rows`.
            test_retain_steps: data steps for which a test sample is held; None: `retain_steps`, or 1 if
                `test_on` is "next".
            concepts: the true concepts, of shape (steps + 1, num_clients); None if they are not known.
            test_then_train: whether the concepts of a step's test samples are those of the next row of
                `concepts`; always, if `test_on` is "next".
            test_on: "next" if clients are tested on the test samples that arrive at the next step.
            content: a digest of all rows and features, if it is known; None: `digest` reads them.
            moves: the onsets of a drift, which `concepts` do not show; None if they are not known.
            test_concepts: the true concepts of test samples, of shape (steps, num_clients), where they are
                other than `concepts` and `test_then_train` say; needs `concepts`.
            client_names: texts, or whole numbers of shape (num_clients,), by which the clients are known
                where the samples come from; None if they have no other names than their ids.

        Raises:
            InputError: no client has a training sample at step 0, or none has a test sample, or there are
                more or fewer names than clients.
            ValueError: clients are tested on what arrives next, and test samples held for more than one step.
        """
        if test_on == "next":
            if test_retain_steps not in (None, 1):
                raise ValueError("test_on = 'next': test samples are held for one step")
            test_retain_steps, test_then_train = 1, True
        if client_names is not None and len(client_names) != table.num_clients:
            raise InputError(f"trace: {len(client_names)} names of {table.num_clients} clients; each has one")
        if noise > 0 and getattr(images, "tokens", None) is not None:
            raise InputError(f"trace: noise = {noise:g}: its samples are tokens, which take none; set 0")
        table.seal()
        self.table = table
        self.retain_steps = retain_steps
        self.test_retain_steps = retain_steps if test_retain_steps is None else test_retain_steps
        self.concepts = concepts
        self.test_then_train = test_then_train
        self.test_on: TestOn = test_on
        self._features: FeatureChanges | None = None
        self.rounds_per_step = rounds_per_step
        self.noise = noise
        self._images = images
        self._content = content
        self.moves = moves
        self.test_concepts = test_concepts
        self.client_names = client_names
        self.turns: Sequence[Turns] = ()  # when changes of training data begin and end
        normal = generator.standard_normal(NOISE_NUMBERS, dtype=np.float32)
        self.samples = NoisyImages(images, noise, normal)
        self._streams = RandomStreams(int(generator.integers(2**63)))
        self._refuse_a_start_without_data()

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.table)

    @property
    def num_clients(self) -> int:
        """The number of clients."""
        return self.table.num_clients

    @property
    def last_step(self) -> int:
        """The data step of the last arrivals."""
        return self.table.last_step

    @property
    def num_labels(self) -> int:
        """The number of classes."""
        return self._images.num_labels

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the first classes, if the labels come from a table; otherwise empty."""
        return self._images.label_names

    @cached_property
    def onsets(self) -> Onsets | None:
        """The onsets of the drift and those of the true concepts, also of tests alone; None if unknown."""
        known = [] if self.moves is None else [self.moves]
        if self.concepts is not None:
            known.append(of_concepts(self.concepts))
        if self.test_concepts is not None and self.concepts is not None:
            known.append(of_tests(self.test_concepts, self.concepts, ahead=self.test_then_train))
        return reduce(merged, known) if known else None

    @property
    def drifts(self) -> Drifts | None:
        """The onsets of training samples, with what changed about them; None if unknown."""
        from traces.drifts import drifts_of  # which few runs need

        return drifts_of(self.concepts, self.moves, self.turns)

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self._images.shape

    @property
    def tokens(self) -> Tokens | None:
        """What the tokens are that the samples consist of; None: they are none."""
        return getattr(self._images, "tokens", None)

    @property
    def integers(self) -> bool:
        """Whether the features are whole numbers, as tokens are."""
        return self.tokens is not None

    @property
    def num_targets(self) -> int:
        """K, the number of targets that samples have beside their label."""
        return int(getattr(self._images, "num_targets", 0))

    @property
    def objective(self) -> Mapping[str, Any] | None:
        """The objective that comes with the data, as a table of a configuration; None: labels."""
        return getattr(self._images, "objective", None)

    def targets(self, rows: Ints) -> Floats32:
        """Read the targets of some rows.

        Args:
            rows: table rows of shape (n,).

        Returns:
            The targets, float32 of shape (n, num_targets); only of a trace that has some.
        """
        image = self.table.take("image", rows).astype(np.int64)
        targets = cast(WithTargets, self._images).targets(image)
        changes = None if self._features is None else self.table.feature_changes(rows)
        if self._features is not None and changes is not None:
            self._features.apply_to_targets(targets, changes[0])
        return targets

    def features(self, rows: Ints) -> Floats32:
        """Compute the samples of some rows.

        Args:
            rows: table rows of shape (n,).

        Returns:
            The features with their noise, float32 of shape (n, *sample_shape).
        """
        starts = self.table.take("noise_start", rows) if self.noise > 0 else None
        image = self.table.take("image", rows).astype(np.int64)
        changes = None if self._features is None else self.table.feature_changes(rows)
        if self._features is None or changes is None:
            return self.samples.features(image, starts)
        features = self.samples.images.features(image)
        self._features.apply(features, *changes)
        return self.samples.noisy(features, starts)

    def labels(self, rows: Ints) -> Ints:
        """Read the labels of some rows.

        Args:
            rows: table rows of shape (n,).

        Returns:
            The labels, of shape (n,), in 0 .. num_labels - 1.
        """
        return self.table.take("label", rows).astype(np.int64)

    def sample_keys(self, rows: Ints) -> Ints:
        """Say which sample each of some rows has: its image, and where its noise begins.

        Args:
            rows: table rows of shape (n,).

        Returns:
            Numbers in [0, 2^32), of shape (n, 2). A sample that is sent anew has the same ones.
        """
        names = ("image", "noise_start")
        return np.stack([self.table.take(name, rows).astype(np.int64) for name in names], axis=1)

    def held(self, ids: Ints, split: Split, step: int) -> SampleRanges:
        """Find the samples that clients hold: the arrivals of the newest retained steps.

        Args:
            ids: client ids of shape (n,).
            split: "train" or "test".
            step: the data step.

        Returns:
            One range of rows for each client.
        """
        retain_steps = self.retain_steps
        if split == "test":
            step, retain_steps = step + STEPS_AHEAD[self.test_on], self.test_retain_steps
        return SampleRanges.one_each(*self.table.held(ids, SPLITS.index(split), step, retain_steps))

    def arrived(self, ids: Ints, first_step: int, last_step: int, step: int) -> SampleRanges:
        """Find the training samples that arrived in [first_step, last_step] and are held at `step`.

        Samples that a client owned from the start count as arrived at step 0.

        Args:
            ids: client ids of shape (n,).
            first_step: the first data step of arrival.
            last_step: the last data step of arrival, inclusive; below 0 the ranges are empty.
            step: the data step at which the samples are held.

        Returns:
            One range of rows for each client.
        """
        since = first_step if first_step > 0 else self.table.first_step
        until = last_step + 1 if last_step >= 0 else self.table.first_step
        return SampleRanges.one_each(*self.table.arrived(ids, since, until, step, self.retain_steps))

    def holding(self, ids: Ints, split: Split, step: int) -> Bools:
        """Find the clients that hold samples.

        Args:
            ids: client ids of shape (n,).
            split: "train" or "test".
            step: the data step.

        Returns:
            Whether each client holds a sample of the split, of shape (n,).
        """
        if self.table.is_even:  # any client stands for all
            return np.repeat(self.held(ids[:1], split, step).counts() > 0, len(ids))
        return self.held(ids, split, step).counts() > 0

    def anybody_holds(self, ids: Ints, splits: Sequence[Split], step: int) -> bool:
        """Find out whether some client holds samples of all given splits; as few are checked as possible.

        Args:
            ids: client ids of shape (n,).
            splits: the splits, at least one.
            step: the data step.

        Returns:
            Whether one of these clients holds at least one sample of each split.
        """
        return any(
            np.logical_and.reduce([self.holding(some, split, step) for split in splits]).any()
            for some in growing_parts(ids)
        )

    def reference_rows(self, per_label: int) -> Ints:
        """Draw training samples that clients hold at step 0, with the labels that these then have.

        The same whenever it is called, keyed by the purpose "reference". A draw of more rows contains that of
        fewer.

        Args:
            per_label: the most rows of a label, >= 1. A label with fewer gives all that it has.

        Returns:
            Table rows, ascending, at most `per_label` of each label; no test sample, and none that arrives
            after step 0.

        Raises:
            InputError: no client holds a training sample.
            ValueError: `per_label` is below 1.
        """
        if per_label < 1:
            raise ValueError(f"per_label = {per_label}: must be at least 1")
        generator = self._streams.generator("reference")
        drawn, labels = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        ranks = np.zeros(0)  # random: the `per_label` lowest of each label are drawn
        held = self.held(np.arange(self.num_clients), "train", 0)
        for chunk in chunks_of_ranges(held.first, held.last):
            rows = rows_of_ranges(held.first[chunk], held.last[chunk])
            drawn = np.concatenate([drawn, rows])
            labels = np.concatenate([labels, self.labels(rows)])
            ranks = np.concatenate([ranks, generator.random(len(rows))])
            order = np.lexsort((ranks, labels))
            sizes = np.bincount(labels)
            place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            lowest = order[place < per_label]
            drawn, labels, ranks = drawn[lowest], labels[lowest], ranks[lowest]
            self.table.drop_pages()
        if len(drawn) == 0:
            raise InputError("trace: no client holds a training sample at step 0: there is no reference row")
        return np.sort(drawn)

    def with_flipped_labels(self, clients: Ints) -> Trace:
        """Flip the training labels of some clients: label y becomes num_labels - 1 - y.

        The storage is shared with this trace.

        Args:
            clients: ids of the clients with flipped labels, ascending, of shape (n,).

        Returns:
            The trace with flipped labels; this trace if `clients` is empty.
        """
        if len(clients) == 0:
            return self
        flipped = copy(self)
        flipped.table = FlippedLabels(self.table, clients, self.num_labels)
        if self._content is not None:
            flipped._content = repr((self._content, "flipped", clients.tolist()))
        return flipped

    def changed(
        self,
        table: Table,
        concepts: Ints,
        test_concepts: Ints | None,
        features: FeatureChanges | None,
        turns: Sequence[Turns],
    ) -> Trace:
        """The trace with another table around its own, whose samples change.

        Args:
            table: the rows; it becomes read-only.
            concepts: the true concepts, of shape (steps + 1, num_clients).
            test_concepts: those of tests, of shape (steps, num_clients), if they differ.
            features: what is done to the features of rows that name it; None for nothing.
            turns: when changes of training data begin and end.

        Returns:
            The trace; the storage of this one is shared.
        """
        changed = copy(self)
        table.seal()
        changed.table, changed.concepts, changed.test_concepts = table, concepts, test_concepts
        changed._features, changed.turns = features, turns
        changed.__dict__.pop("onsets", None)  # a cached property of the copy, which are others now
        return changed

    def columns(self) -> Arrivals:
        """Read all columns, in the order of the table; for traces that fit into memory.

        Returns:
            The columns, each of shape (rows,).
        """
        return self.table.arrivals()

    def digest(self) -> str:
        """Hash all rows, the features of the images they use, and the settings, for the manifest.

        Returns:
            The sha256 in hexadecimal.
        """
        state = hashlib.sha256()
        # Only if a trace has it, so that traces without it keep the digest that their runs are filed under.
        if self.test_on == "next":
            state.update(b"tests of the next step")
        if self._content is not None:
            state.update(repr((self._content, self.num_clients)).encode())
            self._digest_changes(state)
            return state.hexdigest()
        for expiry in self._expiry_chunks():
            state.update(expiry.tobytes())
        replaces = self.table.replaces
        for name, column in self._column_chunks():
            # What clients own from the start counts as arrived at step 0, where all is sent anew.
            state.update((np.maximum(column, 0) if replaces and name == "arrival" else column).tobytes())
        drawn = self._drawn_images()
        chunk = max(1, DIGESTED_PIXELS // max(1, math.prod(self.sample_shape)))
        for first in range(0, len(drawn), chunk):
            images = drawn[first : first + chunk]
            state.update(self._images.features(images).tobytes())
            if self.num_targets:
                state.update(cast(WithTargets, self._images).targets(images).tobytes())
        if self.tokens is not None or self.objective is not None:
            state.update(repr((self.tokens, self.objective)).encode())
        state.update(repr((self.num_clients, self.retain_steps, self.rounds_per_step, self.noise)).encode())
        if self.test_retain_steps != self.retain_steps:
            state.update(f"test {self.test_retain_steps}".encode())
        self._hash_concepts(state)
        if replaces:
            state.update(b"replaces")
        else:
            self._digest_changes(state)
        return state.hexdigest()

    def _hash_concepts(self, state: hashlib._Hash) -> None:
        """Hash the true concepts, if they are known."""
        if self.concepts is not None:
            state.update(f"concepts {self.concepts.shape}".encode())
            state.update(np.ascontiguousarray(self.concepts, dtype=np.int64).tobytes())
            if not self.test_then_train:
                state.update(b"tests of the same concept")
        if self.test_concepts is not None:
            state.update(f"test concepts {self.test_concepts.shape}".encode())
            state.update(np.ascontiguousarray(self.test_concepts, dtype=np.int64).tobytes())

    def _digest_changes(self, state: hashlib._Hash) -> None:
        """Hash what changes of a trace are not in its columns: ages, and what is done to features."""
        for column in self.table.digested():
            state.update(column.tobytes())
        if self._features is not None:
            state.update(repr(self._features.digested()).encode())

    def _column_chunks(self) -> Iterator[tuple[str, np.ndarray]]:
        """The columns of `Arrivals` one after the other, in chunks of clients."""
        chunk = max(1, CHUNK_ROWS * self.num_clients // max(1, len(self)))
        for name in DTYPES:
            for first in range(0, self.num_clients, chunk):
                yield name, self.table.column(name, first, min(first + chunk, self.num_clients))
                self.table.drop_pages()

    def _expiry_chunks(self) -> Iterator[np.ndarray]:
        """When rows expire, in chunks; nothing of a table whose rows do not say."""
        if self.table.expires:
            for first in range(0, len(self), CHUNK_ROWS):
                yield self.table.expiry(np.arange(first, min(first + CHUNK_ROWS, len(self))))

    def _drawn_images(self) -> Ints:
        """The images that some row uses, ascending."""
        image = self.table.stored("image")
        drawn = np.zeros(len(self._images), dtype=np.bool_)
        for first in range(0, len(image), CHUNK_ROWS):
            drawn[image[first : first + CHUNK_ROWS]] = True
        self.table.drop_pages()
        return np.flatnonzero(drawn)

    def _refuse_a_start_without_data(self) -> None:
        everyone = np.arange(self.num_clients)
        for split in SPLITS:
            if self.num_clients > 0 and not self.anybody_holds(everyone, (split,), 0):
                is_next = split == "test" and self.test_on == "next"
                which = ", one that arrives at data step 1 (trace.test_on = 'next')" if is_next else ""
                raise InputError(
                    f"trace: none of its {self.num_clients} clients has a {split} sample at the start, data "
                    f"step 0{which}; at least one must"
                )


class TraceStream:
    """A cursor over a trace: the `SampleStream` of one run.

    Label counts are updated by arrivals and expiries only, so the cost of advancing depends on what changes,
    not on what is held.
    """

    def __init__(self, trace: Trace) -> None:
        """Start before the first round.

        Args:
            trace: the trace to read.
        """
        self.trace = trace
        self._step = -1
        # The smallest integer type that holds any count: a million clients' ten labels take ten megabytes.
        dtype = np.min_scalar_type(trace.table.most_held(trace.retain_steps))
        self._counts = np.zeros((trace.num_clients, trace.num_labels), dtype=dtype)
        self._holding: Bools = np.zeros(trace.num_clients, dtype=bool)

    @property
    def num_clients(self) -> int:
        """The number of clients."""
        return self.trace.num_clients

    @property
    def num_labels(self) -> int:
        """The number of classes."""
        return self.trace.num_labels

    @property
    def step(self) -> int:
        """The present data step; -1 before the first call of `advance_to_round`."""
        return self._step

    def advance_to_round(self, round_: int) -> Ints:
        """Advance to the data step of a round.

        Args:
            round_: the round, in a data step not before the present one.

        Returns:
            The ids, ascending, of the clients whose training samples changed; at the first call, of all.

        Raises:
            ValueError: the round lies in an earlier data step than the present one.
        """
        step = round_ // self.trace.rounds_per_step
        if step < self._step:
            raise ValueError(f"round {round_} (step {step}) lies before the present step {self._step}")
        if step == self._step:
            return np.zeros(0, dtype=np.int64)
        first_call = self._step < 0
        changed = np.full(self.num_clients, first_call)
        counts = self._counts.reshape(-1)
        one = counts.dtype.type(1)
        before = None if first_call else self._step
        for client, label, sign in self.trace.table.news(before, step, self.trace.retain_steps):
            changed[client] = True
            if sign:
                # NOTE: with equal types and in place, `at` takes one or two nanoseconds per sample.
                change = np.add if sign > 0 else np.subtract
                change.at(counts, client * self.num_labels + label, one)
        self._step = step
        self._holding = self._hold_counted()
        self.trace.table.drop_pages()
        return np.flatnonzero(changed)

    @property
    def holding(self) -> Bools:
        """(N,) whether each client holds training samples now; before the first round nobody does."""
        return self._holding

    def held(self, ids: Ints, split: Split) -> SampleRanges:
        """Find the samples that clients hold now.

        Args:
            ids: client ids of shape (n,).
            split: "train" or "test".

        Returns:
            One range of rows for each client.
        """
        return self.trace.held(ids, split, self._step)

    def arrived(self, ids: Ints, first_step: int, last_step: int) -> SampleRanges:
        """Find the training samples that clients hold now and that arrived in [first_step, last_step].

        Args:
            ids: client ids of shape (n,).
            first_step: the first data step of arrival.
            last_step: the last data step of arrival, inclusive.

        Returns:
            One range of rows for each client.
        """
        return self.trace.arrived(ids, first_step, last_step, self._step)

    @property
    def concepts(self) -> Ints | None:
        """(N,) the true concept of each client's newest training samples; None if not known.

        Raises ValueError before the first call of `advance_to_round`, if they are known.
        """
        return self._concepts_of(self._step)

    @property
    def test_concepts(self) -> Ints | None:
        """(N,) the true concept of each client's test samples; None if not known.

        Raises ValueError before the first call of `advance_to_round`, if they are known.
        """
        if self.trace.test_concepts is not None:
            return self._row_of(self.trace.test_concepts, self._step)
        return self._concepts_of(self._step + 1 if self.trace.test_then_train else self._step)

    @property
    def newest_onset(self) -> Ints | None:
        """(N,) the data step of each client's newest onset so far, 0 where there was none; None if not known.

        Raises ValueError before the first call of `advance_to_round`, if they are known.
        """
        if self.trace.onsets is None:
            return None
        if self._step < 0:
            raise ValueError("onsets are not defined before the first call of advance_to_round")
        return newest(self.trace.onsets, self.num_clients, self._step)

    def label_histograms(self, ids: Ints) -> Floats:
        """Compute the label shares of the training samples that clients hold now.

        Args:
            ids: client ids of shape (n,).

        Returns:
            Shares of shape (n, num_labels); rows sum to 1, or are 0 for a client without training samples.
        """
        counts = self._counts[ids]
        histograms: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return histograms

    def _hold_counted(self) -> Bools:
        """(N,) whether each client holds training samples, by the label counts; read-only."""
        is_even = self.trace.table.is_even
        counts = self._counts[:1] if is_even else self._counts
        holding: Bools = np.asarray(counts.any(axis=1))
        if is_even:  # any client stands for all
            holding = np.repeat(holding, self.num_clients)
        if np.array_equal(holding, self._holding):
            return self._holding
        holding.setflags(write=False)
        return holding

    def _concepts_of(self, batch: int) -> Ints | None:
        """(N,) the true concepts of the `batch`-th arrivals; None if not known.

        Raises ValueError before the first call of `advance_to_round`, if they are known.
        """
        return None if self.trace.concepts is None else self._row_of(self.trace.concepts, batch)

    def _row_of(self, concepts: Ints, number: int) -> Ints:
        """(N,) a row of true concepts; ValueError before the first call of `advance_to_round`."""
        if self._step < 0:
            raise ValueError("concepts are not defined before the first call of advance_to_round")
        row: Ints = concepts[number]
        return row


def growing_parts(ids: Ints) -> Iterator[Ints]:
    """`ids` (n,) in parts: `CHECKED_FIRST`, then twice as many, and so on."""
    first, size = 0, CHECKED_FIRST
    while first < len(ids):
        yield ids[first : first + size]
        first, size = first + size, 2 * size
