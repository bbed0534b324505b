"""Seeds on which every arm is off: what all arms of a seed share has moved them together.

The arms of a seed start from the same initial model, on the same data. A small network that starts badly then
shifts every arm of its seed, and with few seeds the means and spreads of a whole table. The mark does not say
why a seed is off, and no mean leaves the seed out.

Centre and spread of the other seeds are their median and median absolute deviation, scaled by 1.4826 to the
standard deviation of a normal distribution. With mean and standard deviation two bad seeds hide each other:
on FedDrift's CIRCLE-2 the worst of ten seeds, 5 spreads off in the median arm, would not be marked, since
other bad seeds, and arms with two modes, widen the standard deviations.

Chance marks seeds too, the more often the more alike the arms are. With normally distributed figures whose
pairwise correlation is 0.9, some seed of ten is marked in 9 % of tables of 22 arms and in 54 % of tables of
two; at 0.5, in under 0.1 % and in 31 % (4,000 draws each). So a mark comes with its distance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.results.json_files import Finished

MARKED_BY = "accuracy_omitting_drift"
"""The figure by which seeds are marked where the true concepts are known."""

MOST_SPREADS = 2.0
"""Spreads that a figure may be away from those of the arm's other seeds."""

NORMAL_SCALE = 1.4826
"""Standard deviation of a normal distribution, relative to its median absolute deviation."""

FEWEST_SEEDS = 5
"""Seeds below which the spread of the others says too little to mark one."""

FEWEST_ARMS = 2


def marked_seeds(figures: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """The marked seeds, ascending, each with the median over the arms of its distances.

    A seed's distance in an arm is that of its figure from the median of the arm's other seeds, in their
    spreads; it is infinite if the others have no spread and the seed another figure. A seed is marked if its
    distance is above `MOST_SPREADS` in every arm. Arms with under `FEWEST_SEEDS` seeds, and those with the
    same figure in every seed, are left out, and with under `FEWEST_ARMS` others nothing is marked. A seed
    that some arm lacks is not marked.

    Args:
        figures: The figure of each seed, by arm.

    >>> usual = {0: 0.90, 1: 0.91, 2: 0.93, 4: 0.94}
    >>> marked_seeds({"a": {**usual, 3: 0.5}, "b": {**usual, 3: 0.7}}).keys()
    dict_keys([3])
    """
    arms = [
        by_seed
        for by_seed in figures.values()
        if len(by_seed) >= FEWEST_SEEDS and len(set(by_seed.values())) > 1
    ]
    if len(arms) < FEWEST_ARMS:
        return {}
    found = [_distances(by_seed) for by_seed in arms]
    distances = {
        seed: [by_seed.get(seed, 0.0) for by_seed in found]
        for seed in sorted({seed for by_seed in found for seed in by_seed})
    }
    return {
        seed: statistics.median(by_arm) for seed, by_arm in distances.items() if min(by_arm) > MOST_SPREADS
    }


def marked_by_drift(finished: Finished) -> dict[int, float]:
    """The marked seeds by the accuracy omitting drift; none where the true concepts are not known."""
    figures: dict[str, dict[int, float]] = {}
    for arm, found in finished.arms.items():
        values = found[MARKED_BY].per_seed
        if len(values) == len(found.seed_ids):  # earlier versions wrote no seeds
            pairs = zip(found.seed_ids, values, strict=True)
            figures[arm] = {seed: value for seed, value in pairs if value is not None}
    return marked_seeds(figures)


def as_json(marked: Mapping[int, float]) -> list[dict[str, Any]]:
    """Marked seeds as `summary.json` has them: {seed, distance}; an infinite distance is null."""
    return [
        {"seed": seed, "distance": distance if math.isfinite(distance) else None}
        for seed, distance in marked.items()
    ]


def marked_clause(marked: Sequence[Mapping[str, Any]]) -> str:
    """A warning about marked seeds, entries of `as_json`, without a full stop; empty without one.

    >>> marked_clause([{"seed": 3, "distance": 4.26}])  # doctest: +ELLIPSIS
    'every arm is off on seed 3 (by 4.3 spreads of its other seeds in the median arm): what the arms of ...'
    """
    seeds = [
        f"seed {entry['seed']}"
        + (
            ""
            if entry["distance"] is None
            else f" (by {entry['distance']:.1f} spreads of its other seeds in the median arm)"
        )
        for entry in marked
    ]
    if not seeds:
        return ""
    return (
        f"every arm is off on {', '.join(seeds)}: what the arms of a seed share, such as the first model, "
        f"may have moved them all"
    )


def _distances(by_seed: Mapping[int, float]) -> dict[int, float]:
    """The distance of each seed's figure from those of the others, in their spreads."""
    found = {}
    for seed, value in by_seed.items():
        others = np.array([figure for other, figure in by_seed.items() if other != seed])
        centre = float(np.median(others))
        spread = NORMAL_SCALE * float(np.median(np.abs(others - centre)))
        away = abs(value - centre)
        found[seed] = away / spread if spread > 0 else math.inf if away > 0 else 0.0
    return found
