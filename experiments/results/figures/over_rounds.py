"""Common functions of the figures of global clusterings: the arm shown at first, and small arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from emulator.arrays import Floats, Floats32, Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.drawing.arms import Arm
from experiments.results.drawing.style import thinned

VALUE_COLOUR = "#0072B2"


def list_clause(arms: Sequence[Arm]) -> str:
    """A clause on the list of arms; empty for a single arm."""
    return "; the list below the plot chooses the arm" if len(arms) > 1 else ""


def shown_at_first(arms: Sequence[Arm], has: Callable[[RoundRecord], bool]) -> int:
    """The index of the last arm with a record of which `has` is true; 0 if there is none."""
    found = [
        index for index, arm in enumerate(arms) if any(has(item) for run in arm.runs for item in run.records)
    ]
    return found[-1] if found else 0


def drawn(count: int, most: int) -> list[int]:
    """At most `most` indices in [0, count), evenly spread; none if `count` is 0."""
    return thinned(count, most).tolist() if count else []


def floats(values: Sequence[float | None]) -> Floats:
    """The values, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def single(values: Floats) -> Floats32:
    """The values in single precision, which halves the page; those beyond 3e38 are drawn there."""
    return np.clip(values, -3e38, 3e38).astype(np.float32)


def small(numbers: Sequence[int] | Ints) -> Ints:
    """The whole numbers in the smallest type that holds them, which makes the page smaller."""
    values = np.asarray(numbers, dtype=np.int64)
    most = int(values.max(initial=0))
    small: Ints = values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int32)
    return small
