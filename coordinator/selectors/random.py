"""Uniform selection."""

from __future__ import annotations

import numpy as np

from coordinator.selectors.base import Pool, Selector
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
            ids = pool.ids(lane)
            generator = view.rng("selection", lane)
            chosen.append(generator.choice(ids, size=min(int(count), len(ids)), replace=False))
        return np.sort(np.concatenate(chosen))
