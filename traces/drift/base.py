"""Base class of label drifts: the label shares of every client, window after window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from emulator.arrays import Floats
from emulator.plugins import Configured


class Drift(Configured, ABC):
    """Base class of label drifts, built with its own frozen settings."""

    @abstractmethod
    def shares(
        self,
        num_clients: int,
        num_windows: int,
        num_labels: int,
        first_step: int,
        rounds_per_step: int,
        generator: np.random.Generator,
    ) -> Iterator[Floats]:
        """Yield the label shares of all clients, window after window.

        An array that was yielded is not modified afterwards; a drift keeps only the windows it needs to
        continue.

        Args:
            num_clients: the number of clients.
            num_windows: the number of windows, one for each data step.
            num_labels: the number of labels.
            first_step: the data step at which the first window arrives, <= 0.
            rounds_per_step: the number of rounds between two data steps.
            generator: the source of all randomness of the drift.

        Yields:
            For each window an array of shape (num_clients, num_labels) whose rows sum to 1.

        Raises:
            ConfigurationError: the settings do not fit the number of labels or of windows.
        """
