"""Base of coordinate-wise aggregators: they combine each parameter by itself over a model's updates."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from coordinator.aggregators.base import Aggregator
from coordinator.view import View
from emulator.arrays import Floats, Floats32
from emulator.messages import Updates
from emulator.plugins import returns

AT_ONCE = 4_000_000
"""Numbers, of all updates, that are processed at once: bounds memory, and changes no result."""


class ByCoordinate(Aggregator):
    """Moves each parameter by the centre, such as the median, of its values in the updates of the model.

    All updates count equally, but those of clients without samples are left out: they carry no information.
    """

    @abstractmethod
    @returns("coordinator.checks:centre", writes=True)
    def centre(self, values: Floats32) -> Floats:
        """(c,) the centre of each column of `values` (n, c), n > 0, which may be reordered in place.

        It must not depend on the order of the rows.
        """

    def aggregate(self, updates: Updates, view: View) -> Floats32:
        models = view.models.copy()
        members = [
            np.flatnonzero((updates.model == model) & (updates.num_samples > 0)) for model in view.model_ids
        ]
        num_parameters = models.shape[1]
        width = max(1, AT_ONCE // max(1, len(updates)))
        for first in range(0, num_parameters if any(map(len, members)) else 0, width):
            columns = slice(first, min(first + width, num_parameters))
            slab = updates.rows(columns)
            for row, of_model in enumerate(members):
                if len(of_model) > 0:
                    moved = view.models[row, columns] + self.centre(slab[of_model])
                    models[row, columns] = moved.astype(np.float32)
        return models
