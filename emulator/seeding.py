"""Keyed random streams: the same (seed, purpose, key...) always gives the same numbers.

No global generator is read or seeded anywhere, so the order in which things run cannot change a result, and
two methods compared under one seed share every stream whose purpose is independent of the method.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from emulator.arrays import Floats, Ints

SCHEME = "Philox over SeedSequence(seed, spawn_key=(first 8 bytes of sha256(purpose), *key))"
"""How a stream is derived from its key, as recorded in a run's manifest."""

StreamKeys = npt.NDArray[np.uint64]
"""(n, 2) the Philox keys of n streams."""

Words = npt.NDArray[np.uint32]

# Constants of `numpy.random.SeedSequence` (O'Neill's `seed_seq_fe`), whose numbers numpy promises never to
# change.
POOL = 4  # words in its state
# The constant that the first word is hashed with, and the factor from each constant to the next.
MIXING = (0x43B0D7E5, 0x931E8875)
READING = (0x8B51F9DD, 0x58F38DED)  # the same, for reading the state
LEFT, RIGHT, HALF = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16)


@dataclass(frozen=True)
class RandomStreams:
    """The random streams of one seed.

    >>> streams = RandomStreams(7)
    >>> bool(streams.generator("batches", 3, 1).random() == streams.generator("batches", 3, 1).random())
    True
    >>> bool(streams.generator("batches", 3, 1).random() == streams.generator("batches", 1, 3).random())
    False
    """

    seed: int

    def generator(self, purpose: str, *key: int) -> np.random.Generator:
        """A new generator at the start of a stream.

        Args:
            purpose: what the numbers are for.
            key: non-negative integers, such as a round and a client.
        """
        sequence = np.random.SeedSequence(entropy=self.seed, spawn_key=(_word(purpose), *key))
        return np.random.Generator(np.random.Philox(sequence))

    def keys(self, purpose: str, *key: int | Ints) -> StreamKeys:
        """The Philox keys of n streams of one purpose, for `generators` and `uniforms`.

        Args:
            purpose: what the numbers are for.
            key: the parts of the key, each a number or an array of shape (n,), with values in [0, 2^32).

        Returns:
            Array of shape (n, 2).

        Raises:
            ValueError: a part has a value out of range.
        """
        parts = [np.atleast_1d(np.asarray(part)) for part in key]
        for part in parts:
            if part.size and not 0 <= part.min() <= part.max() < 2**32:
                raise ValueError(
                    f"the key of a stream has parts from {part.min()} to {part.max()}: must be in [0, 2^32)"
                )
        pool, hashed = _begun(self.seed, purpose)
        for part in parts:
            pool = _mixed(pool, _hashed(part.astype(np.uint32)[:, None], _constants(MIXING, hashed, POOL)))
            hashed += POOL
        words = _hashed(pool, _constants(READING, 0, POOL)).astype(np.uint64)
        return words[:, ::2] | words[:, 1::2] << np.uint64(32)


def generators(keys: StreamKeys) -> Iterator[np.random.Generator]:
    """Iterate over the streams of `keys`, with a generator at the start of each.

    All of them are one object: a generator is valid until the next one is taken.

    NOTE: takes a sixth of the time of that many calls of `RandomStreams.generator`.

    Args:
        keys: array of shape (n, 2), from `RandomStreams.keys`.

    >>> streams = RandomStreams(7)
    >>> keys = streams.keys("batches", 3, np.array([1, 2]))
    >>> [round(generator.random(), 3) for generator in generators(keys)]
    [0.417, 0.267]
    >>> round(streams.generator("batches", 3, 1).random(), 3)
    0.417
    """
    philox = np.random.Philox(key=0)
    generator = np.random.Generator(philox)
    state = philox.state
    for key in keys:
        state["state"]["key"] = key
        philox.state = state
        yield generator


def uniforms(keys: StreamKeys) -> Floats:
    """Two uniform random numbers for each stream of `keys`, without making a generator.

    They are the upper 53 bits of the two words of the stream's key, which is already the output of a hash.

    Args:
        keys: array of shape (n, 2), from `RandomStreams.keys`.

    Returns:
        Array of shape (n, 2), with values in [0, 1).

    >>> uniforms(RandomStreams(7).keys("crash", 3, np.array([1, 2]))).shape
    (2, 2)
    """
    numbers: Floats = (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


@cache
def _word(purpose: str) -> int:
    """The number that represents `purpose` in the key of a stream."""
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")


@cache
def _begun(seed: int, purpose: str) -> tuple[Words, int]:
    """The state of a SeedSequence after it has taken in the seed and the purpose.

    Returns its pool (1, POOL), and the number of words hashed so far, which determines the next constants.
    """
    words = _split(seed)
    words += [0] * (POOL - len(words)) + _split(_word(purpose))
    pool = _hashed(np.array([words[:POOL]], dtype=np.uint32), _constants(MIXING, 0, POOL))
    hashed = POOL
    for source in range(POOL):
        targets = [word for word in range(POOL) if word != source]
        change = _hashed(pool[:, source, None], _constants(MIXING, hashed, POOL - 1))
        pool[:, targets] = _mixed(pool[:, targets], change)
        hashed += POOL - 1
    for word in words[POOL:]:
        pool = _mixed(pool, _hashed(np.array([[word]], dtype=np.uint32), _constants(MIXING, hashed, POOL)))
        hashed += POOL
    return pool, hashed


def _split(number: int) -> list[int]:
    """The 32-bit words of `number`, lowest first; at least one."""
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words


@cache
def _constants(kind: tuple[int, int], first: int, count: int) -> Words:
    """(count + 1,) the hash constants of words number `first` to `first + count`, the last included."""
    start, factor = kind
    return np.array(
        [start * pow(factor, power, 2**32) % 2**32 for power in range(first, first + count + 1)], np.uint32
    )


def _hashed(words: Words, constants: Words) -> Words:
    """(n, k) hashes of `words` (n, k) or (n, 1).

    Word i of a row is hashed with constants i and i + 1 of `constants` (k + 1,).
    """
    products: Words = (words ^ constants[:-1]) * constants[1:]
    return products ^ products >> HALF


def _mixed(pool: Words, change: Words) -> Words:
    differences: Words = pool * LEFT - change * RIGHT
    return differences ^ differences >> HALF
