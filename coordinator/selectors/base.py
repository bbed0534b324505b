"""The protocol of selectors: which clients take part in a round."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from coordinator.candidates import Candidates
from coordinator.view import Part, View
from emulator.arrays import Ints
from emulator.declared import expect, expect_array, returns
from emulator.messages import EndedVisits, Updates


def _participants(chosen: Ints, selector: Selector, candidates: Candidates, wanted: Ints, view: View) -> None:
    expect_array(chosen, (chosen.size,), "i", 0, view.num_clients - 1)
    expect(chosen.size > 0 and (chosen[1:] > chosen[:-1]).all(), "must be distinct ids, ascending, and some")
    assert view.assignment is not None, "clients are selected among the members of models"
    lanes = view.assignment.lane_of_client[chosen]
    expect(lanes.min() >= 0 and candidates.online(chosen).all(), "must be candidates, in a lane and online")
    counts = np.bincount(lanes, minlength=len(wanted))
    expect((counts <= wanted).all(), f"must be at most {wanted.tolist()} of the lanes, not {counts.tolist()}")


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
    @returns(_participants)
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
