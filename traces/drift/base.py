"""What a label drift is: the label shares of every client, window after window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from emulator.arrays import Floats
from emulator.plugins import Configured


class Drift(Configured, ABC):
    """Base of drifts; built with its own frozen settings."""

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
        """(num_clients, num_labels) label shares for each window; the first arrives at `first_step` (<= 0).

        What was yielded is not changed any more; a drift keeps no more windows than it needs to go on.
        """
