"""Partitions that ignore labels: every client has a random sample of the data, of equal or unequal size."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from emulator.arrays import Floats, Ints
from emulator.errors import ConfigurationError
from emulator.numbers import Count, Number
from emulator.plugins import Settings
from traces.partitions.base import Partition, Samples, dealt


class Iid(Partition):
    """Equal parts of the data in random order: sizes differ by at most one.

    Source: McMahan et al. 2017, section 3.

    >>> clients = Iid(Iid.Settings()).divide(Samples(np.zeros(5, int)), 2, np.random.default_rng(0))
    >>> np.bincount(clients).tolist()
    [3, 2]
    """

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        return dealt(
            generator.permutation(len(samples)),
            np.arange(num_clients),
            equal_sizes(len(samples), num_clients),
        )


class LognormalSettings(Settings):
    """How unequal the sizes of clients are."""

    sigma: Annotated[float, Number(ge=0, le=100)] = Field(
        1.0, description="standard deviation of the logarithm of a client's size; 0: equal sizes"
    )
    min_samples: Count = Field(1, description="samples that every client has at least")


class Lognormal(Partition):
    """Parts of unequal size of the data in random order: sizes are lognormal.

    Sizes are proportional to exp(sigma z), z standard normal, and sum to the number of samples. Clients that
    would have fewer than `min_samples` have `min_samples`, at the expense of all others in proportion. The
    synthetic data of FedProx has such sizes, with sigma = 2 (in their code exp(N(4, 2)) + 50).

    Source: Li et al. 2020, the sizes of the synthetic data of FedProx.

    >>> partition = Lognormal(LognormalSettings(sigma=2, min_samples=2))
    >>> clients = partition.divide(Samples(np.zeros(100, int)), 5, np.random.default_rng(0))
    >>> np.bincount(clients).tolist()
    [18, 10, 50, 17, 5]
    """

    Settings: ClassVar[type[Settings]] = LognormalSettings
    settings: LognormalSettings

    def assign(self, samples: Samples, num_clients: int, generator: np.random.Generator) -> Ints:
        least = self.settings.min_samples
        refuse_unreachable_minimum(least, num_clients, len(samples))
        weights = self.settings.sigma * generator.standard_normal(num_clients)
        weights = np.exp(weights - weights.max())
        sizes = _with_minimum(weights, least, len(samples))
        return dealt(generator.permutation(len(samples)), np.arange(num_clients), sizes)


def equal_sizes(num_samples: int, num_parts: int) -> Ints:
    """(num_parts,) sizes that sum to `num_samples` and differ by at most one, larger ones first."""
    sizes: Ints = num_samples // num_parts + (np.arange(num_parts) < num_samples % num_parts).astype(np.int64)
    return sizes


def refuse_unreachable_minimum(min_samples: int, num_clients: int, num_samples: int) -> None:
    """ConfigurationError if there are too few samples for each client to have `min_samples`."""
    if min_samples * num_clients > num_samples:
        raise ConfigurationError(
            f"partition.min_samples = {min_samples}: {num_clients} clients cannot each have {min_samples} of "
            f"{num_samples} samples; lower min_samples or clients"
        )


def _with_minimum(weights: Floats, least: int, total: int) -> Ints:
    """(k,) sizes of at least `least` that sum to `total`, otherwise proportional to `weights` (k,), rounded.

    `total` is at least k times `least`. Of the sizes rounded down, those with the largest remainders have one
    more, and of equal remainders the first.
    """
    at_least = np.zeros(len(weights), dtype=bool)
    shares = weights * (total / weights.sum())
    # Each turn adds clients to those at the minimum, and never all: the mean of the others is not below it.
    while (low := ~at_least & (shares < least)).any() and not (at_least | low).all():
        at_least |= low
        shares = weights * ((total - least * at_least.sum()) / weights[~at_least].sum())
    shares = np.where(at_least, float(least), np.maximum(shares, least))
    sizes: Ints = np.floor(shares).astype(np.int64)
    more = np.argsort(sizes - shares, kind="stable")[: total - sizes.sum()]
    sizes[more] += 1
    return sizes
