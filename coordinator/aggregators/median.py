"""The coordinate-wise median of what came back."""

from __future__ import annotations

import numpy as np

from coordinator.aggregators.by_coordinate import ByCoordinate
from emulator.arrays import Floats, Floats32
from emulator.plugins import NoSettings


class Median(ByCoordinate):
    """Each parameter moves by the median of the updates, all of them alike.

    model_k += median_c update_c,k; of an even number, the mean of the two in the middle. No update, however
    large, moves a parameter further than the honest ones span, while less than half of them are false.

    Yin, Chen, Ramchandran and Bartlett, "Byzantine-Robust Distributed Learning: Towards Optimal Statistical
    Rates", ICML 2018, Definition 1: there of gradients, here of what local training came to.
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
        # In double precision: the sum of two large numbers may be no float32.
        centre: Floats = (values[lower].astype(np.float64) + values[upper]) / 2
        return centre
