"""Mixes: maps of features drawn at random, by which features lie elsewhere or are on another scale."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from emulator.arrays import Floats, Floats32, Ints, one_blas_thread
from emulator.errors import ConfigurationError
from emulator.seeding import RandomStreams
from traces.changes.settings import Mixing

MOST_MIXED = 2_048
"""Features beyond which an orthogonal map is refused: its table alone would take 34 MB, and each sample
four million products."""

MAPS = 64
"""Orthogonal maps that are kept in memory."""


def mixed(features: Floats32, mix: Mixing, seed: int) -> Floats32:
    """Samples (n, *shape) by the map that a mix and a seed draw; those of one depend on no other.

    Args:
        features: the samples, float32.
        mix: the kind of the map, and its strength s: `orthogonal` is `orthogonal_map`; `channels` are another
            order of the first axis of a sample; `gains` take each feature x to x exp(s a) + s b, with a and b
            standard normal; `monotone` to x + s exp(a) tanh(exp(b) (x - c)), with c, too.
        seed: of the numbers that are drawn.

    >>> doubled = mixed(np.ones((2, 3), dtype=np.float32), Mixing(kind="gains", strength=0.0), seed=7)
    >>> doubled.tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    if mix.strength == 0:
        return features
    if mix.kind == "channels":
        return np.asarray(features[:, new_order(features.shape[1], seed)])
    flat = features.reshape(len(features), prod(features.shape[1:]))
    if mix.kind == "orthogonal":
        return _product(flat, orthogonal_map(flat.shape[1], mix.strength, seed)).reshape(features.shape)
    a, b, c = _generator(seed).standard_normal((3, flat.shape[1]))
    if mix.kind == "gains":
        made = flat * np.exp(mix.strength * a) + mix.strength * b
    else:
        made = flat + mix.strength * np.exp(a) * np.tanh(np.exp(b) * (flat - c))
    result: Floats32 = made.reshape(features.shape).astype(np.float32)
    return result


def check_mix(mix: Mixing, shape: tuple[int, ...], key: str, *, integers: bool) -> None:
    """ConfigurationError if samples of that shape cannot be mixed so."""
    if integers:
        raise ConfigurationError(
            f"{key}: mix: the samples here are whole numbers, such as tokens, which no map leaves whole; "
            f"change labels instead, as with 'permute'"
        )
    size, what = (
        (shape[0], "channels, the first axis") if mix.kind == "channels" else (prod(shape), "features")
    )
    if size < 2 and mix.kind in ("channels", "orthogonal"):
        raise ConfigurationError(
            f"{key}: mix: {mix.kind} needs at least two {what}; the samples here have shape {shape}"
        )
    if size > MOST_MIXED and mix.kind == "orthogonal":
        raise ConfigurationError(
            f"{key}: mix: orthogonal is of at most {MOST_MIXED:,} features, and samples of shape "
            f"{shape} have {size:,}; choices: gains, monotone, channels"
        )


def new_order(size: int, seed: int) -> Ints:
    """(size,) a random order of so many things, and never the one that they have."""
    order: Ints = _generator(seed).permutation(size)
    return np.roll(order, 1) if np.array_equal(order, np.arange(size)) else order


@lru_cache(maxsize=MAPS)
def orthogonal_map(size: int, strength: float, seed: int) -> Floats:
    """exp(strength log Q) of a rotation Q (size, size), uniform among those of so many dimensions.

    Q turns planes that are orthogonal to each other, each by an angle; this turns them by that share of it.

    Source: Mezzadri 2007 for the draw of Q, from the QR decomposition of normal numbers.

    >>> turned = orthogonal_map(3, 0.5, seed=1)
    >>> bool(np.allclose(turned @ turned, orthogonal_map(3, 1.0, seed=1), atol=1e-12))
    True
    """
    from scipy.linalg import schur  # which few runs need

    with one_blas_thread():
        drawn, upper = np.linalg.qr(_generator(seed).standard_normal((size, size)))
        drawn *= np.sign(np.diag(upper))
        if np.linalg.det(drawn) < 0:
            drawn[:, 0] *= -1
        # A normal matrix: its complex Schur form is diagonal, and has the angles of the planes.
        diagonal, basis = schur(drawn, output="complex")
        turns = np.exp(1j * strength * np.angle(np.diag(diagonal)))
        whole: Floats = ((basis * turns) @ basis.conj().T).real
    return whole


def _product(flat: Floats32, table: Floats) -> Floats32:
    """(n, D) samples times a table (D, D) of numbers up to 1, D at most `MOST_MIXED`.

    NOTE: with `@` the last bits of a sample would depend on how many are read with it. So both are taken as
    whole numbers, of 24 bits for the largest feature of a sample and twice 18 for a number of the table: all
    their sums are below 2^53, and exact in any order.
    """
    _, exponent = np.frexp(np.abs(flat).max(axis=1, initial=0, keepdims=True))
    whole = np.rint(np.ldexp(flat.astype(np.float64), 24 - exponent))
    high = np.rint(np.ldexp(table, 18))
    low = np.rint(np.ldexp(np.ldexp(table, 18) - high, 18))
    total = whole @ high + np.ldexp(whole @ low, -18)
    made: Floats32 = np.ldexp(total, exponent - 42).astype(np.float32)
    return made


def _generator(seed: int) -> np.random.Generator:
    return RandomStreams(seed).generator("mix")
