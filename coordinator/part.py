"""The base of all parts of a method."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from emulator.plugins import Parameters
from emulator.storage.stateful import Stateful


class Part(Stateful, ABC):
    """Base of parts; built with its own frozen parameters.

    `oracle` declares that it follows the truth: only such a part is told the true concepts, `View.concepts`.
    """

    Parameters: ClassVar[type[Parameters]]
    oracle: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Its class, for errors."""
        return type(self).__name__
