"""The constants and the mathematics of Oort: scores of clients, and samples in proportion to them.

Pure functions of columns; they know nothing of rounds, visits or views.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from coordinator.selectors.order_statistics import at_rank, lowest
from emulator.arrays import NO_IDS, Floats, Ints
from emulator.messages import Updates
from emulator.numbers import Count, Number, PositiveShare, Share
from emulator.plugins import Settings

NARROWEST = 1e-4
"""Least width of a scale, for utilities that are all but equal."""

UNCERTAINTY = 0.1
"""Weight of the bonus of a client whose utility was learned long ago."""

WINDOW = 10
"""To exploit n clients, more than 10 n are drawn from, if need be from below the cut-off."""

FLAT, SHARP = 0.1, 5.0
"""Relative changes of a window's utility: up to the first and from the second on, the pacer acts."""

Percent = Annotated[float, Number(ge=0, le=100)]


class OortSettings(Settings):
    """The constants under their names in FedScale, whose values are the defaults."""

    exploration_factor: Share = Field(
        0.9, description="share of participants that were never tried, before its first decay"
    )
    exploration_decay: PositiveShare = Field(0.98, description="factor of that share at each selection")
    exploration_min: Share = Field(0.3, description="its lower bound", examples=[0.2])
    round_threshold: Percent = Field(
        30, description="percentile of durations at the start: slower clients are penalised; 100: nobody is"
    )
    round_penalty: Annotated[float, Number(ge=0, le=100)] = Field(
        2.0, description="exponent of preferred duration / duration, the factor of a slower client's score"
    )
    pacer_step: Count = Field(20, description="selections in a window of the pacer")
    pacer_delta: Percent = Field(5, description="percents by which the pacer moves round_threshold")
    clip_bound: Share = Field(0.9, description="rank, as a share, from which on utilities count as equal")
    cut_off_util: Share = Field(
        0.05, description="tried clients are drawn from this share of the best score left over"
    )
    sample_window: Annotated[float, Number(ge=1, le=1e6)] = Field(
        5, description="untried clients are drawn from the best ones, this many times the number wanted"
    )


@dataclass(frozen=True)
class Scale:
    """The scale on which utilities are compared: (min(utility, `clip`) - `low`) / `width`."""

    low: float
    width: float
    clip: float

    @classmethod
    def of(cls, utility: Floats, clip_bound: float) -> Scale:
        """The scale of the `utility` (n,) of the clients that are compared; only those above 0 count.

        `low` is 0.999 x the smallest, and the width reaches to the largest one, also if it is clipped: `clip`
        is the one at index int(`clip_bound` x number) of the ascending ones.

        >>> Scale.of(np.array([0.0, 1.0, 2.0, 4.0, 5.0]), 0.5)
        Scale(low=0.999, width=4.001, clip=4.0)
        """
        positive = utility[utility > 0]
        if len(positive) == 0:
            return cls(0.0, NARROWEST, 0.0)
        low = 0.999 * float(positive.min())
        width = max(float(positive.max()) - low, NARROWEST)
        return cls(low, width, at_rank(positive, int(len(positive) * clip_bound)))


def scores(utility: Floats, last_round: Ints, selection: int, scale: Scale) -> Floats:
    """(n,) scores of tried clients: their utility on `scale`, and a bonus for the age of what is known.

    The bonus is sqrt(0.1 ln(`selection`) / `last_round`), with the number of this selection, and that of the
    round in which each utility was learned, both from 1.

    >>> scores(np.array([2.0, 5.0]), np.array([1, 1]), 1, Scale(low=1.0, width=4.0, clip=3.0)).tolist()
    [0.25, 0.5]
    """
    bonus = np.sqrt(UNCERTAINTY * math.log(selection) / last_round)
    return (np.minimum(utility, scale.clip) - scale.low) / scale.width + bonus


def slowed(values: Floats, duration_s: Floats, preferred_s: float, penalty: float) -> Floats:
    """(n,) `values`; those of slower clients times (`preferred_s` / duration) to the power of `penalty`.

    >>> slowed(np.ones(3), np.array([1.0, 2.0, 4.0]), 2.0, 2.0).tolist()
    [1.0, 1.0, 0.25]
    """
    slow = duration_s > preferred_s
    share = np.divide(preferred_s, duration_s, out=np.ones(len(values)), where=slow)
    return values * share**penalty


