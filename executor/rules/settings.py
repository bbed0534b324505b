"""Settings of our local rules, without torch: a mistake in them is reported before torch is imported."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.numbers import Factor, PositiveFactor, ShareBelowOne
from emulator.plugins import Settings


class AdamSettings(Settings):
    """Settings of `adam`."""

    beta1: ShareBelowOne = Field(0.9, description="share of the mean gradient that is kept")
    beta2: ShareBelowOne = Field(0.999, description="share of the mean squared gradient that is kept")
    epsilon: PositiveFactor = Field(1e-8, description="added to the root, so that nothing is divided by 0")
    weight_decay: Factor = Field(0.0, description="times the parameters, added to the gradient")
    amsgrad: bool = Field(
        False, description="divide by the largest mean squared gradient so far", examples=[True]
    )
    keep: Literal["task", "step"] = Field(
        "step",
        description="`step`: moments live on from task to task until the client's data changes; `task`: "
        "they start anew in each task",
    )


class FedProxSettings(Settings):
    """Settings of `fedprox`."""

    mu: Factor = Field(0.1, description="strength of the pull")
    fedscale_sign: bool = Field(False, description="push away instead, as FedScale does: for parity only")


class SgdSettings(Settings):
    """Settings of `sgd`."""

    momentum: ShareBelowOne = Field(0.0, description="share of the last step that is kept", examples=[0.9])
    weight_decay: Factor = Field(0.0, description="times the parameters, added to the gradient")
