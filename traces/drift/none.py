"""No drift: a client keeps the label shares it started with."""

from __future__ import annotations

from typing import ClassVar

from emulator.plugins import Parameters
from traces.drift.label_mix import LabelMix, LabelMixParameters, MixShape


class NoDrift(LabelMix):
    """No drift: the clients of `label_mix`, none of which ever moves."""

    Parameters: ClassVar[type[Parameters]] = MixShape

    def __init__(self, parameters: MixShape) -> None:
        super().__init__(LabelMixParameters(**parameters.model_dump(), move_probability=0.0))
