"""What a measurement comes to: a value with its spread, and how it stands against a reference."""

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
    """What is asked of a figure's `ratio` or `value`, and what would be better still."""

    of: Literal["ratio", "value"]
    at_least: float  # of a value of which less is better: at most
    stretch: float | None = None


@dataclass(frozen=True)
class Spread:
    """The quartiles of the repeats."""

    low: float
    high: float


@dataclass(frozen=True)
class Reference:
    """The same quantity by another way: its repeats, one beside each of ours, and what it is."""

    samples: Floats
    name: str


@dataclass(frozen=True)
class Figure:
    """One line of the bench. `value` is the median of the repeats.

    `ratio` is how many times better than the reference we are: the median over the repeats of each one's own
    ratio; None where there is no reference. `curve` and `size` place a figure on a plot of cost against size.
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
        """How the figure stands to its target; None without one."""
        if self.target is None:
            return None
        found = self.ratio if self.target.of == "ratio" else self.value
        assert found is not None  # `figure` sees to it
        less = self.target.of == "value" and self.better == "lower"

        def reaches(asked: float) -> bool:
            return found <= asked if less else found >= asked

        if not reaches(self.target.at_least):
            return "missed"
        return "stretch" if self.target.stretch is not None and reaches(self.target.stretch) else "reached"

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
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
    """The figure of `samples` (repeats,), which are in `unit`, as those of the reference are."""
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
    """Of Python and of the packages that decide how fast we are."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


@cache
def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def _quartiles(samples: Floats) -> Spread:
    low, high = np.percentile(samples, (25, 75))
    return Spread(float(low), float(high))
