"""Partitions that cut the samples in order of label into pieces, and deal these: clients have few labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count
from emulator.plugins import Settings
from traces.partitions.base import Partition, Samples, dealt, shuffled_by_label
from traces.partitions.sizes import equal_sizes

PARTS_PER_CLIENT = 2


class ShardsSettings(Settings):
    """How many shards a client has."""

    shards_per_client: Count = Field(2, description="shards that each client has")


class Shards(Partition):
    """Shards of the data in order of label, dealt at random (McMahan et al. 2017).

    Samples in order of label, and in random order within a label, are cut into clients x `shards_per_client`
    shards whose sizes differ by at most one, and every client is dealt equally many: most have as many labels
    as shards, or fewer. In the paper, section 3, 100 clients have two shards of 300 images of MNIST each.

    Source: McMahan et al. 2017, section 3.

    >>> samples = Samples(np.array([0, 1, 0, 1, 0, 1]))
    >>> clients = Shards(ShardsSettings(shards_per_client=1)).divide(samples, 2, np.random.default_rng(0))
    >>> clients.tolist()
    [0, 1, 0, 1, 0, 1]
    """

    Settings: ClassVar[type[Settings]] = ShardsSettings
    settings: ShardsSettings

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        per_client = self.settings.shards_per_client
        shards = num_clients * per_client
        if shards > len(samples):
            raise ConfigurationError(
                f"partition.shards_per_client = {per_client}: {num_clients} clients with {per_client} shards "
                f"each need at least {shards} samples, and there are {len(samples)}; lower "
                f"shards_per_client or clients"
            )
        owners = generator.permutation(np.repeat(np.arange(num_clients), per_client))
        order = shuffled_by_label(samples.labels, generator)
        return dealt(order, owners, equal_sizes(len(samples), shards))


class QuartersSettings(Settings):
    """The proportions of the four parts of a class."""

    sizes: tuple[Count, Count, Count, Count] = Field(
        (2000, 2750, 3250, 4000),
        description="relative sizes of the four parts of each class, FedConD's for Fashion-MNIST; for "
        "CIFAR-10 it has [1500, 2250, 2750, 3500]",
    )


class Quarters(Partition):
    """Four unequal parts of each class, two parts of different classes for each client (FedConD).

    The number of clients must be twice that of classes: 20 for Fashion-MNIST, as published. Parts are dealt
    at random. We differ in two points. The published sizes of Fashion-MNIST sum to 12,000 images of a class,
    of which there are 7,000: they are taken as proportions (1/6, 11/48, 13/48 and 1/3). And where the paper
    leaves it open, the parts of a client are of different classes: hands are dealt again until they are,
    about five times.

    Source: Chen et al. 2021 (FedConD), "Asynchronous federated learning for sensor data with concept drift".

    >>> samples = Samples(np.repeat([0, 1], 12))
    >>> partition = Quarters(QuartersSettings(sizes=(1, 2, 4, 5)))
    >>> clients = partition.divide(samples, 4, np.random.default_rng(0))
    >>> [np.bincount(clients[samples.labels == label]).tolist() for label in (0, 1)]
    [[4, 1, 5, 2], [2, 1, 5, 4]]
    """

    Settings: ClassVar[type[Settings]] = QuartersSettings
    settings: QuartersSettings

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        classes, sizes = np.unique(samples.labels, return_counts=True)
        quarters = len(self.settings.sizes)
        fitting = len(classes) * quarters // PARTS_PER_CLIENT
        if len(classes) < 2:
            raise ConfigurationError(
                "partition: quarters gives a client parts of two classes, and all samples are of one"
            )
        if num_clients != fitting:
            raise ConfigurationError(
                f"partition: clients = {num_clients}: must be {fitting}, as quarters cuts each of "
                f"{len(classes)} classes into {quarters} parts, and each client has {PARTS_PER_CLIENT}"
            )
        proportions = np.cumsum(self.settings.sizes) / sum(self.settings.sizes)
        borders = np.rint(sizes[:, None] * proportions).astype(np.int64)  # (classes, quarters)
        parts = np.diff(borders, axis=1, prepend=0)
        owners = _hands(len(classes), quarters, num_clients, generator)
        return dealt(shuffled_by_label(samples.labels, generator), owners.ravel(), parts.ravel())


def _hands(num_classes: int, quarters: int, num_clients: int, generator: np.random.Generator) -> Ints:
    """(classes, quarters) the client of each part: each has two parts, of different classes.

    A deal succeeds with a probability above 0.2, for any number of classes from 2 on.
    """
    deck = np.repeat(np.arange(num_clients), PARTS_PER_CLIENT)
    while True:
        owners = generator.permutation(deck).reshape(num_classes, quarters)
        if (np.diff(np.sort(owners, axis=1), axis=1) > 0).all():
            return owners
