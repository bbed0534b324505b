"""Families of changes of features that a client can undo: what it tries, or measures, of its own samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from coordinator.adaptations.base import ClientView
from coordinator.adaptations.class_means import ClassMeans, Sums
from emulator.arrays import Floats, Floats32, one_blas_thread

Transform = Callable[[Floats32], Floats32]
"""Features (s, *shape) of samples -> (s, *shape), each sample by itself: how they are read in one way."""

LEAST_DEVIATION = 0.1
"""The least standard deviation that a feature is divided by, times the mean one of a client's features."""

NEGLIGIBLE = 1e-9
"""A direction of means of labels below this share of the largest is rounding, and unknown."""

LEVELS = 20
"""Quantiles of each feature that a way of `quantiles` has."""


class Family(ABC):
    """Chooses a way for each client, and reads samples in it."""

    @property
    def tried(self) -> int:
        """The ways that each client tries on the model; 0 if it measures its samples alone."""
        return 0

    @property
    def compares(self) -> bool:
        """Whether ways follow from the means of labels that clients have reported."""
        return False

    def check(self, shape: tuple[int, ...]) -> str | None:
        """What is wrong with samples of that shape; None: nothing."""
        return None

    @abstractmethod
    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        """(n, width, K) the numbers of the way of each client for each model; NaN for plain."""

    @abstractmethod
    def read(self, features: Floats32, ways: Floats) -> Floats32:
        """Samples (s, *shape) read in ways (s, K), none of them NaN."""


@dataclass(frozen=True)
class Tried(Family):
    """A few transforms, of which each client takes the best: `by` "loss" of the model, or "class_means".

    A way has the number of its transform. Of equals it is the first.
    """

    transforms: Sequence[Transform]
    by: str
    images: bool = False

    @property
    def tried(self) -> int:
        return 0 if self.compares else len(self.transforms)

    @property
    def compares(self) -> bool:
        return self.by == "class_means"

    def check(self, shape: tuple[int, ...]) -> str | None:
        if self.images and (len(shape) not in (2, 3) or min(shape[-2:]) < 2):
            return "rotations: turn images, of shape (height, width) or (channels, height, width)"
        two = np.arange(2 * prod(shape), dtype=np.float32).reshape(2, *shape)
        for number, transform in enumerate(self.transforms):
            made = np.asarray(transform(two.copy()))
            if made.shape != two.shape:
                return f"transforms: number {number} makes {made.shape} of two samples, and must keep shapes"
            alone, again = (np.asarray(transform(two[:1].copy())) for _ in range(2))
            if np.array_equal(alone, again, equal_nan=True) and not np.array_equal(made[:1], alone, True):
                return f"transforms: number {number} reads a sample otherwise if another one is beside it"
        return None

    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        if self.compares:
            best = np.repeat(self._nearest(view, means)[:, None], view.plan.models.shape[1], axis=1)
        else:
            losses = view.losses(np.arange(float(len(self.transforms)))[:, None])
            best = np.where(np.isfinite(losses), losses, np.inf).argmin(axis=2)
        return best[:, :, None].astype(np.float64)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        result = features.copy()
        for number in np.unique(ways[:, 0]).astype(np.int64).tolist():
            some = ways[:, 0] == number
            result[some] = self.transforms[number](features[some])
        return result

    def _nearest(self, view: ClientView, means: ClassMeans) -> Floats:
        """(n,) the transform that brings the means of a client's labels nearest to those of all; else NaN."""
        best = np.full(len(view.clients), np.nan)
        if means:
            for held in view.held():
                made = (transform(held.features.copy()) for transform in self.transforms)
                own = (Sums.of(replace(held, features=each), view.num_labels).means for each in made)
                far = [np.nansum((each - means.sums.means) ** 2, axis=(1, 2)) for each in own]
                best[held.rows] = np.argmin(far, axis=0)
        return best


class Standardised(Family):
    """Each feature less its mean over the client's samples, divided by its standard deviation there.

    A way has both, for each of D features.
    """

    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        sums = [Sums.of(held, view.num_labels) for held in view.held()]
        mean = np.concatenate([of.mean for of in sums])
        deviations = np.concatenate([of.deviations for of in sums])
        least = LEAST_DEVIATION * deviations.mean(axis=1, keepdims=True)
        ways = np.hstack([mean, np.maximum(deviations, np.where(least > 0, least, 1.0))])
        return _for_each_model(ways, view)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        mean, deviation = np.split(ways, 2, axis=1)
        flat = (features.reshape(len(features), -1) - mean) / deviation
        return flat.reshape(features.shape).astype(np.float32)


class Quantiles(Family):
    """Each feature as its rank among the client's samples, from -1 to 1: whatever rises with it is undone.

    A way has LEVELS quantiles of each of D features, the lowest first. Equal values have their middle rank.
    """

    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        levels = (np.arange(LEVELS) + 0.5) / LEVELS
        ways = []
        for held in view.held():
            flat = held.features.reshape(len(held.features), -1)
            parts = np.split(flat, np.flatnonzero(np.diff(held.owner)) + 1)
            ways += [np.quantile(part, levels, axis=0).ravel() for part in parts]
        return _for_each_model(np.array(ways, dtype=np.float64), view)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        flat = features.reshape(len(features), -1)
        ranks = np.zeros(flat.shape)
        for level in np.split(ways, LEVELS, axis=1):
            ranks += np.sign(flat - level)
        return (ranks / LEVELS).reshape(features.shape).astype(np.float32)


