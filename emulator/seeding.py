"""Keyed random streams: (seed, purpose, key...) always names the same numbers.

No global generator is read or seeded anywhere, so the order in which things run cannot change a result,
and two methods compared under one seed share every stream whose purpose has nothing to do with the method.
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
"""How a stream is named, for a run's manifest."""

StreamKeys = npt.NDArray[np.uint64]
"""(n, 2) what Philox is keyed with for each of n streams."""

Words = npt.NDArray[np.uint32]

# Of `numpy.random.SeedSequence` (O'Neill's `seed_seq_fe`), whose numbers numpy promises never to change.
POOL = 4  # words of its state
# The first number that a word is hashed with, and what each is times the last.
MIXING = (0x43B0D7E5, 0x931E8875)
READING = (0x8B51F9DD, 0x58F38DED)  # the same, where the state is read
LEFT, RIGHT, HALF = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16)


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

    def keys(self, purpose: str, *key: int | Ints) -> StreamKeys:
        """(n, 2) the keys of n streams, for `generators`; each part of `key` is a number or an array (n,).

        ValueError unless all parts are in [0, 2^32).
        """
        parts = [np.atleast_1d(np.asarray(part)) for part in key]
        for part in parts:
            if len(part) and not 0 <= part.min() <= part.max() < 2**32:
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
    """A generator at the start of each stream that `keys` names: the same object, so that it is only good
    until the next is asked for.

    NOTE: a sixth of the time that as many calls of `RandomStreams.generator` take.

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
    """(n, 2) two numbers in [0, 1) for each of the streams that `keys` names, without a generator for any.

    They are the 53 upper bits of the two halves of its key, which a hash has mixed already.

    >>> uniforms(RandomStreams(7).keys("crash", 3, np.array([1, 2]))).shape
    (2, 2)
    """
    numbers: Floats = (keys >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


@cache
def _word(purpose: str) -> int:
    """The number that stands for `purpose` in the key of a stream."""
    return int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "little")


@cache
def _begun(seed: int, purpose: str) -> tuple[Words, int]:
    """(1, POOL) the pool of a SeedSequence that has seen the seed and the purpose, and how many words were
    hashed for it."""
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
    """The 32-bit words of `number`, lowest first; one at least."""
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words


@cache
def _constants(kind: tuple[int, int], first: int, count: int) -> Words:
    """(count + 1,) what the words from the `first` are hashed with, and the one after."""
    start, factor = kind
    return np.array(
        [start * pow(factor, power, 2**32) % 2**32 for power in range(first, first + count + 1)], np.uint32
    )


def _hashed(words: Words, constants: Words) -> Words:
    """(n, k) hashes of `words` (n, k) or (n, 1), each by two of the `constants` (k + 1,)."""
    products: Words = (words ^ constants[:-1]) * constants[1:]
    return products ^ products >> HALF


def _mixed(pool: Words, change: Words) -> Words:
    differences: Words = pool * LEFT - change * RIGHT
    return differences ^ differences >> HALF
