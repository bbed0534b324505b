"""Keyed random streams: (seed, purpose, key...) always names the same numbers.

No global generator is read or seeded anywhere, so the order in which things run cannot change a result,
and two methods compared under one seed share every stream whose purpose has nothing to do with the method.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np

from emulator.arrays import Ints

SCHEME = "Philox over SeedSequence(seed, spawn_key=(first 8 bytes of sha256(purpose), *key))"
"""How a stream is named, for a run's manifest."""


def deal(num_clients: int, num_devices: int, generator: np.random.Generator) -> Ints:
    """(num_clients,) a device for each client: random permutations of all devices, one after the other.

    So no file order shows, and no device serves twice before each has served once.

    >>> np.sort(deal(6, 3, np.random.default_rng(0)))
    array([0, 0, 1, 1, 2, 2])
    """
    laps = -(-num_clients // num_devices)
    devices = np.tile(np.arange(num_devices, dtype=np.int64), (laps, 1))
    return generator.permuted(devices, axis=1).ravel()[:num_clients]


@dataclass(frozen=True)
class RandomStreams:
    """The streams of one seed.

    >>> streams = RandomStreams(7)
    >>> bool(streams.generator("batches", 3, 1).random() == streams.generator("batches", 3, 1).random())
    True
    >>> bool(streams.generator("batches", 3, 1).random() == streams.generator("batches", 1, 3).random())
    False
    """

    seed: int

    def generator(self, purpose: str, *key: int) -> np.random.Generator:
        """A fresh generator at the start of the stream that `purpose` and the non-negative `key` name."""
        sequence = np.random.SeedSequence(entropy=self.seed, spawn_key=(_word(purpose), *key))
        return np.random.Generator(np.random.Philox(sequence))


@cache
def _word(purpose: str) -> int:
    """The number that stands for `purpose` in the key of a stream."""
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")