class Channels(Family):
    """The channels of a sample, the first axis of its features, in the order in which they fit best.

    A channel's profile are the means of its features for each label, and twice their standard deviations. The
    assignment of the client's channels to those of all reports has the least sum of squared distances
    (Kuhn 1955). A way has for each channel the one that is read there.
    """

    @property
    def compares(self) -> bool:
        return True

    def check(self, shape: tuple[int, ...]) -> str | None:
        return "channels: are the first axis of a sample, at least two" if shape[0] < 2 else None

    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        from scipy.optimize import linear_sum_assignment

        ways = []
        for held in view.held():
            channels = held.features.shape[1]
            if not means:
                ways.append(np.full((len(held.rows), channels), np.nan))
                continue
            (target,) = _profiles(means.sums, channels)
            for own in _profiles(Sums.of(held, view.num_labels), channels):
                cost = np.nansum((target[:, None] - own) ** 2, axis=2)
                ways.append(linear_sum_assignment(cost)[1][None].astype(np.float64))
        return _for_each_model(np.concatenate(ways), view)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        places = ways.astype(np.int64).reshape(*ways.shape, *(1,) * (features.ndim - 2))
        return np.take_along_axis(features, places, axis=1)


class Orthogonal(Family):
    """An orthogonal map, undone by the one that brings a client's means of labels nearest to those of all.

    That is Procrustes' problem: of the labels that both have, with M (L, D) the client's means less the mean
    of these means, and T those of all reports, it is U V^T of M^T T = U S V^T (Schoenemann 1966). Of L labels
    at most L - 1 directions are determined; what lies in others is left out. A way has the mean of either's
    means, U and V^T. A client that has one label alone has its samples read plain.
    """

    @property
    def compares(self) -> bool:
        return True

    def choose(self, view: ClientView, means: ClassMeans) -> Floats:
        ways = []
        for held in view.held():
            size = prod(held.features.shape[1:])
            rank = min(size, view.num_labels)
            for own in Sums.of(held, view.num_labels).means:
                target = means.sums.means[0] if means else np.full_like(own, np.nan)
                both = ~np.isnan(own - target).any(axis=1)
                way = np.full(2 * size * (1 + rank), np.nan)
                if both.sum() > 1:
                    middle, common = own[both].mean(axis=0), target[both].mean(axis=0)
                    turn = _procrustes(own[both] - middle, target[both] - common, rank)
                    way = np.concatenate([middle, common, *map(np.ravel, turn)])
                ways.append(way)
        return _for_each_model(np.array(ways), view)

    def read(self, features: Floats32, ways: Floats) -> Floats32:
        flat = features.reshape(len(features), -1)
        (count, size), rank = flat.shape, ways.shape[1] // (2 * flat.shape[1]) - 1
        middle, common, left, right = np.split(ways, [size, 2 * size, size * (2 + rank)], axis=1)
        within = np.einsum("sd,sdr->sr", flat - middle, left.reshape(count, size, rank))
        turned = np.einsum("sr,srd->sd", within, right.reshape(count, rank, size)) + common
        result: Floats32 = turned.reshape(features.shape).astype(np.float32)
        return result


def _procrustes(means: Floats, target: Floats, rank: int) -> tuple[Floats, Floats]:
    """(D, rank) and (rank, D) the factors of the map that brings means (L, D) nearest to `target` (L, D).

    Of the decompositions M = P A and T = Q B, with P (D, L) and Q orthonormal, that of A^T B is L by L.
    """
    with one_blas_thread():
        (from_, a), (to, b) = np.linalg.qr(means.T), np.linalg.qr(target.T)
        left, sizes, right = np.linalg.svd(a @ b.T)
        left[:, sizes <= NEGLIGIBLE * sizes[0]] = 0
        factors = from_ @ left, right @ to.T
    missing = rank - len(sizes)
    return np.pad(factors[0], ((0, 0), (0, missing))), np.pad(factors[1], ((0, missing), (0, 0)))


def _profiles(sums: Sums, channels: int) -> Floats:
    """(k, channels, numbers) the profiles of the channels of k clients."""
    of_labels, spread = (
        numbers.reshape(len(numbers), -1, channels, numbers.shape[-1] // channels)
        for numbers in (sums.means, 2 * sums.deviations)
    )
    rows = np.concatenate([of_labels, spread], axis=1).swapaxes(1, 2)
    return rows.reshape(len(rows), channels, -1)


def _for_each_model(ways: Floats, view: ClientView) -> Floats:
    """(n, width, K) the ways (n, K) of clients, the same for all models that serve them."""
    return np.repeat(ways[:, None], view.plan.models.shape[1], axis=1)
