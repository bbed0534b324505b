"""Differences with a t test each: paired by seed or Welch's, and Holm's correction over several of them.

A test is two-sided, of a population mean of 0. The interval of a difference is at its
own level of 95 %; only the p-values are corrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from experiments.results.statistics.intervals import FEWEST_SEEDS, Estimate, Interval, mean_estimate

Pairing = Literal["seed", "seed, other trace", "none", "identical"]
"""How two sets of runs were compared.

`seed`: seed by seed, in the same worlds. `seed, other trace`: by number of the seed, with another trace.
`none`: not paired, Welch's test. `identical`: seed by seed, and the results of every seed are the same.
"""


ROUNDING = 1e-9
"""Spreads and means that are not above this are rounding: accuracies are sums of numbers of 16 digits."""


@dataclass(frozen=True)
class Difference(Estimate):
    """The mean difference between two sets of runs, with a 95 % interval and a t test.

    `per_seed` is that of the seeds `seed_ids`; both are empty without pairs. `p` is the p-value of this test
    alone, `p_holm` that within its family; both are None when `ci95` is None, and for identical results,
    which need no test.
    """

    p: float | None
    p_holm: float | None
    pairing: Pairing
    seed_ids: tuple[int, ...] = ()

    def by_seed(self) -> Self:
        """The same without the interval and the test, which assume results in one group."""
        return replace(self, ci95=None, p=None, p_holm=None)

    def as_json(self) -> dict[str, object]:
        """The entry in `table.json`."""
        return {
            **super().as_json(),
            "seed_ids": list(self.seed_ids),
            "p": self.p,
            "p_holm": self.p_holm,
            "pairing": self.pairing,
        }


def paired_difference(
    values: Sequence[float | None],
    base: Sequence[float | None],
    *,
    scale: float = 1.0,
    pairing: Pairing = "seed",
) -> Difference:
    """The mean of `scale` x (value - base), paired by position, with the paired t test."""
    gains = [
        None if value is None or other is None else scale * (value - other)
        for value, other in zip(values, base, strict=True)
    ]
    estimate = mean_estimate(gains)
    if estimate.mean is None or estimate.ci95 is None:
        return Difference(estimate.mean, None, estimate.per_seed, None, None, pairing)
    if pairing == "identical":
        return Difference(estimate.mean, estimate.ci95, estimate.per_seed, None, None, pairing)
    known = [gain for gain in gains if gain is not None]
    error = float(np.std(known, ddof=1)) / math.sqrt(len(known))
    p = _two_sided(estimate.mean, error, len(known) - 1)
    return Difference(estimate.mean, estimate.ci95, estimate.per_seed, p, p, pairing)


def unpaired_difference(
    values: Sequence[float | None], base: Sequence[float | None], *, scale: float = 1.0
) -> Difference:
    """`scale` x (mean of `values` - mean of `base`), two independent samples, with Welch's t test.

    Source: B. L. Welch, Biometrika 34 (1947); degrees of freedom after Satterthwaite.
    """
    samples = [[scale * value for value in sample if value is not None] for sample in (values, base)]
    if min(map(len, samples)) == 0 or sum(map(len, samples)) < len(values) + len(base):
        return Difference(None, None, [], None, None, "none")
    mean = float(np.mean(samples[0]) - np.mean(samples[1]))
    if min(map(len, samples)) < FEWEST_SEEDS:
        return Difference(mean, None, [], None, None, "none")
    variances = [float(np.var(sample, ddof=1)) / len(sample) for sample in samples]
    error = math.sqrt(sum(variances))
    spread = sum(variance**2 / (len(sample) - 1) for variance, sample in zip(variances, samples, strict=True))
    degrees = error**4 / spread if spread > 0 else float(min(map(len, samples)) - 1)
    p = _two_sided(mean, error, degrees)
    return Difference(mean, _interval(mean, error, degrees), [], p, p, "none")


def corrected(family: Sequence[Difference | None]) -> list[Difference | None]:
    """The same differences, with `p_holm` corrected over all tests among them.

    The chance that any difference whose population mean is 0 has a `p_holm` of at most 5 % is at most 5 %.
    Differences that are equal in every seed are of the same results, and count as one test.
    """
    tests = _p_values(family)
    adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
    return [
        item if item is None or item.p is None else replace(item, p_holm=adjusted[_test(item)])
        for item in family
    ]


def num_tests(family: Sequence[Difference | None]) -> int:
    """The number of tests over which `corrected` corrects."""
    return len(_p_values(family))


def _p_values(family: Sequence[Difference | None]) -> dict[tuple[float | None, ...], float]:
    """The p-value of each test of a family, by what makes it a test of its own."""
    return {_test(item): item.p for item in family if item is not None and item.p is not None}


def _test(difference: Difference) -> tuple[float | None, ...]:
    """Equal for two differences that are the same test: the value of each seed, or without pairs the mean."""
    return (*difference.per_seed, difference.mean, difference.p)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected so that they hold for all at once, in the same order.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979): the i-th smallest of m is multiplied by
    m - i + 1, and raised to the largest before it.

    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    result = [1.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[index]))
        result[index] = least
    return result


def _two_sided(mean: float, error: float, degrees: float) -> float:
    """The p-value of a t test; without any spread, 1 for a mean of 0, and else 0, both but for rounding."""
    if error <= ROUNDING:
        return 1.0 if abs(mean) <= ROUNDING else 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(mean / error)))


def _interval(mean: float, error: float, degrees: float) -> Interval:
    if error <= ROUNDING:
        return mean, mean
    from scipy.special import stdtrit

    half = float(stdtrit(degrees, 0.975)) * error
    return mean - half, mean + half
