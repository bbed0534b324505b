"""The settings of adaptations that try in which way a client's samples fit best."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from emulator.plugins import Settings


class TriesSettings(Settings):
    """How a way is chosen, and where it holds."""

    by: Literal["loss", "class_means"] = Field(
        "loss",
        description="what decides: the loss of the model that a client receives on its own training samples, "
        "or the distance of its means of labels from those of all that clients reported as they took part",
        examples=["class_means"],
    )
    train: bool = Field(
        True,
        description="samples are read in that way in training and scores, too; false: in evaluation alone",
        examples=[False],
    )
