"""Uniform selection."""

from __future__ import annotations

import numpy as np

from coordinator.pool import Pool
from coordinator.selectors.base import Selector
from coordinator.view import View
from emulator.arrays import NO_IDS, Ints
from emulator.plugins import NoParameters


class Random(Selector):
    """Uniform: every candidate of a lane is equally likely, without replacement."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def select(self, pool: Pool, wanted: Ints, view: View) -> Ints:
        chosen = [NO_IDS]
        for lane, count in enumerate(wanted):
            chosen.append(pool.draw(lane, int(count), view.rng("selection", lane)))
        return np.sort(np.concatenate(chosen))
