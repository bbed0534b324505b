"""Figures as the text of cells; an interval has the unit of its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import Bounds, MedianEstimate
from experiments.results.statistics.scales import Scale
from experiments.results.statistics.significance import Difference

NOTHING = "-"
NOT_MEASURED = "n/a"
UNDETERMINED = "undetermined"


@dataclass(frozen=True)
class Cell:
    """The text of a figure in a table, of its interval, and a note in lines; the last two may be empty."""

    figure: str
    interval: str = ""
    note: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines that are not empty, from top to bottom; at least the figure."""
        return [self.figure, *(line for text in (self.interval, self.note) for line in text.splitlines())]


def show_estimate(estimate: Estimate, scale: Scale) -> Cell:
    """The text of a mean and its interval; of two seeds, the value of each after a dot instead.

    >>> from experiments.results.statistics.scales import percent_scale, time_scale
    >>> show_estimate(Estimate(9_000, (7_200, 10_800), [9_000] * 3), time_scale(9_000))
    Cell(figure='2.50 h', interval='[2.00, 3.00]', note='')
    >>> show_estimate(Estimate(0.25, None, [0.2, 0.3]), percent_scale(0.25)).interval
    '· 20.0 · 30.0'
    """
    if estimate.mean is None:
        return Cell(NOT_MEASURED)
    if estimate.ci95 is None:
        values = [value for value in estimate.per_seed if value is not None]
        return Cell(scale(estimate.mean), _dots([scale.bare(value) for value in values]))
    return Cell(scale(estimate.mean), _interval(*estimate.ci95, scale))


def show_median(estimate: MedianEstimate, scale: Scale) -> Cell:
    """The text of a median, exact or as bounds, and its interval; of two seeds, each after a dot instead.

    An interval from 0 without an upper end states nothing, and is left out.

    >>> from experiments.results.statistics.medians import median_estimate
    >>> from experiments.results.statistics.scales import factor_scale
    >>> show_median(median_estimate([Bounds(2.0, math.inf)] * 3), factor_scale(2.0))
    Cell(figure='>= 2.00x', interval='[2.00, inf)', note='')
    """
    if estimate.interval is None:
        return Cell(
            show_bounds(estimate.median, scale),
            _dots([show_bounds(seed, scale) for seed in estimate.per_seed]),
        )
    low, high = estimate.interval.low, estimate.interval.high
    if low <= 0 and math.isinf(high):
        return Cell(show_bounds(estimate.median, scale))
    return Cell(show_bounds(estimate.median, scale), _interval(low, high, scale))


def show_difference(difference: Difference, scale: Scale) -> Cell:
    """The text of a mean difference and its interval, with its corrected p-value and how it is not paired.

    >>> from experiments.results.statistics.scales import points_scale
    >>> show_difference(Difference(2.0, (1.0, 3.0), [2.0] * 3, 0.01, 0.02, "seed"), points_scale(0.0))
    Cell(figure='+2.0 pp', interval='[+1.0, +3.0]', note='p 0.020')
    """
    if difference.pairing == "identical":
        return Cell("identical")
    shown = show_estimate(difference, scale)
    pairing = {"seed": "", "seed, other trace": "same seed,\nother trace", "none": "unpaired"}
    parts = [part for part in (show_p(difference.p_holm), pairing[difference.pairing]) if part]
    return replace(shown, note="\n".join(parts))


def show_p(p: float | None) -> str:
    """A p-value as text, with three decimals; empty if there is none.

    >>> show_p(0.0123), show_p(0.00004), show_p(None)
    ('p 0.012', 'p < 0.001', '')
    """
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p {p:.3f}"


def show_bounds(bounds: Bounds, scale: Scale) -> str:
    """Bounds as text: the number itself if it is known, and otherwise ">=", "<=", a range or "undetermined".

    >>> from experiments.results.statistics.scales import factor_scale
    >>> [show_bounds(Bounds(*b), factor_scale(1)) for b in ((2, 2), (2, math.inf), (0, 2), (0.5, 2))]
    ['2.00x', '>= 2.00x', '<= 2.00x', '0.50-2.00x']
    """
    match bounds.status:
        case "=":
            return scale(bounds.low)
        case ">=":
            return f">= {scale(bounds.low)}"
        case "<=":
            return f"<= {scale(bounds.high)}"
        case "range":
            return f"{scale.bare(bounds.low)}-{scale(bounds.high)}"
    return UNDETERMINED


def largest(estimate: Estimate | MedianEstimate) -> float:
    """The number by which a column picks its unit: an absolute mean, or the larger finite bound of a median.

    0 if there is no such number. The ends of intervals do not count.
    """
    numbers = (
        [estimate.mean or 0.0]
        if isinstance(estimate, Estimate)
        else [estimate.median.low, estimate.median.high]
    )
    return max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)


def _interval(low: float, high: float, scale: Scale) -> str:
    return f"[{scale.bare(low)}, {'inf)' if math.isinf(high) else scale.bare(high) + ']'}"


def _dots(values: Sequence[str]) -> str:
    """The values of two seeds, each after a dot; empty for one seed, whose value is the figure itself."""
    return " ".join(f"· {value}" for value in values) if len(values) > 1 else ""
