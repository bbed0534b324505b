"""No drift: a client keeps the label shares it started with."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Floats
from traces.drift.base import Drift
from traces.drift.label_mix import LabelMix, LabelMixParameters, MixShape


class NoDrift(Drift):
    """No drift: the clients of `label_mix`, none of which ever moves."""

    Parameters = MixShape

    def __init__(self, parameters: MixShape) -> None:
        self._still = LabelMix(LabelMixParameters(**parameters.model_dump(), move_probability=0.0))

    def shares(
        self,
        num_clients: int,
        num_windows: int,
        num_labels: int,
        first_step: int,
        rounds_per_step: int,
        generator: np.random.Generator,
    ) -> Floats:
        return self._still.shares(
            num_clients, num_windows, num_labels, first_step, rounds_per_step, generator
        )
