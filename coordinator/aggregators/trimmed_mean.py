"""The coordinate-wise trimmed mean of the updates."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from coordinator.aggregators.by_coordinate import ByCoordinate
from emulator.arrays import Floats, Floats32
from emulator.counts import exact
from emulator.numbers import ShareBelowHalf
from emulator.plugins import Settings


class TrimmedMeanSettings(Settings):
    """The share of the updates that is left out."""

    trim: ShareBelowHalf = Field(
        0.1, description="share of the updates left out at each end, for each parameter", examples=[0.2]
    )


class TrimmedMean(ByCoordinate):
    """Each parameter moves by the unweighted mean of the updates without the largest and the smallest.

    model_k += mean over c of update_c,k without its floor(trim n) smallest and as many largest values. It
    withstands as many false updates as are left out at one end.

    Source: Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
    Definition 2: there `trim` n is assumed to be a whole number, and the mean is of gradients. Here it is
    rounded down: of fewer than 1 / `trim` updates, as in small clusters, no update is left out.
    """

    Settings = TrimmedMeanSettings
    settings: TrimmedMeanSettings

    def centre(self, values: Floats32) -> Floats:
        """(c,) the trimmed mean of each column of `values` (n, c), which are reordered in place.

        >>> trimmed = TrimmedMean(TrimmedMeanSettings(trim=0.25))
        >>> trimmed.centre(np.array([[1, 9], [2, 5], [100, 7], [3, 8]], dtype=np.float32))
        array([2.5, 7.5])
        """
        cut = math.floor(exact(self.settings.trim) * len(values))
        # Sorted, so that the sum too is the same whatever the order of the rows.
        values.sort(axis=0)
        kept = values[cut : len(values) - cut]
        total = np.zeros(values.shape[1])
        for row in kept:
            total += row
        return total / len(kept)
