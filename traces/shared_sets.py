"""Shared sets: the same training samples for every client, as in Fielding's tests of heterogeneity."""

from __future__ import annotations

from typing import Literal

import numpy as np

from emulator.arrays import Ints
from emulator.errors import InputError
from traces.arrivals import SPLITS, Arrivals, arrivals_of, concatenated, num_noise_starts
from traces.draw import refuse_oversize_in_memory
from traces.drift.base import PopulationContext
from traces.images import ImageSet
from traces.tables.base import Table
from traces.tables.sorted import SortedTable

SharedSet = Literal["none", "rare_half", "one", "two"]

TRAIN = SPLITS.index("train")
ADVICE = "trace.clients, trace.samples_per_step or round.rounds"


def shared_labels(which: SharedSet, arrivals: Arrivals, images: ImageSet, last_step: int) -> Ints:
    """The labels of the samples of a shared set, ascending; twice each for "two".

    Labels without training images are left out. "rare_half" has the half of the others, rounded up, with the
    fewest training arrivals up to `last_step`, over all clients; ties go to the lower label.

    >>> labels = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    >>> images = ImageSet(np.zeros((8, 1)), 1.0, labels, 4, train=np.arange(4), test=np.arange(4, 8))
    >>> columns = {name: np.zeros(6) for name in ("client", "split", "arrival", "image", "noise_start")}
    >>> arrivals = arrivals_of(**columns, label=np.array([0, 0, 0, 3, 3, 1]))
    >>> [shared_labels(which, arrivals, images, 0).tolist() for which in ("rare_half", "one", "two")]
    [[1, 2], [0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3]]
    """
    labels = np.unique(images.labels[images.train])
    if which == "rare_half":
        trains = (arrivals.split == TRAIN) & (arrivals.arrival <= last_step)
        trained = np.bincount(arrivals.label[trains], minlength=images.num_labels)[labels]
        labels = np.sort(labels[np.argsort(trained, kind="stable")[: -(-len(labels) // 2)]])
    return np.repeat(labels, 2) if which == "two" else labels


def with_shared_set(table: Table, which: SharedSet, images: ImageSet, context: PopulationContext) -> Table:
    """The rows of `table`, and those of a shared set, which every client holds at every step.

    Each client receives the set at step 0, and again whenever it has expired, so that what it holds stays
    one range of rows: it then counts as a client with new data. Static data have it once. The set has an
    image for each of its labels, drawn without replacement among the label's training images, and the noise
    of each. What arrives after the last step of `context` does not decide which labels are rare.

    Raises:
        ConfigurationError: there are too many samples.
        InputError: a label has fewer training images than the set has samples of it.
    """
    refuse_oversize_in_memory(len(table), ADVICE)
    arrivals = table.arrivals()
    labels = shared_labels(which, arrivals, images, context.last_step)
    steps = np.arange(0, context.last_step + 1, context.settings.retain_steps)
    clients, received = context.num_clients, len(steps) * len(labels)
    refuse_oversize_in_memory(len(table) + clients * received, ADVICE)
    generator = context.streams.generator("shared")
    image = _draw_images(labels, images, generator)
    noise_start = generator.integers(0, num_noise_starts(images), size=len(labels))
    shared = arrivals_of(
        client=np.repeat(np.arange(clients), received),
        split=np.full(clients * received, TRAIN),
        arrival=np.tile(np.repeat(steps, len(labels)), clients),
        label=np.tile(labels, clients * len(steps)),
        image=np.tile(image, clients * len(steps)),
        noise_start=np.tile(noise_start, clients * len(steps)),
    )
    return SortedTable(concatenated([arrivals, shared]), clients, context.scratch)


def _draw_images(labels: Ints, images: ImageSet, generator: np.random.Generator) -> Ints:
    """(n,) a training image of each of `labels` (n,), none of them twice.

    Raises InputError if there are not enough of a label.
    """
    drawn = np.empty(len(labels), dtype=np.int64)
    in_order, start = images.by_label("train")
    for label, count in zip(*np.unique(labels, return_counts=True), strict=True):
        available = in_order[start[label] : start[label + 1]]
        if len(available) < count:
            raise InputError(
                f"trace.shared: the set has {count} samples of each label, and label {label} has "
                f"{len(available)} training image"
            )
        drawn[labels == label] = generator.choice(available, size=count, replace=False)
    return drawn
