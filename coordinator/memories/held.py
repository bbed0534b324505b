"""A client trains its member models on all that it holds."""

from __future__ import annotations

import numpy as np

from coordinator.memories.base import Memory
from coordinator.view import View
from emulator.arrays import Ints
from emulator.messages import SampleRanges
from emulator.plugins import NoParameters


class Held(Memory):
    """A client trains its member models on all that it holds: what the trace retains."""

    Parameters = NoParameters

    def __init__(self, parameters: NoParameters) -> None:
        self.parameters = parameters

    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        assert view.assignment is not None
        members = np.sort(view.assignment.members[clients], axis=1)
        which, column = np.nonzero(members >= 0)
        client = clients[which]
        return client, members[which, column], view.held(client)
