"""The protocol of clusterers: which models exist, who belongs to which, who is served by which."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Literal

from coordinator.assignment import Assignment
from coordinator.view import View
from emulator.arrays import Ints
from emulator.plugins import Parameters

Representation = Literal["label"]


class Clusterer(ABC):
    """Base of clusterers; built with its own frozen parameters. It answers None for "as before"."""

    Parameters: ClassVar[type[Parameters]]

    @property
    def representation(self) -> Representation | None:
        """What clients are asked to report from now on; None: they are asked nothing."""
        return None

    def on_data(self, view: View) -> Assignment | None:
        """Samples arrived or expired, and whoever drifted has reported. The first call must answer."""
        return None

    def serve(self, view: View) -> Ints:
        """(N,) the row of the model that serves each client."""
        assert view.assignment is not None
        return view.assignment.lane
