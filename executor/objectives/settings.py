"""Settings of our objectives, without torch: a mistake in them is reported before torch is imported."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from emulator.numbers import PositiveFactor
from emulator.plugins import Settings


class ErrorSettings(Settings):
    """Settings of `squared_error` and `absolute_error`."""

    tolerance: PositiveFactor = Field(
        description="a prediction hits if it is off by no more than this, in the unit of the targets",
        examples=[0.5],
    )
    unit: Annotated[str, Field(max_length=20)] = Field(
        "", description="unit of the targets, which tables and axes show", examples=["MW"]
    )
