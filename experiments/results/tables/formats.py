"""Numbers as text, with few digits and in a unit of suitable size; an interval has the unit of its mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import Bounds, MedianEstimate
from experiments.results.statistics.significance import Difference

NOT_MEASURED = "n/a"
UNDETERMINED = "undetermined"

TIME_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class Scale:
    """The format of a number: it is divided by `divisor` and rounded to `decimals`; `unit` follows it."""

    divisor: float
    unit: str
    decimals: int | None  # None: three significant digits, but at most two decimals
    signed: bool = False

    def bare(self, value: float) -> str:
        """`value` as text without the unit; never a negative zero."""
        decimals = _decimals(abs(value / self.divisor)) if self.decimals is None else self.decimals
        rounded = round(value / self.divisor, decimals) + 0.0
        return f"{rounded:{'+' if self.signed else ''},.{decimals}f}"

    def __call__(self, value: float) -> str:
        return self.bare(value) + self.unit


PickScale = Callable[[float], Scale]


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


def time_unit(time_s: float) -> tuple[float, str]:
    """(seconds per unit, name) of the largest unit of which `time_s` is at least two; else of seconds."""
    return next((unit for unit in TIME_UNITS if time_s >= 2 * unit[0]), TIME_UNITS[-1])


def time_scale(time_s: float) -> Scale:
    """The scale of times up to `time_s`.

    >>> time_scale(5.25)(5.25), time_scale(9_000)(9_000)
    ('5.25 s', '2.50 h')
    """
    seconds, name = time_unit(time_s)
    return Scale(seconds, f" {name}", None)


def bytes_scale(count: float) -> Scale:
    """The scale of amounts of data up to `count` bytes.

    >>> bytes_scale(0)(0), bytes_scale(1_234_567_890)(1_234_567_890)
    ('0 B', '1.23 GB')
    """
    size, name = next((unit for unit in BYTE_UNITS if count >= unit[0]), BYTE_UNITS[-1])
    return Scale(size, f" {name}", 0 if size == 1 else None)


def signed_time_scale(time_s: float) -> Scale:
    """The scale of differences of times up to `time_s`, with a sign.

    >>> signed_time_scale(9_000)(-9_000)
    '-2.50 h'
    """
    return replace(time_scale(time_s), signed=True)


def percent_scale(fraction: float) -> Scale:
    """The scale of fractions, such as accuracies, in percent.

    >>> percent_scale(0.71337)(0.71337)
    '71.3 %'
    """
    return Scale(0.01, " %", 1)


def points_scale(points: float) -> Scale:
    """The scale of differences in percentage points, with a sign.

    >>> points_scale(8.94)(8.94), points_scale(8.94)(-0.04)
    ('+8.9 pp', '+0.0 pp')
    """
    return Scale(1, " pp", 1, signed=True)


def distance_scale(points: float) -> Scale:
    """The scale of losses and distances in percentage points, which have no sign of their own.

    >>> distance_scale(8.94)(8.94)
    '8.9 pp'
    """
    return replace(points_scale(points), signed=False)


def factor_scale(ratio: float) -> Scale:
    """The scale of ratios.

    >>> factor_scale(2.1)(2.1), factor_scale(12.4)(12.4)
    ('2.10x', '12.4x')
    """
    return Scale(1, "x", None)


def count_scale(count: float) -> Scale:
    """The scale of counts: one decimal if `count` is below 100, none above.

    >>> count_scale(2.6)(2.6), count_scale(1234)(1234)
    ('2.6', '1,234')
    """
    return Scale(1, "", 1 if count < 100 else 0)


def index_scale(index: float) -> Scale:
    """The scale of small numbers without a unit, such as indices of agreement: two decimals.

    >>> index_scale(0.667)(0.667), index_scale(0.667)(-0.004)
    ('0.67', '0.00')
    """
    return Scale(1, "", 2)


def show_estimate(estimate: Estimate, scale: Scale) -> Cell:
    """The text of a mean and its interval; of two seeds, the value of each after a dot instead.

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


def _decimals(value: float) -> int:
    """The number of decimals, at most two, that shows three significant digits of `value` after rounding."""
    rounded = float(f"{value:.3g}")
    return 0 if rounded >= 100 or rounded == 0 else 1 if rounded >= 10 else 2
