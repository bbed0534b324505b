"""What a source of availability is, and how clients are given its devices.

Knows nothing of rounds, of models or of where files are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np

from emulator import plugins
from emulator.arrays import Ints
from emulator.ports import Availability

Locate = Callable[[str], Path]
"""Resolves a path as it is written in a configuration."""


class AvailabilitySource(ABC):
    """One way to say who is online when; `Parameters` is the class of what a configuration may set."""

    Parameters: ClassVar[type[plugins.Parameters]] = plugins.NoParameters

    def __init__(self, parameters: plugins.Parameters) -> None:
        self.parameters = parameters

    @abstractmethod
    def build(self, num_clients: int, generator: np.random.Generator, locate: Locate) -> Availability:
        """The availability of clients 0 to `num_clients` - 1; every draw comes from `generator`.

        Raises DataFileError for a file that cannot be used.
        """


def draw_devices(num_clients: int, num_devices: int, generator: np.random.Generator) -> Ints:
    """(num_clients,) a device for each client: random permutations of all devices, one after the other.

    So no file order shows, and no device serves twice before each has served once.

    >>> np.sort(draw_devices(6, 3, np.random.default_rng(0)))
    array([0, 0, 1, 1, 2, 2])
    """
    laps = -(-num_clients // num_devices)
    devices = np.tile(np.arange(num_devices, dtype=np.int64), (laps, 1))
    return generator.permuted(devices, axis=1).ravel()[:num_clients]
