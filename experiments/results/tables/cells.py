"""Figures as the text of cells; an interval has the unit of its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.results.statistics.intervals import FEWEST_SEEDS, Estimate, ShareOfSeeds
from experiments.results.statistics.medians import Bounds, MedianEstimate
from experiments.results.statistics.scales import Scale, points_scale
from experiments.results.statistics.significance import Difference

NOTHING = "-"
NOT_MEASURED = "n/a"
UNDETERMINED = "undetermined"

ON_A_LINE = 3
"""How many values of seeds stand on a line."""


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
    """The text of a mean and its interval; without one, the value of each seed after a dot instead.

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


def with_interval(cell: Cell) -> str:
    """The figure with its interval; without the values of single seeds, which stand after dots."""
    return f"{cell.figure} {cell.interval}" if cell.interval.startswith("[") else cell.figure


def in_short(cell: Cell, estimate: Estimate | None, scale: Scale) -> Cell:
    """The cell of an estimate without its note, and with the range of single seeds in their place.

    Under three seeds have no range.

    >>> from experiments.results.statistics.scales import percent_scale
    >>> estimate, scale = Estimate(0.25, None, [0.3, 0.2, 0.25]), percent_scale(0.25)
    >>> in_short(show_estimate(estimate, scale), estimate, scale)
    Cell(figure='25.0 %', interval='(20.0 to 30.0 by seed)', note='')
    """
    if not cell.interval.startswith("·"):
        return replace(cell, note="")
    values = [] if estimate is None else [value for value in estimate.per_seed if value is not None]
    is_range = len(values) >= FEWEST_SEEDS
    return Cell(
        cell.figure, f"({scale.bare(min(values))} to {scale.bare(max(values))} by seed)" if is_range else ""
    )


def gain_in_short(gain: Estimate) -> Cell:
    """The cell of a gain in percentage points, as `in_short` has it."""
    scale = points_scale(0.0)
    return in_short(show_estimate(gain, scale), gain, scale)


def show_share_of_seeds(share: ShareOfSeeds | None) -> Cell:
    """The number of seeds out of all, and the interval of the share; nothing if it was not measured.

    >>> from experiments.results.statistics.intervals import share_of_seeds
    >>> show_share_of_seeds(share_of_seeds([False] * 5))
    Cell(figure='0/5', interval='(up to 52 %)', note='')
    >>> [show_share_of_seeds(share_of_seeds([True] * fired + [False])).interval for fired in (1, 4)]
    ['(1 to 99 %)', '(28 to 99 %)']
    """
    if share is None or share.ci95 is None:
        return Cell(NOTHING)
    low, high = (f"{100 * end:.0f}" for end in share.ci95)
    count, of = share.count, len(share.per_seed)
    within = (
        f"{low} to {high} %" if 0 < count < of else f"up to {high} %" if count == 0 else f"{low} % or more"
    )
    return Cell(f"{count}/{of}", f"({within})")


def show_median(estimate: MedianEstimate, scale: Scale) -> Cell:
    """The text of a median, exact or as bounds, and its interval; of two seeds, each after a dot instead.

    An interval from 0 without an upper end states nothing, and is left out.

    >>> from experiments.results.statistics.medians import median_estimate
    >>> from experiments.results.statistics.scales import factor_scale
    >>> show_median(median_estimate([Bounds(2.0, math.inf)] * 3), factor_scale(2.0))
    Cell(figure='>= 2.00x', interval='[2.00, inf)', note='')
    """
    figure = show_bounds(estimate.median, scale)
    if estimate.interval is None:
        return Cell(figure, _dots([show_bounds(seed, scale) for seed in estimate.per_seed]))
    low, high = estimate.interval.low, estimate.interval.high
    return Cell(figure, "" if low <= 0 and math.isinf(high) else _interval(low, high, scale))


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
    """The values of seeds, each after a dot, three on a line; empty for one, whose value is the figure.

    >>> _dots(["1", "2", "3", "4"])
    '· 1 · 2 · 3\\n· 4'
    """
    if len(values) < 2:
        return ""
    lines = [values[first : first + ON_A_LINE] for first in range(0, len(values), ON_A_LINE)]
    return "\n".join(" ".join(f"· {value}" for value in line) for line in lines)
