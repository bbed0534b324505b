"""Mixes: maps of features drawn at random, by which features lie elsewhere or are on another scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi, prod

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, one_blas_thread
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.changes.settings import Mixing

MOST_MIXED = 2_048
"""Features beyond which an orthogonal map is refused: a sample would take four million products."""

MOST_NUMBERS = 2**24
"""Numbers of all orthogonal maps of a change, which are in memory: 128 MiB."""

Map = Callable[[Floats32], Floats32]
"""Samples (n, *shape) -> (n, *shape), each by itself: what is read with one does not change its last bit."""


def drawn_map(mix: Mixing, magnitude: float, shape: tuple[int, ...], seed: int) -> Map:
    """The map of a mix, at its strength times a magnitude.

    `orthogonal` is `orthogonal_map`; `channels` lie in another order, along the first axis of a sample;
    `gains` take each feature x to x exp(s a) + s b, at strength s, with a and b standard normal, and
    `monotone` to x + s exp(a) tanh(exp(b) (x - c)), with c, too.

    Args:
        mix: the kind, and the strength.
        magnitude: its factor.
        shape: that of a sample.
        seed: of the numbers that are drawn, the same for all magnitudes.

    >>> turn = drawn_map(Mixing(kind="channels"), 1.0, (2,), seed=7)
    >>> turn(np.array([[1.0, 2.0]], dtype=np.float32)).tolist()
    [[2.0, 1.0]]
    """
    generator = RandomStreams(seed).generator("mix")
    strength = mix.strength * magnitude
    if strength == 0:
        return np.array  # a copy
    if mix.kind == "channels":
        return partial(np.take, indices=new_order(shape[0], generator), axis=1)
    if mix.kind == "orthogonal":
        return partial(_product, table=orthogonal_map(prod(shape), strength, generator))
    a, b, c = generator.standard_normal((3, *shape))
    if mix.kind == "gains":
        return partial(_gains, factor=np.exp(strength * a), offset=strength * b)
    return partial(_curves, height=strength * np.exp(a), slope=np.exp(b), middle=c)


def check_mix(mix: Mixing, shape: tuple[int, ...], levels: int, key: str) -> None:
    """ConfigurationError if samples of that shape cannot be mixed so, at so many levels of strength."""
    size, of = (shape[0], "channels, the first axis") if mix.kind == "channels" else (prod(shape), "features")
    if size < 2 and mix.kind in ("channels", "orthogonal"):
        raise ConfigurationError(
            f"{key}: mix: {mix.kind} needs at least two {of}; the samples here have shape {shape}"
        )
    if mix.kind != "orthogonal":
        return
    if size > MOST_MIXED:
        raise ConfigurationError(
            f"{key}: mix: orthogonal is of at most {MOST_MIXED:,} features, and samples of shape "
            f"{shape} have {size:,}; choices: gains, monotone"
        )
    if levels * size**2 > MOST_NUMBERS:
        raise ConfigurationError(
            f"{key}.magnitude: has {levels} levels, each an orthogonal map of {size:,} features; at most "
            f"{MOST_NUMBERS // size**2} are supported; lower over, or lengthen trace.rounds_per_step"
        )


def new_order(size: int, generator: np.random.Generator) -> Ints:
    """(size,) a random order of so many things, and never the one that they have."""
    order: Ints = generator.permutation(size)
    return np.roll(order, 1) if np.array_equal(order, np.arange(size)) else order


def orthogonal_map(size: int, strength: float, generator: np.random.Generator) -> Floats:
    """(size, size) exp(strength A): a rotation in planes that are orthogonal to each other, drawn at random.

    A is skew-symmetric, with planes that no direction is preferred by, those of a skew-symmetric matrix of
    normal numbers, and angles that are uniform from -pi to pi; with an odd size one direction stays. So
    `strength` is the share of each angle.

    >>> half, whole = (orthogonal_map(3, share, np.random.default_rng(1)) for share in (0.5, 1.0))
    >>> bool(np.allclose(half @ half, whole, atol=1e-12))
    True
    """
    drawn = generator.standard_normal((size, size))
    angles = generator.uniform(-pi, pi, size // 2)
    turns = np.concatenate([angles, np.zeros(size % 2), -angles[::-1]])
    with one_blas_thread():
        # The eigenvectors of i times a skew-symmetric matrix are planes, in conjugate pairs from both ends.
        _, planes = np.linalg.eigh(1j * (drawn - drawn.T))
        whole: Floats = ((planes * np.exp(1j * strength * turns)) @ planes.conj().T).real
    return whole


def _product(features: Floats32, table: Floats) -> Floats32:
    """Samples times a table (D, D) of numbers up to 1, with D at most `MOST_MIXED`.

    NOTE: with `@` the last bits of a sample would depend on how many are read with it. So both are taken as
    whole numbers, of 24 bits for the largest feature of a sample and twice 18 for a number of the table: all
    their sums are below 2^53, and exact in any order.
    """
    flat = features.reshape(len(features), len(table)).astype(np.float64)
    _, exponent = np.frexp(np.abs(flat).max(axis=1, initial=0, keepdims=True))
    whole = np.rint(np.ldexp(flat, 24 - exponent))
    high = np.rint(np.ldexp(table, 18))
    low = np.rint(np.ldexp(np.ldexp(table, 18) - high, 18))
    with one_blas_thread():  # beside jobs more threads take four times the CPU seconds
        total = whole @ high + np.ldexp(whole @ low, -18)
    made: Floats32 = np.ldexp(total, exponent - 42).reshape(features.shape).astype(np.float32)
    return made


def _gains(features: Floats32, factor: Floats, offset: Floats) -> Floats32:
    return (features * factor + offset).astype(np.float32)


def _curves(features: Floats32, height: Floats, slope: Floats, middle: Floats) -> Floats32:
    return (features + height * np.tanh(slope * (features - middle))).astype(np.float32)
