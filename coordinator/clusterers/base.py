"""The protocol of clusterers: which models exist, who belongs to which, who is served by which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from coordinator.assignment import Assignment
from coordinator.view import Part, View
from emulator.messages import InferencePlan
from emulator.ports import Segment

Representation = Literal["label"]


class Clusterer(Part):
    """Base of clusterers; built with its own frozen settings.

    It is asked at three moments, and answers None for "as before".
    """

    def check(self, layout: Mapping[str, Segment], knows_concepts: bool) -> None:
        """Asked before anything runs: ConfigurationError where this model or trace is none to work with.

        `layout` says where each tensor of a model lies; `knows_concepts` whether the trace has the truth.
        """

    @property
    def representation(self) -> Representation | None:
        """What clients are asked to report from now on; None: they are asked nothing."""
        return None

    @property
    def watches_data(self) -> bool:
        """Whether it looks at `view.changed`; to find out who of a fleet is online with news is not free."""
        return True

    def on_data(self, view: View) -> Assignment | None:
        """A round opens; samples may have arrived or expired, and whoever drifted has reported.

        The first call must answer.
        """
        return None

    def on_participants(self, view: View) -> Assignment | None:
        """`view.participants` were picked. Lanes and quotas of this round stay as they are."""
        return None

    def on_updates(self, view: View) -> Assignment | None:
        """`view.updates` came back and are aggregated in `view.models`."""
        return None

    def serve(self, view: View) -> InferencePlan:
        """Which models answer for each client: its own, alike, unless a clusterer knows better."""
        return InferencePlan.alike(view.members)
