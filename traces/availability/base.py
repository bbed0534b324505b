"""Base class of availability sources.

Knows nothing of rounds, of models or of where files are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np

from emulator import plugins
from emulator.ports import Availability

Locate = Callable[[str], Path]
"""A function that finds the file or folder of a path as it is written in a configuration."""


class AvailabilitySource(plugins.Configured, ABC):
    """Base class of availability sources, built with its own frozen settings."""

    chance: ClassVar[str] = "draw from the generator that it is given"

    @abstractmethod
    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> Availability:
        """Build the availability of all clients.

        Args:
            num_clients: the number of clients; their ids are 0 to num_clients - 1.
            generator: the source of all randomness of the availability.
            locate: resolves a path as written in a configuration.

        Returns:
            An availability whose queries are pure functions of virtual time.

        Raises:
            DataFileError: a file of the settings cannot be used.
        """
