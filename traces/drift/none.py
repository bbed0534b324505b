"""No drift: a client keeps the label shares it started with."""

from __future__ import annotations

from typing import ClassVar

from emulator.plugins import Settings
from traces.drift.label_mix import LabelMix, LabelMixSettings, MixShape


class NoDrift(LabelMix):
    """No drift: the clients of `label_mix`, without any move.

    Source: ours.

    >>> import numpy as np
    >>> first, second = NoDrift(MixShape(mixes=2)).shares(3, 2, 10, 0, 10, np.random.default_rng(0))
    >>> bool((first == second).all())
    True
    """

    Settings: ClassVar[type[Settings]] = MixShape

    def __init__(self, settings: MixShape) -> None:
        super().__init__(LabelMixSettings(**settings.model_dump(), move_probability=0.0))
