"""Operating points: what detectors find, and how late, at rates of false alarms that are the same for all.

The points of a curve are thresholds that were played. Between two of them a detector is taken whose clients
draw either threshold by lot, once and independent of their data: both make the same decisions, and so its
false alarms, and the drifts that it finds, are in the mean those of the two by the share that draws each. Its
mean delay weighs the delays of the two by the drifts that it finds by either.

The share is chosen so that the mean rate of false alarms of these very seeds is the one compared at. So the
interval of what is found is that of f - k (r - mean r), with the found f and the rate r of each seed, and the
slope k of the curve there: the mean is that of f, and the chance of the false alarms counts. A test simulates
its coverage, which is 56 to 82 % without that. Delays have no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from emulator.arrays import Floats
from experiments.results.reading.recorded import curve_of
from experiments.results.statistics.detection.scores import Detection
from experiments.results.statistics.intervals import Estimate, amount_estimate, share_estimate

RATES = (0.5, 1.0, 2.0)
"""False alarms per 1,000 decisions at which detectors are compared."""

RATE, FOUND, DELAY = "false_alarms_per_1000", "recall_all", "delay_rounds_mean"
"""The figures of a point, by their names in `tables/detection.py`."""


@dataclass(frozen=True)
class Point:
    """A detector at a threshold, or at two of which its clients draw one by lot.

    Attributes:
        thresholds: The one, or the two.
        figures: At one threshold all figures; at two `RATE`, `FOUND` and `DELAY`.
    """

    thresholds: tuple[float, ...]
    figures: Mapping[str, Estimate]

    @property
    def place(self) -> tuple[float, float]:
        """False alarms per 1,000 decisions and the share of drifts that are found, the means over seeds."""
        return self.figures[RATE].mean or 0.0, self.figures[FOUND].mean or 0.0

    def as_json(self) -> dict[str, object]:
        """Its thresholds and figures."""
        return {"thresholds": self.thresholds} | {name: of.as_json() for name, of in self.figures.items()}


@dataclass(frozen=True)
class Curve:
    """A detector at several thresholds: its arm, its name, and its points, ascending by their place."""

    arm: str
    name: str
    points: Sequence[Point]

    def at(self, rate: float) -> Point | None:
        """The detector at a rate of false alarms, between the played ones beside it; None without two."""
        for low, high in reversed([*pairwise(self.points)]):
            (least, _), (most, _) = low.place, high.place
            if least <= rate <= most:
                return _drawn(low, high, (rate - least) / (most - least) if most > least else 0.0)
        return None

    def as_json(self) -> dict[str, object]:
        """Its name, and the points at the `RATES`, null outside of what was played."""
        at = {f"{rate:g}": point and point.as_json() for rate in RATES for point in [self.at(rate)]}
        return {"arm": self.arm, "detector": self.name, **at}


def curves_of(detection: Detection | None) -> list[Curve]:
    """The detectors that were played at several thresholds, in the order of the arms and of their detectors.

    Left out are thresholds without decisions, or without a drift to be found, in some seed.
    """
    played: dict[tuple[str, str], list[Point]] = {}
    for arm, name, found in [] if detection is None else detection.detectors:
        curve, threshold = curve_of(name)
        if threshold is not None and None not in (found.figures[RATE].mean, found.figures[FOUND].mean):
            played.setdefault((arm, curve), []).append(Point((threshold,), found.figures))
    return [
        Curve(*of, sorted(points, key=lambda point: point.place))
        for of, points in played.items()
        if len(points) > 1
    ]


def _drawn(low: Point, high: Point, share: float) -> Point:
    """The detector of whose clients a `share` draws the threshold of `high`, and the others that of `low`."""

    def of_both(name: str) -> Floats:
        """(2, seeds) a figure of the two; NaN where it is not defined."""
        return np.array([point.figures[name].per_seed for point in (low, high)], dtype=np.float64)

    lot = np.array([[1 - share], [share]])
    found, rates = lot * of_both("found"), (lot * of_both(RATE)).sum(axis=0)
    total = found.sum(axis=0)
    recall = total / of_both("drifts")[0]
    (least, few), (most, many) = low.place, high.place
    slope = (many - few) / (most - least) if most > least else 0.0
    corrected = share_estimate((recall - slope * (rates - rates.mean())).tolist())
    # NaN where a threshold has found nothing.
    delay = np.nansum(found * of_both(DELAY), axis=0) / np.where(total > 0, total, np.nan)
    figures = {
        RATE: amount_estimate(rates.tolist()).by_seed(),
        FOUND: replace(corrected, per_seed=recall.tolist()),
        DELAY: amount_estimate([None if np.isnan(value) else value for value in delay.tolist()]).by_seed(),
    }
    if low.figures[FOUND].ci95 is None:
        figures[FOUND] = figures[FOUND].by_seed()
    return Point(low.thresholds + high.thresholds, figures)
