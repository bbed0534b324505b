"""The coordinate-wise median of the updates."""

from __future__ import annotations

import numpy as np

from coordinator.aggregators.by_coordinate import ByCoordinate
from emulator.arrays import Floats, Floats32
from emulator.plugins import NoSettings


class Median(ByCoordinate):
    """Each parameter moves by the unweighted median of the updates.

    model_k += median_c update_c,k; of an even number of updates, the mean of the two in the middle. While
    less than half of the updates are false, none moves a parameter beyond the range of the honest ones.

    Source: Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
    Definition 1: there of gradients, here of the updates of local training.
    """

    Settings = NoSettings

    def centre(self, values: Floats32) -> Floats:
        """(c,) the median of each column of `values` (n, c), which are reordered in place.

        >>> Median(NoSettings()).centre(np.array([[1, 9], [2, 5], [100, 7], [3, 8]], dtype=np.float32))
        array([2.5, 7.5])
        """
        upper = len(values) // 2
        lower = (len(values) - 1) // 2
        values.partition((lower, upper), axis=0)
        # In double precision: the sum of two large numbers may overflow float32.
        centre: Floats = (values[lower].astype(np.float64) + values[upper]) / 2
        return centre
