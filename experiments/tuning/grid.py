"""`[tune]`, and `tune` of an arm: the values that `driftscale tune` tries."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from emulator.plugins import Settings
from experiments.results.reading.recorded import is_finite

Values = Annotated[tuple[Any, ...], Field(min_length=1, max_length=5)]
"""Values of a key that are tried."""


def _sorted_numbers(values: tuple[Any, ...]) -> tuple[float, ...]:
    """The values, ascending; ValueError unless they are different finite numbers."""
    if not all(map(is_finite, values)) or len(set(values)) < len(values):
        raise ValueError(f"{list(values)!r}: values that are tried must be different finite numbers")
    return tuple(sorted(values))


Grid = Annotated[Values, AfterValidator(_sorted_numbers)]
"""Numbers that are tried, ascending."""

NamedNumber = Annotated[dict[str, Grid], Field(max_length=1)]
"""The one named number of an arm: its values by its dotted key below the arm; empty without one."""


class TuneSettings(Settings):
    """What `driftscale tune` tries of every arm. It decides no run, and is not recorded."""

    learning_rate: Grid = Field(
        description="values of training.learning_rate that are tried, each with each value of an arm's `tune`"
    )
    uses: dict[str, dict[str, Values]] = Field(
        default_factory=dict,
        description="by kind of adaptation in `evaluate_with`, values of its settings: each combination is a "
        "use of the same training",
        examples=[{"tuned": {"local_steps": [5, 20], "learning_rate": [0.02, 0.1]}}],
    )
