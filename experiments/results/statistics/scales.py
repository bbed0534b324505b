"""Scales of numbers: how they are written as text, with few digits and in a unit of suitable size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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


def as_time(time_s: float) -> str:
    """A time as text, in the unit that suits it.

    >>> as_time(9_000)
    '2.50 h'
    """
    return time_scale(time_s)(time_s)


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


def _decimals(value: float) -> int:
    """The number of decimals, at most two, that shows three significant digits of `value` after rounding."""
    rounded = float(f"{value:.3g}")
    return 0 if rounded >= 100 or rounded == 0 else 1 if rounded >= 10 else 2
