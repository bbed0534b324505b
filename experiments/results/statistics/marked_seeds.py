"""Seeds on which every arm is off: what all arms of a seed share has moved them together.

The arms of a seed start from the same initial model, on the same data. A small network that starts badly then
shifts every arm of its seed, and with few seeds the means and spreads of a whole table. The mark does not say
why a seed is off, and no mean leaves the seed out.

Centre and spread of the other seeds are their median and median absolute deviation, scaled by 1.4826 to the
standard deviation of a normal distribution. With mean and standard deviation two bad seeds hide each other:
on FedDrift's CIRCLE-2 the worst of ten seeds, 5 spreads off in the median arm, would not be marked, since
other bad seeds, and arms with two modes, widen the standard deviations.

Chance marks seeds too, the more often the more alike the arms are, and the fewer. With normally distributed
figures of all arms, each pair correlated by 0.9, some seed is marked in this share of tables (2,000 draws):

    arms             2      5     22
    5 seeds       71 %   40 %   19 %
    10 seeds      54 %   29 %   10 %

and, correlated by 0.5, in 6 and 3 % of those with five arms. So there is no mark with fewer arms, and a mark
comes with its distance: it is a reason to look, not a test.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from experiments.results.statistics.whole_runs import Finished

MARKED_BY = "accuracy_omitting_drift"
"""The figure by which seeds are marked where the true concepts are known."""

MOST_SPREADS = 2.0
"""Spreads that a figure may be away from those of the arm's other seeds."""

NORMAL_SCALE = 1.4826
"""Standard deviation of a normal distribution, relative to its median absolute deviation."""

FEWEST_SEEDS = 5
"""Seeds below which the spread of the others says too little to judge an arm."""

FEWEST_ARMS = 5
"""Judged arms below which chance marks too many seeds."""

SAME = 1e-9
"""Difference up to which two figures, as shares or in percent, are the same."""


@dataclass(frozen=True)
class MarkedSeed:
    """A marked seed, the number of arms that were judged, and the median over them of its distances."""

    seed: int
    arms: int
    distance: float

    def as_json(self) -> dict[str, Any]:
        """The entry in `summary.json`; an infinite distance is null."""
        return {**asdict(self), "distance": self.distance if math.isfinite(self.distance) else None}


def marked_seeds(figures: Mapping[str, Mapping[int, float]]) -> list[MarkedSeed]:
    """The marked seeds, ascending: those that are off in every judged arm.

    An arm is judged if it has `FEWEST_SEEDS` seeds or more, and not the same figure in every seed; arms with
    the same figures as another are judged once. If `FEWEST_ARMS` arms are judged, a seed is marked if each of
    them has it and its distance is above `MOST_SPREADS`. The distance is that of its figure from the median
    of the arm's other seeds, in their spreads; infinite if the others have no spread and the seed another
    figure.

    Args:
        figures: The figure of each seed, by arm.

    >>> usual = {0: 0.90, 1: 0.91, 2: 0.93, 4: 0.94}
    >>> [marked] = marked_seeds({f"arm {n}": {**usual, 3: n / 10} for n in range(5)})
    >>> marked.seed, marked.arms, round(marked.distance, 1)
    (3, 5, 32.4)
    """
    judged = {
        tuple(sorted(by_seed.items())): by_seed
        for by_seed in figures.values()
        if len(by_seed) >= FEWEST_SEEDS and max(by_seed.values()) - min(by_seed.values()) > SAME
    }
    if len(judged) < FEWEST_ARMS:
        return []
    found = [_distances(by_seed) for by_seed in judged.values()]
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in found)))
    return [
        MarkedSeed(seed, len(found), statistics.median(by_seed[seed] for by_seed in found))
        for seed in seeds
        if all(by_seed[seed] > MOST_SPREADS for by_seed in found)
    ]


def marked_by_drift(finished: Finished) -> list[MarkedSeed]:
    """The marked seeds by the accuracy omitting drift; none where the true concepts are not known."""
    figures: dict[str, dict[int, float]] = {}
    for arm, found in finished.arms.items():
        pairs = zip(finished.seed_ids[arm], found[MARKED_BY].per_seed, strict=True)
        figures[arm] = {seed: value for seed, value in pairs if value is not None}
    return marked_seeds(figures)


def marked_clause(marked: Sequence[Mapping[str, Any]]) -> str:
    """A warning about marked seeds, entries of `as_json`, without a full stop; empty without one.

    >>> marked_clause([{"seed": 3, "arms": 22, "distance": 4.26}])  # doctest: +ELLIPSIS
    'all 22 arms that can be judged are off on seed 3 (by 4.3 spreads of its other seeds in the median ...'
    """
    if not marked:
        return ""
    seeds = [
        f"seed {entry['seed']}"
        + (
            ""
            if entry["distance"] is None
            else f" (by {entry['distance']:.1f} spreads of its other seeds in the median arm)"
        )
        for entry in marked
    ]
    return (
        f"all {marked[0]['arms']} arms that can be judged are off on {', '.join(seeds)}: what the arms of a "
        f"seed share, such as the first model, may have moved them all"
    )


def _distances(by_seed: Mapping[int, float]) -> dict[int, float]:
    """The distance of each seed's figure from those of the others, in their spreads."""
    found = {}
    for seed, value in by_seed.items():
        others = np.array([figure for other, figure in by_seed.items() if other != seed])
        centre = float(np.median(others))
        spread = NORMAL_SCALE * float(np.median(np.abs(others - centre)))
        away = abs(value - centre)
        found[seed] = away / spread if spread > SAME else math.inf if away > SAME else 0.0
    return found
