"""k-means for several k at once: k-means++ starts and Lloyd's iterations, all of them as stacked arrays.

A population of 200 clients takes microseconds of arithmetic per iteration, so that one call of numpy must do
it for every start of every k. How runs are grouped depends on the sizes of arrays alone, and moves the last
bits of a centre at most; the result does not depend on threads.

A run is one start of one k. Runs are ordered by descending k: the first of them are those that have a
cluster j, whatever j is, and so nothing is computed for clusters that a run does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from coordinator.distances import squared_euclidean
from emulator.arrays import Floats, Ints, one_blas_thread

AT_ONCE = 2**22
"""Numbers in the largest array, the distances to all candidates: more runs than that allows are grouped."""

ALL_PAIRS = 2048
"""Up to this number of points the distances of all pairs are computed beforehand."""

TOLERANCE = 1e-4
"""Starts compete once the centres of an iteration move by less than this share of the variance."""

MOST_ITERATIONS = 300
"""As in scikit-learn. Rounding can make two partitions of equal inertia alternate for ever."""

Labels = npt.NDArray[np.unsignedinteger[Any]]


def kmeans(points: Floats, counts: Sequence[int], starts: int, generator: np.random.Generator) -> list[Ints]:
    """The best partition of `points` (n, D) into k clusters that was found, for each k of `counts`.

    Greedy k-means++ (Arthur and Vassilvitskii 2007, of 2 + ln k candidates for each centre) starts each k
    `starts` times. Lloyd's iterations run until centres are at rest, up to TOLERANCE; then the start of least
    inertia, the sum of squared distances to the means of clusters, runs on until no point changes its
    cluster. A cluster that loses all its points continues at the point farthest from its own centre, as
    in scikit-learn.

    Returns (n,) the cluster of each point, 0 .. k - 1, for each of `counts`. They must be at least 1 and at
    most the number of distinct points; then no cluster is empty, unless distances vanish in rounding.

    >>> points = np.array([[0.0], [1.0], [10.0], [11.0], [20.0]])
    >>> [members] = kmeans(points, [3], starts=10, generator=np.random.default_rng(0))
    >>> [members.tolist().index(cluster) for cluster in members]
    [0, 0, 2, 2, 4]
    """
    with one_blas_thread():
        search = _Search(_in_fewer_dimensions(points - points.mean(axis=0)), max(counts))
        best: dict[int, tuple[float, Floats]] = {}
        for k in search.groups(np.repeat(sorted(counts, reverse=True), starts)):
            fitted = search.lloyd(k, search.starts(k, generator), TOLERANCE)
            for count, inertia, centers in zip(k.tolist(), fitted.inertia, fitted.centers, strict=True):
                if count not in best or inertia < best[count][0]:
                    best[count] = inertia, centers[:count]
        members: dict[int, Ints] = {}
        for k in search.groups(np.array(list(best))):
            started = np.zeros((len(k), *best[int(k[0])][1].shape))
            for run, count in enumerate(k.tolist()):
                started[run, :count] = best[count][1]
            fitted = search.lloyd(k, started, tolerance=0.0)
            members |= zip(k.tolist(), fitted.members.astype(np.int64), strict=True)
    return [members[count] for count in counts]


def _in_fewer_dimensions(points: Floats) -> Floats:
    """`points` (n, D) in an orthonormal basis of their span, if that has fewer than D dimensions.

    All distances stay the same. Blocks of columns bound the memory.
    """
    n, columns = points.shape
    if columns <= n:
        return points
    coordinates = np.zeros((0, n))
    for start in range(0, columns, 4 * n):
        block = np.concatenate([coordinates, points[:, start : start + 4 * n].T])
        coordinates = np.asarray(np.linalg.qr(block, mode="r"))
    return coordinates.T


@dataclass(frozen=True)
class _Fitted:
    """The result of R runs with at most K clusters."""

    members: Labels  # (R, n)
    centers: Floats  # (R, K, D); arbitrary for clusters that a run does not have
    inertia: Floats  # (R,)


class _Search:
    """k-means of the same points (n, D), whose mean is 0, with at most `most` clusters."""

    def __init__(self, points: Floats, most: int) -> None:
        self._points = points
        self._with_ones = np.column_stack([points, np.ones(len(points))])
        self._columns = np.ascontiguousarray(self._with_ones.T)
        self._norms = np.einsum("nd,nd->n", points, points)
        self._variance = float(points.var(axis=0).mean())
        self._pairs = squared_euclidean(points, points) if len(points) <= ALL_PAIRS else None
        self._most = most
        self._candidates = 2 + int(np.log(most))
        self._labels = np.min_scalar_type(most)

    def groups(self, runs: Ints) -> Iterator[Ints]:
        """Yield `runs`, the k of each, in order, in groups whose arrays have at most AT_ONCE numbers."""
        step = max(1, AT_ONCE // (self._candidates * len(self._points)))
        for start in range(0, len(runs), step):
            yield runs[start : start + step]

    def starts(self, k: Ints, generator: np.random.Generator) -> Floats:
        """(R, k[0], D) the centres of a greedy k-means++ start for each of `k` (R,), in descending order."""
        n = len(self._points)
        # The same numbers however runs are grouped.
        draws = generator.random((len(k), self._most, self._candidates))
        chosen = np.zeros((len(k), int(k[0])), dtype=np.int64)
        chosen[:, 0] = draws[:, 0, 0] * n
        closest = self._distances(chosen[:, 0])
        for j in range(1, int(k[0])):
            runs = np.count_nonzero(k > j)
            closest = closest[:runs]
            cumulative = np.cumsum(closest, axis=1)
            marks = draws[:runs, j] * cumulative[:, -1:]
            candidates = np.count_nonzero(cumulative[:, None, :] <= marks[:, :, None], axis=2)
            candidates = np.minimum(candidates, n - 1)  # where all distances are 0
            distances = self._distances(candidates.ravel()).reshape(*candidates.shape, n)
            np.minimum(distances, closest[:, None, :], out=distances)
            best = np.arange(runs), distances.sum(axis=2).argmin(axis=1)
            chosen[:runs, j] = candidates[best]
            closest = distances[best]
        return self._points[chosen]

    def _distances(self, rows: Ints) -> Floats:
        """(m, n) squared distances from the points `rows` (m,) to all points."""
        if self._pairs is not None:
            return self._pairs[rows]
        # |x - y|^2 = (-2 x, |x|^2, 1) . (y, 1, |y|^2)
        left = np.column_stack([-2 * self._points[rows], self._norms[rows], np.ones(len(rows))])
        squared: Floats = left @ np.vstack([self._columns, self._norms])
        return np.maximum(squared, 0, out=squared)

    def lloyd(self, k: Ints, centers: Floats, tolerance: float) -> _Fitted:
        """Run Lloyd's iterations for runs with `k` (R,) clusters, descending, from `centers` (R, K, D).

        A run ends when its members stay the same, or after the centres moved by at most `tolerance`: the sum
        of their squared distances, as a share of the variance of a coordinate.
        """
        shape = len(k), len(self._points)
        fitted = _Fitted(np.zeros(shape, self._labels), np.zeros_like(centers), np.zeros(len(k)))
        runs, at_rest = np.arange(len(k)), np.zeros(len(k), dtype=bool)
        last: Labels | None = None
        scratch = np.empty(shape), np.empty(shape)
        for iteration in range(1, MOST_ITERATIONS + 1):
            members, closest = self._assign(k, centers, *scratch)
            ended = at_rest | (iteration == MOST_ITERATIONS)
            if last is not None:
                ended |= (members == last).all(axis=1)
            if ended.any():
                fitted.members[runs[ended]] = members[ended]
                fitted.centers[runs[ended]] = centers[ended]
                fitted.inertia[runs[ended]] = (closest[ended] + self._norms).sum(axis=1)
                runs, k, centers = runs[~ended], k[~ended], centers[~ended]
                members, closest = members[~ended], closest[~ended]
            if len(runs) == 0:
                break
            moved = self._means(k, members, closest, centers, scratch[1])
            at_rest = ((moved - centers) ** 2).sum(axis=(1, 2)) <= tolerance * self._variance
            centers, last = moved, members
        return fitted

    def _assign(self, k: Ints, centers: Floats, closest: Floats, scratch: Floats) -> tuple[Labels, Floats]:
        """(R, n) the nearest centre of each point, the lowest of equals, and its distance.

        Distances are squared, and less the square of the point itself. `closest` and `scratch` are arrays to
        work in, of at least R rows.
        """
        closest = closest[: len(k)]
        members = np.zeros(closest.shape, dtype=self._labels)
        # |x - c|^2 - |x|^2 = (-2 c, |c|^2) . (x, 1)
        squares = np.einsum("rkd,rkd->rk", centers, centers)[:, :, None]
        products = np.concatenate([-2 * centers, squares], axis=2)
        np.matmul(products[:, 0], self._columns, out=closest)
        for j in range(1, int(k[0])):
            runs = np.count_nonzero(k > j)
            distances = np.matmul(products[:runs, j], self._columns, out=scratch[:runs])
            nearer = distances < closest[:runs]
            np.minimum(closest[:runs], distances, out=closest[:runs])
            # NOTE: j where it is nearer, without a mask: a tenth of the time of np.copyto(..., where=nearer).
            np.maximum(members[:runs], nearer.view(np.uint8) * self._labels.type(j), out=members[:runs])
        return members, closest

    def _means(self, k: Ints, members: Labels, closest: Floats, centers: Floats, scratch: Floats) -> Floats:
        """(R, K, D) the mean of each cluster's `members` (R, n); an empty one gets the farthest point."""
        moved = centers.copy()
        for j in range(int(k[0])):
            runs = np.count_nonzero(k > j)
            sums = np.equal(members[:runs], j, out=scratch[:runs]) @ self._with_ones
            size = sums[:, -1]
            moved[:runs, j] = sums[:, :-1] / np.maximum(size, 1)[:, None]
            for run in np.flatnonzero(size == 0):
                farthest = int((closest[run] + self._norms).argmax())
                moved[run, j] = self._points[farthest]
                closest[run, farthest] = -self._norms[farthest]  # so that another one gets another point
        return moved
