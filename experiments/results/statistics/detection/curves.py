"""Operating points: what detectors find, and how late, at rates of false alarms that are the same for all.

The points of a curve are thresholds that were played. Between two of them a detector is taken whose clients
draw either threshold by lot, once and independent of their data: both make the same decisions, and so its
false alarms, and the drifts that it finds, are in the mean those of the two by the share that draws each. Its
mean delay weighs the delays of the two by the drifts that it finds by either.

The share is chosen so that the mean rate of false alarms of these very seeds is the one compared at. So the
interval of a figure f is that of f - k (r - mean r), with the rate r of each seed, and the slope k of the
curve there: the mean is that of f, and the chance of the false alarms counts. A test simulates its coverage,
which for what is found is 56 to 82 % without that.
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

    lot, drifts = np.array([1 - share, share]), of_both("drifts")[0]
    finds, alarms = of_both("found"), of_both(RATE)
    waits = np.nan_to_num(finds * of_both(DELAY))  # a threshold that has found nothing has no delay
    found, waited, rates = lot @ finds, lot @ waits, lot @ alarms
    delay = waited / np.where(found > 0, found, np.nan)
    # How both rise with the rate of false alarms, by the quotient rule.
    span = float(np.diff(alarms.mean(axis=1))[0]) or np.inf
    more, longer = np.diff(finds, axis=0).sum(), np.diff(waits, axis=0).sum()
    slopes = more / drifts.sum(), (longer - waited.sum() / max(found.sum(), 1) * more) / max(found.sum(), 1)
    figures = {RATE: amount_estimate(rates.tolist()).by_seed()}
    for name, values, slope in zip((FOUND, DELAY), (found / drifts, delay), slopes, strict=True):
        estimate = share_estimate if name == FOUND else amount_estimate
        per_seed, corrected = (
            [None if np.isnan(value) else value for value in of_seeds.tolist()]
            for of_seeds in (values, values - slope / span * (rates - rates.mean()))
        )
        figures[name] = replace(estimate(corrected), per_seed=per_seed)
    if low.figures[FOUND].ci95 is None:
        figures = {name: figure.by_seed() for name, figure in figures.items()}
    return Point(low.thresholds + high.thresholds, figures)
