"""Base class of partitions: seeded functions from the labels of samples to the client of each.

A partition knows nothing of images, splits or time. The sources `digits` and `idx` apply one to their images
(`traces/partitions/population.py`); builders of traces apply one to the rows of a data set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from emulator.arrays import Ints
from emulator.errors import ConfigurationError
from emulator.plugins import Configured, returns


@dataclass(frozen=True)
class Samples:
    """The samples to be divided: their labels, and other columns that a partition may use.

    `labels` (n,) are class numbers from 0 on; each of `columns` has shape (n,).
    """

    labels: Ints
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)


class Partition(Configured, ABC):
    """Base class of all partitions, built with its own frozen settings.

    A subclass implements `assign`; callers use `divide`.
    """

    chance: ClassVar[str] = "draw from the generator that it is given"

    def divide(self, samples: Samples, num_clients: int | None, generator: np.random.Generator) -> Ints:
        """Divide samples among clients: each sample goes to exactly one, and no client is without samples.

        Args:
            samples: the samples, at least one.
            num_clients: the number of clients; None if the data decide it, as for `column`.
            generator: the source of all randomness; is advanced.

        Returns:
            The client of each sample, array of shape (n,), with values from 0 to the number of clients - 1.

        Raises:
            ConfigurationError: the settings do not fit the samples or the number of clients.
        """
        wanted = self.count_clients(samples, num_clients)
        if wanted > len(samples):
            raise ConfigurationError(
                f"partition: {wanted} clients cannot each have one of {len(samples)} samples; lower clients"
            )
        clients = self.assign(samples, wanted, generator)
        empty = np.flatnonzero(np.bincount(clients, minlength=wanted) == 0)
        if len(empty):
            raise ConfigurationError(
                f"partition: client {empty[0]} has no samples ({len(empty)} of {wanted} clients have none of "
                f"the {len(samples)}); lower clients"
            )
        return clients

    def count_clients(self, samples: Samples, num_clients: int | None) -> int:
        """Count the clients among which `samples` are divided.

        Args:
            samples: the samples.
            num_clients: the number of clients that is asked for; None if none is.

        Returns:
            `num_clients`, unless a partition overrides this.

        Raises:
            ConfigurationError: `num_clients` is None, or does not fit.
        """
        if num_clients is None:
            raise ConfigurationError("partition: must be given a number of clients; set clients")
        return num_clients

    @abstractmethod
    @returns("traces.checks:clients")
    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        """Assign a client to each sample.

        Args:
            samples: the samples, at least as many as there are clients; not to be written to.
            num_clients: the number of clients, at least 1.
            generator: the source of all randomness; is advanced.

        Returns:
            The client of each sample, array of shape (n,) with values in [0, num_clients).

        Raises:
            ConfigurationError: the settings do not fit the samples or the number of clients.
        """


def shuffled_by_label(labels: Ints, generator: np.random.Generator) -> Ints:
    """The numbers (n,) of all samples in order of label, and in random order within each label."""
    order = generator.permutation(len(labels))
    shuffled: Ints = order[np.argsort(labels[order], kind="stable")]
    return shuffled


def dealt(order: Ints, owners: Ints, sizes: Ints) -> Ints:
    """The client (n,) of each sample, if samples in this order (n,) are cut into runs of `sizes` (k,).

    Run j goes to the client `owners[j]`; the sizes sum to n.

    >>> dealt(np.array([3, 0, 1, 2]), owners=np.array([7, 8]), sizes=np.array([1, 3])).tolist()
    [8, 8, 8, 7]
    """
    clients = np.empty(len(order), dtype=np.int64)
    clients[order] = np.repeat(owners, sizes)
    return clients
