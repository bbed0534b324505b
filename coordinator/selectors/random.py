"""Uniform selection."""

from __future__ import annotations

import numpy as np

from coordinator.candidates import Candidates
from coordinator.selectors.base import Selector
from coordinator.view import View
from emulator.arrays import NO_IDS, Ints
from emulator.plugins import NoSettings


class Random(Selector):
    """Uniform: every candidate of a lane is equally likely, without replacement."""

    Settings = NoSettings

    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        chosen = [NO_IDS]
        streams = view.rngs("selection", np.arange(len(wanted)))
        for lane, (count, generator) in enumerate(zip(wanted.tolist(), streams, strict=True)):
            chosen.append(candidates.draw(lane, count, generator))
        return np.sort(np.concatenate(chosen))
