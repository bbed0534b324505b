"""Distances and centres, written a second time from the specification, in plain numpy."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def distances(a: Array, b: Array, name: str) -> Array:
    """(n, k) from each of the rows `a` (n, D) to each of the rows `b` (k, D)."""
    a, b = np.broadcast_arrays(a[:, None], b[None])
    if name == "l1":
        return np.abs(a - b).sum(axis=2)
    if name == "js":
        nats = [p * np.log(np.where(p > 0, 2 * p / (a + b + (p == 0)), 1)) for p in (a, b)]
        return np.sqrt(np.maximum(0, (nats[0] + nats[1]).sum(axis=2) / 2))
    if name == "cosine":
        return np.maximum(0, 1 - (unit(a) * unit(b)).sum(axis=2))
    squares = ((a - b) ** 2).sum(axis=2)
    return squares if name == "squared_euclidean" else np.sqrt(squares)


def unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def nearest(rows: Array, centres: Array, distance: str) -> Array:
    """(n,) the nearest centre of each row; ValueError for a tie, as no rule says who wins it."""
    between = distances(rows, centres, distance)
    if len(centres) > 1 and (np.diff(np.sort(between)[:, :2]) < 1e-9).any():
        raise ValueError("a report is equally far from two centres: choose another population")
    return between.argmin(axis=1)


def k_center(rows: Array, k: int, distance: str) -> Array:
    """(k, D) the first row, then always the one that is farthest from all chosen before."""
    chosen = [0]
    while len(chosen) < k:
        chosen.append(int(distances(rows, rows[chosen], distance).min(axis=1).argmax()))
    return rows[chosen]
