"""Numbers for people: units of a fitting size, few digits, an interval in the unit of its mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NOT_MEASURED = "n/a"
UNDETERMINED = "undetermined"
WIDEST_FACTOR = 100.0

TIME_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))
BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True)
class Scale:
    """How a number is written: divided by `divisor`, to so many `decimals`, before its `unit`."""

    divisor: float
    unit: str
    decimals: int
    signed: bool = False

    def bare(self, value: float) -> str:
        """Without the unit; never a negative zero."""
        rounded = round(value / self.divisor, self.decimals) + 0.0
        return f"{rounded:{'+' if self.signed else ''},.{self.decimals}f}"

    def __call__(self, value: float) -> str:
        return self.bare(value) + self.unit


PickScale = Callable[[float], Scale]


def time_unit(time_s: float) -> tuple[float, str]:
    """(seconds in it, name) of the largest unit of which `time_s` is at least two."""
    return next((unit for unit in TIME_UNITS if time_s >= 2 * unit[0]), TIME_UNITS[-1])


def time_scale(time_s: float) -> Scale:
    """
    >>> time_scale(5.25)(5.25), time_scale(9_000)(9_000)
    ('5.25 s', '2.50 h')
    """
    seconds, name = time_unit(time_s)
    return Scale(seconds, f" {name}", _decimals(time_s / seconds))


def bytes_scale(count: float) -> Scale:
    """
    >>> bytes_scale(0)(0), bytes_scale(1_234_567_890)(1_234_567_890)
    ('0 B', '1.23 GB')
    """
    size, name = next((unit for unit in BYTE_UNITS if count >= unit[0]), BYTE_UNITS[-1])
    return Scale(size, f" {name}", 0 if size == 1 else _decimals(count / size))


def percent_scale(fraction: float) -> Scale:
    """
    >>> percent_scale(0.71337)(0.71337)
    '71.3 %'
    """
    return Scale(0.01, " %", 1)


def points_scale(points: float) -> Scale:
    """
    >>> points_scale(8.94)(8.94), points_scale(8.94)(-0.04)
    ('+8.9 pp', '+0.0 pp')
    """
    return Scale(1, " pp", 1, signed=True)


def factor_scale(ratio: float) -> Scale:
    """
    >>> factor_scale(2.1)(2.1), factor_scale(12.4)(12.4)
    ('2.10x', '12.4x')
    """
    return Scale(1, "x", _decimals(ratio))


def count_scale(count: float) -> Scale:
    """
    >>> count_scale(2.6)(2.6), count_scale(1234)(1234)
    ('2.6', '1,234')
    """
    return Scale(1, "", 1 if count < 100 else 0)


def show_estimate(estimate: Mapping[str, Any], scale: Scale) -> tuple[str, str]:
    """(mean, interval) of a figure of `summary.json`; the interval is empty where there is none.

    >>> show_estimate({"mean": 9_000, "ci95": [7_200, 10_800]}, time_scale(9_000))
    ('2.50 h', '[2.00, 3.00]')
    """
    mean = estimate["mean"]
    if mean is None:
        return NOT_MEASURED, ""
    if estimate["ci95"] is None:
        return scale(mean), ""
    low, high = estimate["ci95"]
    return scale(mean), f"[{scale.bare(low)}, {scale.bare(high)}]"


def show_speedup(estimate: Mapping[str, Any], scale: Scale) -> tuple[str, str]:
    """As `show_estimate`, of a ratio: an interval wider than a factor 100 tells nothing, and says so.

    >>> show_speedup({"mean": 2.0, "ci95": [0.1, 40.0]}, factor_scale(2.0))
    ('2.00x', 'undetermined')
    """
    mean, interval = show_estimate(estimate, scale)
    return mean, UNDETERMINED if is_undetermined(estimate) else interval


def is_undetermined(estimate: Mapping[str, Any]) -> bool:
    """Whether the interval of a ratio is wider than a factor 100."""
    ci95 = estimate["ci95"]
    return ci95 is not None and bool(ci95[1] > WIDEST_FACTOR * ci95[0])


def _decimals(value: float) -> int:
    """As many as make three significant digits."""
    return 0 if value >= 100 else 1 if value >= 10 else 2
