"""The protocol of selectors: which clients take part in a round."""

from __future__ import annotations

from abc import abstractmethod

from coordinator.candidates import Candidates
from coordinator.view import Part, View
from emulator.arrays import Ints
from emulator.messages import EndedVisits, Updates
from emulator.plugins import returns


class Selector(Part):
    """Base of selectors; built with its own frozen settings.

    A selector draws the participants of a round from its candidates.
    """

    def feedback(self, visits: EndedVisits, updates: Updates | None) -> None:
        """Take note of how the visits of a round ended; called once they all have, after aggregation.

        Args:
            visits: all visits of the round, also those that were abandoned or dropped.
            updates: the finite updates of completed visits, a row per task; None if there are none.
        """

    @abstractmethod
    @returns("coordinator.checks:participants")
    def select(self, candidates: Candidates, wanted: Ints, view: View) -> Ints:
        """The participants of a round.

        Requests to clients through `view` delay the visits until the slowest response.

        Args:
            candidates: the clients that could take part now, by lane.
            wanted: (lanes,) participants wanted from each lane.
            view: the facts of this moment, and requests to clients.

        Returns:
            (n,) distinct ids, at least one, ascending: of each lane `wanted` candidates, or all if there are
            fewer.
        """
