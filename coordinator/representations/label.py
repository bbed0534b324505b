"""The representation of data by the distribution of their labels."""

from __future__ import annotations

from coordinator.representations.base import LocalData, Representation
from emulator.arrays import Floats, Ints
from emulator.plugins import NoSettings


class Label(Representation):
    """The shares of labels among the training samples that a client holds: Fielding's default.

    Counting takes no time.

    Source: Fielding, section 3.1.

    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> data = SimpleNamespace(num_labels=2, label_histograms=lambda clients: np.array([[0.75, 0.25]]))
    >>> label = Label(NoSettings())
    >>> label.size(data), label.measure(np.array([4]), data).tolist()
    (2, [[0.75, 0.25]])
    """

    Settings = NoSettings
    distance = "l1"
    shares = True

    def size(self, data: LocalData) -> int:
        return data.num_labels

    def measure(self, clients: Ints, data: LocalData) -> Floats:
        return data.label_histograms(clients)
