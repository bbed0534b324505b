"""Buckets: a client owns samples of a few labels, and receives them a bucket of labels at a time."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number
from emulator.plugins import Settings
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS, arrivals_of, concatenated, num_noise_starts
from traces.draw import refuse_oversize_in_memory
from traces.drift.base import Population, PopulationContext
from traces.images import ImageSet
from traces.onsets import NO_ONSETS, Onsets, of_steps
from traces.tables.base import Table
from traces.tables.sorted import SortedTable


class BucketsSettings(Settings):
    """How many samples of how many labels a client owns, and how they are cut into buckets."""

    labels_per_client: Count = Field(5, description="labels that a client owns samples of")
    buckets: Count = Field(5, description="buckets that these labels are cut into; one arrives at each step")
    at_start: Count = Field(1, description="buckets that a client owns from the start", examples=[2])
    after: Literal["none", "repeat"] = Field(
        "none", description="what arrives after the last bucket: nothing, or all of them again in their order"
    )
    samples_per_client: Count | None = Field(
        None, description="training samples a client owns; if omitted, trace.samples_per_step for each bucket"
    )
    concentration: Annotated[float, Number(gt=0, le=1e9)] = Field(
        0.5, description="Dirichlet concentration of the shares of a client's labels"
    )

    @model_validator(mode="after")
    def _every_bucket_has_a_label(self) -> BucketsSettings:
        if self.buckets > self.labels_per_client:
            raise ValueError(
                f"buckets = {self.buckets}: must be at most labels_per_client = {self.labels_per_client}, as "
                f"a bucket has at least one label"
            )
        if self.at_start > self.buckets:
            raise ValueError(f"at_start = {self.at_start}: must be at most buckets = {self.buckets}")
        return self


class Buckets(Population):
    """A client owns samples of a few labels, and receives them a bucket of labels at a time (Fielding).

    A client draws `labels_per_client` labels, with shares that are Dirichlet-distributed and at least one
    sample of each. It cuts these labels at random into buckets that differ by at most one label; a bucket is
    all its samples of these labels, so buckets differ in size. Bucket j arrives at data step
    j - `at_start` + 1 (owned from the start if that is 0 or less), and is kept for `trace.retain_rounds`.
    With `after = "repeat"` the same samples arrive again, bucket after bucket.

    Of each label, test samples are to training samples as `trace.test_samples_per_step` is to
    `trace.samples_per_step`, rounded up, and they arrive with them. A client's images of a label are
    consecutive ones, from a random one on, in one random order of the split: no image twice, unless it owns
    more samples than there are images.

    Source: Fielding, its Open Images trace.

    Three labels in three buckets, of which each client owns two at the start:

    >>> from emulator.seeding import RandomStreams
    >>> from traces.draw import StreamSettings
    >>> labels = np.repeat([0, 1, 2], 4)
    >>> even, odd = np.arange(0, 12, 2), np.arange(1, 12, 2)
    >>> images = ImageSet(np.zeros((12, 1), np.uint8), 1.0, labels, 3, train=even, test=odd)
    >>> settings = BucketsSettings(labels_per_client=3, buckets=3, at_start=2, samples_per_client=3)
    >>> arrivals = StreamSettings(rounds_per_step=1, retain_rounds=2)
    >>> context = PopulationContext(arrivals, 2, num_steps=3, static=False, streams=RandomStreams(0))
    >>> table = Buckets(settings).draw(images, context)
    >>> table.column("arrival", 0, 1).tolist()  # a sample of each split in each bucket
    [-1, 0, 1, -1, 0, 1]
    """

    Settings: ClassVar[type[Settings]] = BucketsSettings
    settings: BucketsSettings
    same_holders = True

    def draw(self, images: ImageSet, context: PopulationContext) -> Table:
        settings, clients = self.settings, context.num_clients
        labels = np.intersect1d(images.labels[images.train], images.labels[images.test])
        self._check_population(len(labels), context)
        windows = self._windows(context.last_step)
        per_client = self._samples_per_client(context)
        # A test sample for each training sample, and one more by rounding up, at most.
        ratio = 1 + context.settings.test_samples_per_step / context.settings.samples_per_step
        refuse_oversize_in_memory(
            int(
                -(-windows // settings.buckets) * clients * (per_client * ratio + settings.labels_per_client)
            ),
            "trace.drift.samples_per_client, trace.clients or round.rounds",
        )
        generator = context.streams.generator("drift")
        order = generator.random((clients, len(labels))).argsort(axis=1, kind="stable")
        owned = labels[order[:, : settings.labels_per_client]]  # (clients, labels_per_client) in random order
        train = self._sizes(clients, per_client, generator)
        test = -(-train * context.settings.test_samples_per_step // context.settings.samples_per_step)
        # As the labels are in random order, cutting them in this order is cutting them at random.
        bucket_of = np.arange(settings.labels_per_client) * settings.buckets // settings.labels_per_client
        arrivals = []
        for split, sizes in enumerate((train, test)):
            position, samples = _draw_samples(images, split, owned, sizes, context.streams)
            bucket = bucket_of[position]
            for window in range(windows):
                rows = np.flatnonzero(bucket == window % settings.buckets)
                arrival = np.full(len(rows), window - settings.at_start + 1)
                columns = {name: column[rows] for name, column in samples.items()}
                arrivals.append(arrivals_of(**columns, arrival=arrival))
        return SortedTable(concatenated(arrivals), clients, context.scratch)

    def draw_with_onsets(self, images: ImageSet, context: PopulationContext) -> tuple[Table, Onsets]:
        """Draw the samples of every client: all have an onset with each bucket that arrives after the start.

        No two buckets of a client share a label, so if there are several, each differs from the one before.
        """
        table, last_step = self.draw(images, context), context.last_step_of_run
        if self.settings.buckets == 1:
            return table, NO_ONSETS
        everyone = np.arange(context.num_clients)
        steps = range(1, self._windows(last_step) - self.settings.at_start + 1)
        return table, of_steps((step, everyone) for step in steps)

    def _windows(self, last_step: int) -> int:
        """How many buckets have arrived by that data step, those owned from the start included."""
        windows = self.settings.at_start + last_step
        return min(windows, self.settings.buckets) if self.settings.after == "none" else windows

    def _samples_per_client(self, context: PopulationContext) -> int:
        settings = self.settings
        if settings.samples_per_client is not None:
            return settings.samples_per_client
        return settings.buckets * context.settings.samples_per_step

    def _sizes(self, clients: int, per_client: int, generator: np.random.Generator) -> Ints:
        """(clients, labels_per_client) the training samples that each client owns of each of its labels."""
        labels = self.settings.labels_per_client
        shares = generator.standard_gamma(self.settings.concentration, size=(clients, labels))
        np.maximum(shares, 1e-300, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return 1 + generator.multinomial(per_client - labels, shares)

    def _check_population(self, num_labels: int, context: PopulationContext) -> None:
        """ConfigurationError if the settings do not fit the images or the run."""
        settings, arrivals = self.settings, context.settings
        if settings.labels_per_client > num_labels:
            raise ConfigurationError(
                f"trace.drift.labels_per_client = {settings.labels_per_client}: the images have {num_labels} "
                f"labels"
            )
        if self._samples_per_client(context) < settings.labels_per_client:
            raise ConfigurationError(
                f"trace.drift.samples_per_client = {self._samples_per_client(context)}: must be at least "
                f"labels_per_client = {settings.labels_per_client}, as a client has a sample of each"
            )
        if context.static:
            if settings.at_start < settings.buckets or settings.after != "none":
                raise ConfigurationError(
                    f"trace.drift: with trace.static = true nothing arrives after the start: at_start = "
                    f"{settings.at_start} must be buckets = {settings.buckets}, and after 'none'"
                )
            return
        retained = arrivals.retain_steps
        if settings.at_start > retained:
            raise ConfigurationError(
                f"trace.drift.at_start = {settings.at_start}: clients keep the buckets of "
                f"retain_rounds / rounds_per_step = {retained} steps; raise trace.retain_rounds"
            )
        if settings.after == "repeat" and settings.buckets < retained:
            raise ConfigurationError(
                f"trace.drift.buckets = {settings.buckets}: a bucket would arrive again while it is kept, "
                f"for retain_rounds / rounds_per_step = {retained} steps; lower trace.retain_rounds"
            )
        lasts = settings.buckets - settings.at_start + retained  # data steps
        # With test_on = "next" test samples are lacking even before, and a check names the step.
        if settings.after == "none" and arrivals.test_on == "present" and context.num_steps > lasts:
            raise ConfigurationError(
                f"trace.drift: the last of {settings.buckets} buckets expires in round "
                f"{lasts * arrivals.rounds_per_step}, from which clients would be without data: lower "
                f"round.rounds, raise trace.retain_rounds, or set trace.drift.after = 'repeat'"
            )


def _draw_samples(
    images: ImageSet, split: int, owned: Ints, sizes: Ints, streams: RandomStreams
) -> tuple[Ints, dict[str, np.ndarray]]:
    """The samples of one split, an index into SPLITS, of `sizes` (clients, k) for the labels `owned`.

    Returns for each sample the position of its label among the k labels of its client, and the columns of
    `Arrivals` but `arrival`.
    """
    generator = streams.generator("data", split)
    in_order, start = images.by_label(SPLITS[split])
    shuffled = generator.permutation(in_order)
    pool = shuffled[np.argsort(images.labels[shuffled], kind="stable")]
    available = np.diff(start)
    first = (generator.random(owned.size) * available[owned.ravel()]).astype(np.int64)
    cell = np.repeat(np.arange(owned.size), sizes.ravel())  # cell = client * k + position
    number = np.arange(len(cell)) - np.repeat(np.cumsum(sizes) - sizes.ravel(), sizes.ravel())
    label = owned.ravel()[cell]
    return cell % owned.shape[1], {
        "client": cell // owned.shape[1],
        "split": np.full(len(cell), split),
        "label": label,
        "image": pool[start[label] + (first[cell] + number) % available[label]],
        "noise_start": generator.integers(0, num_noise_starts(images), size=len(cell)),
    }
