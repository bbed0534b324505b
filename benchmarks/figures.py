"""The result of a measurement: a value with its spread, compared with a reference and a target."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from emulator.arrays import Floats

PACKAGES = ("driftscale", "numpy", "torch", "scikit-learn")

Verdict = Literal["stretch", "reached", "missed"]


@dataclass(frozen=True)
class Target:
    """The required `ratio` or `value` of a figure, and optionally a more ambitious one, `stretch`."""

    of: Literal["ratio", "value"]
    at_least: float  # or at most, for a value of which less is better
    stretch: float | None = None


@dataclass(frozen=True)
class Spread:
    """The first and third quartiles of the repeats."""

    low: float
    high: float


@dataclass(frozen=True)
class Reference:
    """The same quantity measured another way: `name` says how, `samples` (repeats,) are taken beside ours."""

    samples: Floats
    name: str


@dataclass(frozen=True)
class Figure:
    """A measured quantity, one line of the bench. `value` is the median of the repeats, in `unit`.

    `ratio` states how many times better than the reference we are: the median of the ratios of all repeats;
    None without a reference. `curve` and `size` place a figure on a plot of cost against size.
    """

    name: str
    about: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    spread: Spread
    ratio: float | None
    ratio_spread: Spread | None
    against: str | None
    threads: int
    repeats: int
    target: Target | None
    curve: str | None
    size: int | None
    machine: str
    versions: Mapping[str, str]

    @property
    def verdict(self) -> Verdict | None:
        """Whether the figure misses its target, reaches it, or reaches its stretch; None without a target."""
        if self.target is None:
            return None
        measured = self.ratio if self.target.of == "ratio" else self.value
        assert measured is not None  # `figure` ensures it
        less_is_better = self.target.of == "value" and self.better == "lower"

        def reaches(limit: float) -> bool:
            return measured <= limit if less_is_better else measured >= limit

        if not reaches(self.target.at_least):
            return "missed"
        return "stretch" if self.target.stretch is not None and reaches(self.target.stretch) else "reached"

    def as_dict(self) -> dict[str, Any]:
        """All fields and the verdict, for JSON."""
        return {**asdict(self), "verdict": self.verdict}


def figure(
    name: str,
    about: str,
    samples: Floats,
    unit: str,
    *,
    better: Literal["higher", "lower"],
    threads: int = 1,
    against: Reference | None = None,
    target: Target | None = None,
    curve: str | None = None,
    size: int | None = None,
) -> Figure:
    """The figure of `samples` (repeats,); they and the samples of `against` are in `unit`.

    Raises ValueError if the target is a ratio and there is no reference.
    """
    if target is not None and target.of == "ratio" and against is None:
        raise ValueError(f"figure {name}: a target of its ratio needs a reference")
    ratios = None
    if against is not None:
        ratios = samples / against.samples if better == "higher" else against.samples / samples
    return Figure(
        name=name,
        about=about,
        value=float(np.median(samples)),
        unit=unit,
        better=better,
        spread=_quartiles(samples),
        ratio=None if ratios is None else float(np.median(ratios)),
        ratio_spread=None if ratios is None else _quartiles(ratios),
        against=None if against is None else against.name,
        threads=threads,
        repeats=len(samples),
        target=target,
        curve=curve,
        size=size,
        machine=machine(),
        versions=versions(),
    )


@cache
def versions() -> Mapping[str, str]:
    """Versions of Python and of the packages that affect the speed, by name."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


@cache
def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _quartiles(samples: Floats) -> Spread:
    low, high = np.percentile(samples, (25, 75))
    return Spread(float(low), float(high))
