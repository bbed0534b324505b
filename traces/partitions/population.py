"""Clients that own the images of a partition: what `trace.partition` makes of the images of a source."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError, InputError
from emulator.seeding import RandomStreams
from traces.arrivals import SPLITS, STEPS_AHEAD, arrivals_of, num_noise_starts
from traces.drift.base import Population, PopulationContext
from traces.images import ImageSet
from traces.partitions.base import Partition, Samples, dealt, shuffled_by_label
from traces.tables.base import Table
from traces.tables.sorted import SortedTable


class PartitionedImages(Population):
    """The population of `trace.partition`: every image belongs to one client, which keeps it to the end.

    The partition divides the training images; the test images follow them (`follow`), so that a client is
    tested on the label mix that it trains on.

    With `starts_with` a client holds a part of its images at the start, and the rest arrives
    (`arrival_steps`): training images up to the last data step of the run, test images up to the last one
    that clients are tested on, which with `test_on` = "next" is the step after it. So `test_on` changes no
    training sample.
    """

    def __init__(self, partition: Partition, starts_with: tuple[float, float] | None = None) -> None:
        self._partition = partition
        self._starts_with = starts_with

    def draw(self, images: ImageSet, context: PopulationContext) -> Table:
        train, test = images.labels[images.train], images.labels[images.test]
        number, streams = context.num_clients, context.streams
        trained = self._partition.divide(Samples(train), number, streams.generator("partition", 0))
        tested = follow(trained, train, test, number, streams.generator("partition", 1))
        client, image = np.concatenate([trained, tested]), np.concatenate([images.train, images.test])
        starts = [
            streams.generator("data", split).integers(0, num_noise_starts(images), size=len(clients))
            for split, clients in enumerate((trained, tested))
        ]
        arrivals = arrivals_of(
            client=client,
            split=np.repeat(np.arange(len(SPLITS)), [len(trained), len(tested)]),
            arrival=self._arrivals(trained, tested, context),
            label=images.labels[image],
            image=image,
            noise_start=np.concatenate(starts),
        )
        return SortedTable(arrivals, number, context.scratch, last_step=context.last_step)

    def _arrivals(self, trained: Ints, tested: Ints, context: PopulationContext) -> Ints:
        """(images,) the data step at which each image arrives, training images first; all 0 if static."""
        if self._starts_with is None:
            return np.zeros(len(trained) + len(tested), dtype=np.int64)
        last_step = context.last_step - STEPS_AHEAD[context.settings.test_on]
        if last_step == 0:
            raise ConfigurationError(
                f"trace.starts_with = {list(self._starts_with)}: the run has one data step, so there is none "
                f"at which the rest of the images could arrive; raise round.rounds above "
                f"trace.rounds_per_step = {context.settings.rounds_per_step}, or leave starts_with out"
            )
        low, high = self._starts_with
        shares = context.streams.generator("starts with").uniform(low, high, size=context.num_clients)
        return np.concatenate(
            [
                arrival_steps(clients, shares, steps, split, context.streams)
                for split, (clients, steps) in enumerate(((trained, last_step), (tested, context.last_step)))
            ]
        )


def arrival_steps(clients: Ints, shares: Floats, last_step: int, split: int, streams: RandomStreams) -> Ints:
    """Draw the data step at which each image of a split reaches its client.

    The images of a client arrive in random order. Of n images it holds n times its share at the start,
    rounded, but at least one; the other m arrive in parts at the data steps 1 to `last_step`, whose sizes
    differ by at most one: up to step k, floor((k m + u) / `last_step`) of them, with u drawn uniformly from 0
    to `last_step` - 1 for each client. So the larger parts are spread evenly over the steps, and clients
    with few images do not all receive one at the same steps.

    Neither the order nor what a client holds at the start depends on `last_step`.

    Args:
        clients: the client of each image, of shape (n,), from 0 to the number of clients - 1.
        shares: the share of its images that each client holds at the start, of shape (clients,), in (0, 1].
        last_step: the data step of the last part, >= 1.
        split: the index of the split in `SPLITS`, a key of the draws.
        streams: the random streams.

    Returns:
        The data step at which each image arrives, array of shape (n,): from 0 to `last_step`.

    >>> clients, shares = np.repeat([0, 1], [8, 4]), np.array([0.25, 0.5])
    >>> steps = arrival_steps(clients, shares, last_step=3, split=0, streams=RandomStreams(0))
    >>> [np.bincount(steps[clients == client]).tolist() for client in (0, 1)]
    [[2, 2, 2, 2], [2, 1, 0, 1]]
    """
    sizes = np.bincount(clients, minlength=len(shares))
    at_start = np.minimum(np.maximum(np.rint(shares * sizes), 1).astype(np.int64), sizes)
    order = np.lexsort((streams.generator("order of arrival", split).random(len(clients)), clients))
    rank = np.empty(len(clients), dtype=np.int64)
    rank[order] = np.arange(len(clients)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    offset = (streams.generator("parts", split).random(len(shares)) * last_step).astype(np.int64)
    # Of m later images the one of rank r, from 0, is in the first part k with (k m + u) // last_step > r.
    later = np.maximum(sizes - at_start, 1)[clients]
    part = -((offset[clients] - (rank - at_start[clients] + 1) * last_step) // later)
    return np.where(rank < at_start[clients], 0, part)


def follow(clients: Ints, train: Ints, test: Ints, num_clients: int, generator: np.random.Generator) -> Ints:
    """Divide test images like training images: each follows a training image of its label to its client.

    The training images to follow are chosen such that all test images have a client, that a client has test
    images in proportion to its training images, up to rounding and at least one, and that they have its label
    mix. To this end the training images of a client are put into an order of which every beginning has about
    the client's mix; the beginnings of all clients that are a common share of the whole, long enough for the
    test images, are followed. Where a label has more test than training images, all are followed
    equally often, or once more.

    Args:
        clients: the client of each training image, of shape (train,), from 0 to `num_clients` - 1.
        train: the labels of the training images, of shape (train,).
        test: the labels of the test images, of shape (test,).
        num_clients: the number of clients, each of which has training images.
        generator: the source of all randomness; is advanced.

    Returns:
        The client of each test image, array of shape (test,).

    Raises:
        ConfigurationError: there are too few test images for each client to have one of its labels.
        InputError: a label has test images, but no training images.

    >>> clients, train = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1, 1])
    >>> follow(clients, train, np.array([1, 0, 1]), 2, np.random.default_rng(0)).tolist()
    [1, 0, 0]
    """
    num_labels = int(max(train.max(initial=-1), test.max(initial=-1))) + 1
    trained, tested = np.bincount(train, minlength=num_labels), np.bincount(test, minlength=num_labels)
    untrained = np.flatnonzero((tested > 0) & (trained == 0))
    if len(untrained):
        raise InputError(f"trace.partition: label {untrained[0]} has test images, but no training images")
    order = _in_order_to_follow(clients, train, num_clients, generator)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(trained) - trained, trained)  # within the label
    followers = (tested // np.maximum(trained, 1))[train[order]]
    followers += rank < (tested % np.maximum(trained, 1))[train[order]]
    followed = dealt(shuffled_by_label(test, generator), clients[order], followers)
    without = np.flatnonzero(np.bincount(followed, minlength=num_clients) == 0)
    if len(without):
        raise ConfigurationError(
            f"trace.partition: client {without[0]} has no test image of its labels ({len(without)} of "
            f"{num_clients} clients have none; there are {len(test)} test images); lower trace.clients"
        )
    return followed


def _in_order_to_follow(clients: Ints, train: Ints, num_clients: int, generator: np.random.Generator) -> Ints:
    """(train,) all training images by label, those that test images follow first in front."""
    cells, cell, of_cell = np.unique(
        clients * (train.max() + 1) + train, return_inverse=True, return_counts=True
    )  # a cell is a client's images of a label
    position = (_ranks(cell) + generator.random(len(cells))[cell]) / of_cell[cell]
    in_mix = np.lexsort((position, clients))  # by client; every beginning has about the client's mix
    sizes = np.bincount(clients, minlength=num_clients)
    rank = np.empty(len(clients), dtype=np.int64)
    rank[in_mix] = np.arange(len(clients)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    share = (rank + generator.random(num_clients)[clients]) / sizes[clients]
    # The first image of every client is in front, small clients before large ones, which have more to follow.
    share = np.where(rank == 0, sizes[clients] - float(len(clients)) - 1, share)
    return np.lexsort((share, train))


def _ranks(groups: Ints) -> Ints:
    """(n,) the number of earlier elements with the same value, for each of `groups` (n,)."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks
