"""Directions of updates: clients grouped by them, and the direction nearest to a client's (FlexCFL).

Nothing here has P columns but the few directions of groups: updates may be on other ranks, and their inner
products suffice.
"""

from __future__ import annotations

import numpy as np

from coordinator.clusterers.kmeans import kmeans
from coordinator.clusterers.partition import first_distinct
from emulator.arrays import Floats, Ints, one_blas_thread
from emulator.messages import Updates

STARTS = 10
"""k-means++ starts, of which the best inertia wins."""

NEGLIGIBLE = 1e-12
"""An eigenvalue below this share of the largest is rounding, and 0."""

DIGITS = 9
"""Cosines are rounded to this many decimals, so that equal updates have equal rows."""

TINY = 1e-300


def principal_cosines(gram: Floats, count: int) -> Floats:
    """(n, min(count, n)) cosines of n updates with the first `count` principal directions of them all.

    `gram` (n, n) has the inner products of the updates. They are decomposed data-driven (EDC of FlexCFL):
    with D the updates in rows, D^T = U S W^T, direction j is the j-th column of U. So gram = W S^2 W^T, and
    the cosine of update i with it is (D U)_ij / |d_i| = (W S)_ij / sqrt(gram_ii). A column is unique up to
    its sign. An update of zero has no direction; its cosines are 0, and so are those with a direction that
    the updates do not have.

    >>> updates = np.array([[3.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    >>> np.abs(principal_cosines(updates @ updates.T, 2)).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    with one_blas_thread():
        squares, vectors = np.linalg.eigh(gram)  # in ascending order
    squares, vectors = squares[::-1][:count], vectors[:, ::-1][:, :count]
    singular = np.sqrt(np.where(squares > NEGLIGIBLE * squares[0], squares, 0.0))
    norms = np.sqrt(np.diag(gram))
    cosines: Floats = np.round(vectors * singular / np.maximum(norms, TINY)[:, None], DIGITS)
    return cosines


def grouped_by_direction(gram: Floats, most: int, generator: np.random.Generator) -> Ints:
    """(n,) the group of each of n updates, by k-means of their `principal_cosines` with `most` directions.

    `gram` (n, n) has their inner products. There are `most` groups, or as many as there are different rows of
    cosines if that is fewer; none of them is empty. Groups are numbered in order of their first update.

    >>> updates = np.array([[1.0, 0.1], [-2.0, 0.0], [3.0, -0.1]])
    >>> grouped_by_direction(updates @ updates.T, 2, np.random.default_rng(0)).tolist()
    [0, 1, 0]
    """
    cosines = principal_cosines(gram, most)
    [found] = kmeans(cosines, [len(first_distinct(cosines, most))], STARTS, generator)
    _, first, groups = np.unique(found, return_index=True, return_inverse=True)
    numbers: Ints = np.argsort(np.argsort(first))[groups]
    return numbers


def mean_of_each(groups: Ints) -> Floats:
    """(k, n) the weights of n rows in the mean of each of their `groups` (n,), 0 .. k - 1, none empty.

    >>> mean_of_each(np.array([0, 1, 0])).tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    members = np.arange(groups.max() + 1)[:, None] == groups
    weights: Floats = members / members.sum(axis=1, keepdims=True)
    return weights


def nearest_direction(updates: Updates, directions: Floats) -> Ints:
    """(n,) the row of `directions` (k, P) that is nearest to each update: of least (1 - cosine) / 2.

    Ties go to the lowest row. A direction of zero is orthogonal to all updates, and an update of zero goes to
    row 0.
    """
    lengths = np.sqrt(np.square(directions).sum(axis=1))
    # The length of the update itself does not change which cosine is the largest.
    rows: Ints = (updates.project(directions) / np.maximum(lengths, TINY)).argmax(axis=1)
    return rows
