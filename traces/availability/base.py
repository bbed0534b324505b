"""What a source of availability is, and how clients are given its devices.

Knows nothing of rounds, of models or of where files are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np

from emulator import plugins
from emulator.ports import Availability

Locate = Callable[[str], Path]
"""Resolves a path as it is written in a configuration."""


class AvailabilitySource(plugins.Configured, ABC):
    """One way to say who is online when; `Settings` is the class of what a configuration may set."""

    @abstractmethod
    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> Availability:
        """The availability of clients 0 to `num_clients` - 1; every draw comes from `generator`.

        Raises DataFileError for a file that cannot be used.
        """
