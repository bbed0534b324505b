"""Distances between reports: named functions of (n, D) and (k, D) that return (n, k).

Reports are compared for three purposes, and each names its distance: detection, clustering and the trigger.
All functions are exact to about 12 digits, 0 between equal rows, and NaN where a row has NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np

from emulator.arrays import Floats

DistanceName = Literal["l1", "js", "euclidean", "squared_euclidean", "cosine"]

Distance = Callable[[Floats, Floats], Floats]
"""(n, D), (k, D) -> (n, k): the distance from each row of the first to each row of the second."""

SHARES_ONLY: frozenset[DistanceName] = frozenset({"js"})
"""Distances that are defined only for rows of shares: no number below 0, and a sum of 1."""

AT_ONCE = 2**15
"""Numbers in a block of `js`: a few such arrays fit into a core's cache."""

PAIRED_ROWS = 16
"""Rows in a block of `paired`, which discards all but the diagonal of a block of distances."""

TINY = 1e-300
CLOSE = 1e-3
"""A divergence below this is computed without cancellation; above, cancellation costs less than 12 digits."""


def l1(left: Floats, right: Floats) -> Floats:
    """The sum of absolute differences; 0 to 2 between rows of shares."""
    from scipy.spatial.distance import cdist

    return cdist(left, right, "cityblock")


def euclidean(left: Floats, right: Floats) -> Floats:
    """The root of the sum of squared differences."""
    from scipy.spatial.distance import cdist

    return cdist(left, right, "euclidean")


def squared_euclidean(left: Floats, right: Floats) -> Floats:
    """The sum of squared differences."""
    from scipy.spatial.distance import cdist

    return cdist(left, right, "sqeuclidean")


def cosine(left: Floats, right: Floats) -> Floats:
    """1 - the cosine of the angle between two rows; 0 to 2.

    A row of zeros has no direction: it is at 1 from every other row, as if orthogonal, and at 0 from another
    row of zeros.
    """
    left, right = unit_rows(left), unit_rows(right)
    # Half the squared distance of the unit rows is the same number, without cancellation near 0.
    apart: Floats = squared_euclidean(left, right) / 2
    directed = np.count_nonzero(left, axis=1) > 0, np.count_nonzero(right, axis=1) > 0
    apart[directed[0][:, None] != directed[1]] = 1.0
    return apart


def js(left: Floats, right: Floats) -> Floats:
    """The root of the Jensen-Shannon divergence, with natural logarithms; 0 to sqrt(ln 2).

    Rows must be shares (`SHARES_ONLY`), which is not checked here. With m = (p + q) / 2 the divergence is
    (KL(p||m) + KL(q||m)) / 2, where 0 log 0 = 0. Endres and Schindelin 2003.

    >>> js(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).round(6).tolist()
    [[0.0, 0.832555]]
    """
    # 2 * divergence = h(p) + h(q) - h(p + q) + ln 2 * sum(p + q), where h(x) is the sum of x ln x: one
    # logarithm per pair and label.
    divergence = np.empty((len(left), len(right)))
    left_terms, right_terms = _entropy_terms(left), _entropy_terms(right)
    of_row = np.where(left == 0, TINY, left)  # so that no logarithm is of 0
    step = max(1, AT_ONCE // max(1, right.size))
    for start in range(0, len(left), step):
        rows = slice(start, start + step)
        sums = of_row[rows, None, :] + right
        logarithms = np.log(sums)
        np.einsum("ijk,ijk->ij", sums, logarithms, out=divergence[rows])
    divergence = (left_terms[:, None] + right_terms - divergence) / 2
    close = np.argwhere(divergence < CLOSE)
    step = max(1, AT_ONCE // max(1, left.shape[1]))
    for start in range(0, len(close), step):
        i, j = close[start : start + step].T
        divergence[i, j] = _close_divergence(left[i], right[j])
    return np.sqrt(divergence)


def _entropy_terms(shares: Floats) -> Floats:
    """(n,) the sum of x ln x + x ln 2 over each row."""
    positive = np.where(shares == 0, TINY, shares)
    terms: Floats = (positive * np.log(2 * positive)).sum(axis=1)
    return terms


def _close_divergence(p: Floats, q: Floats) -> Floats:
    """(n,) the divergence of each row of `p` (n, D) from the same row of `q`, without cancellation.

    With s = p + q and d = (q - p) / s, a label adds s / 4 ((1 + d) ln(1 + d) + (1 - d) ln(1 - d)), which is
    never negative.
    """
    total = np.where(p + q == 0, 1.0, p + q)
    part = (q - p) / total
    # Where one share is 0 the factor of the infinite logarithm is 0, and so is their product.
    below = (1 - part) * np.log1p(-np.minimum(part, 1 - 1e-16))
    above = (1 + part) * np.log1p(np.maximum(part, 1e-16 - 1))
    divergence: Floats = (total / 4 * (below + above)).sum(axis=1)
    return np.maximum(divergence, 0.0)


def unit_rows(rows: Floats) -> Floats:
    """`rows` (n, D) scaled to length 1; a row of zeros stays as it is."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    scaled = rows / np.where(largest > 0, largest, 1)  # so that no square overflows or vanishes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Floats = scaled / np.where(lengths > 0, lengths, 1)
    return unit


def comparable(rows: Floats, name: DistanceName) -> Floats:
    """`rows` (n, D) such that their means stand for them: unit rows for "cosine", else `rows` themselves."""
    return unit_rows(rows) if name == "cosine" else rows


def paired(left: Floats, right: Floats, name: DistanceName) -> Floats:
    """(n,) the distance of each row of `left` (n, D) from the same row of `right` (n, D)."""
    distance, apart = DISTANCES[name], np.empty(len(left))
    for start in range(0, len(left), PAIRED_ROWS):
        rows = slice(start, start + PAIRED_ROWS)
        apart[rows] = np.diagonal(distance(left[rows], right[rows]))
    return apart


DISTANCES: Mapping[DistanceName, Distance] = {
    "l1": l1,
    "js": js,
    "euclidean": euclidean,
    "squared_euclidean": squared_euclidean,
    "cosine": cosine,
}