def preferred_s(duration_s: Floats, percent: float) -> float:
    """The duration at index int(n x `percent` / 100) of the ascending `duration_s` (n,); inf from 100 on."""
    return math.inf if percent >= 100 else at_rank(duration_s, int(len(duration_s) * percent / 100))


def paced(percent: float, delta: float, window: float, before: float) -> float:
    """The percentile of preferred durations after a window, by the sum of its utilities and the one `before`.

    Utility that stays as it was allows slower clients; if it changed sharply, they are penalised more.

    >>> [paced(30.0, 5.0, window, before=10.0) for window in (11.0, 12.0, 60.0)]
    [35.0, 30.0, 25.0]
    """
    change = abs(window - before)
    if change <= FLAT * before:
        return min(100.0, percent + delta)
    return max(delta, percent - delta) if change >= SHARP * before else percent


def learned(updates: Updates | None, most: int) -> tuple[Ints, Floats]:
    """Ids, ascending, of the clients with updates of a finite loss, and the utility of each.

    That is |B| sqrt(mean squared loss), |B| = min(samples, `most`), summed over the models it has trained.
    """
    if updates is None:
        return NO_IDS, np.zeros(0)
    utility = np.minimum(updates.num_samples, most) * np.sqrt(updates.metrics["loss_squared"])
    known = np.isfinite(utility)
    clients, row = np.unique(updates.client[known], return_inverse=True)
    summed: Floats = np.bincount(row, weights=utility[known]).astype(np.float64)
    return clients, summed


def number_untried(count: int, tried: int, untried: int, exploration: float) -> int:
    """How many of `count` participants were never tried, if a share of `exploration` is wanted.

    Each group makes up for the other if that has too few.

    >>> [number_untried(10, tried, untried, 0.3) for tried, untried in ((20, 20), (20, 2), (4, 20))]
    [3, 2, 6]
    """
    return min(untried, count - min(count - int(count * exploration), tried))


def exploited(score: Floats, count: int, cut_off: float, generator: np.random.Generator) -> Ints:
    """Indices, ascending, of `count` <= n of the clients with the highest `score` (n,), none below 0.

    They are drawn in proportion to the score, among those above the cut-off: `cut_off` x the (count + 1)-th
    best score, or the worst one. If these are not more than 10 x `count`, then among the 10 x `count` + 1
    best.

    >>> exploited(np.array([0.0, 9.0, 8.0]), 2, 0.05, np.random.default_rng(0))
    array([1, 2])
    """
    if count == 0:
        return NO_IDS
    best = np.flatnonzero(score >= cut_off * -at_rank(-score, count))
    if len(best) <= WINDOW * count:
        best = lowest(-score, WINDOW * count + 1)
    return best[drawn(score[best], count, generator)]


def explored(weight: Floats, count: int, window: float, generator: np.random.Generator) -> Ints:
    """Indices, ascending, of `count` <= n clients, drawn among the int(`window` x `count`) largest `weight`.

    They are drawn in proportion to it.
    """
    best = lowest(-weight, int(window * count))
    return best[drawn(weight[best], count, generator)]


def drawn(weight: Floats, count: int, generator: np.random.Generator) -> Ints:
    """Indices, ascending, of `count` clients drawn without replacement, in proportion to `weight` (n,) >= 0.

    Of exponential times with the rates `weight` these are the `count` shortest, which is the same as one draw
    after the other among those that are left (Efraimidis and Spirakis 2006). Weights of 0 come last.

    >>> drawn(np.array([0.0, 1.0, 0.0, 2.0]), 3, np.random.default_rng(0))
    array([0, 1, 3])
    """
    times = np.full(len(weight), np.inf)
    with np.errstate(over="ignore"):  # by a weight that is all but 0
        np.divide(generator.standard_exponential(len(weight)), weight, out=times, where=weight > 0)
    return lowest(times, count)
