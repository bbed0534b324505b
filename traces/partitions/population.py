"""Clients that own the images of a partition: what `trace.partition` makes of the images of a source."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError, InputError
from traces.arrivals import SPLITS, arrivals_of, num_noise_starts
from traces.drift.base import Population, PopulationContext
from traces.images import ImageSet
from traces.partitions.base import Partition, Samples, dealt, shuffled_by_label
from traces.tables.base import Table
from traces.tables.sorted import SortedTable


class PartitionedImages(Population):
    """The population of `trace.partition`: every image belongs to one client, from the start to the end.

    The partition divides the training images; the test images follow them (`follow`), so that a client is
    tested on the label mix that it trains on.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

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
            arrival=np.zeros(len(client)),
            label=images.labels[image],
            image=image,
            noise_start=np.concatenate(starts),
        )
        return SortedTable(arrivals, number, context.scratch)


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
