"""Base class of clusterers: which models exist, which clients belong to which, which models serve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from coordinator.assignment import Assignment
from coordinator.view import Part, View
from emulator.messages import InferencePlan
from emulator.plugins import returns
from emulator.ports import Segment


class Clusterer(Part):
    """Base class of clusterers, built with its own frozen settings.

    The federation calls `on_data` each time a round is opened, `on_participants` at dispatch, and
    `on_updates` unless the round brought no usable update. Each returns an `Assignment`, or None to keep the
    current one.

    Clients may come and go: one takes part while it holds training samples (`View.holding`), and all that is
    computed over clients is over these. In the views the others are members of no model (-1) and their
    reports are NaN; their rows of an assignment or a plan are ignored. A client that joins is in
    `view.joined`. If the arm takes reports, it has registered with one, and every detector flags it as
    drifted; if the clusterer watches data, it is in `view.changed`, also if it is offline. First `on_joined`
    gives it a model, then `on_data` may move it, like any client with new data. A client that returns is one
    that joins: nothing of the time before it left may decide about it.

    Attributes:
        late_modules: see `Part`; `Assignment.reclustered_from` imports `scipy.optimize`, too.
        serves_several: whether `serve` may combine several models for a client.
    """

    late_modules: ClassVar[tuple[str, ...]] = ("scipy.spatial.distance",)
    serves_several: ClassVar[bool] = False

    def check(self, layout: Mapping[str, Segment], knows_concepts: bool) -> None:
        """Reject a model or a trace that the clusterer cannot work with, before anything runs.

        Args:
            layout: the segment of each named tensor in a model's parameter vector.
            knows_concepts: whether the trace knows the true concept of each client.

        Raises:
            ConfigurationError: the clusterer cannot work with this model or trace.
        """

    @property
    def watches_data(self) -> bool:
        """Whether clients with new data are looked for: they are in `view.changed`, and only they can report.

        False saves a query over all clients in each round.
        """
        return True

    @property
    def follows_participants(self) -> bool:
        """Whether only clients whose update arrived in the last round check their data, from round 0 on.

        The others keep their news until they take part, and their reports stay as they last were. Before
        round 0 all clients register nevertheless.
        """
        return False

    @property
    def reports_from(self) -> int:
        """The round from which on it uses the reports of clients; 0: from the start.

        If it is above 0, nobody reports at the present models before that round, since such reports would not
        be comparable with later ones. From its opening on, as long as reports are needed, all clients that
        `round.hear` lets report check their data whenever a round is opened, also those without new data.
        """
        return 0

    @property
    def fixed_clusters(self) -> int | None:
        """How many clusters there are if these are the same in a whole run: labelled 0 and on; else None."""
        return None

    @property
    def reads_detectors(self) -> Mapping[str, Sequence[str]]:
        """The detectors on training that it reads, by the key of its setting that names them.

        None by default. The arm must have them.
        """
        return {}

    @returns("coordinator.checks:assigned")
    def on_data(self, view: View) -> Assignment | None:
        """Decide when a round is opened, after samples arrived or expired and drifted clients reported.

        A round that waits for clients is opened several times.

        Args:
            view: the state of the run; `view.changed` has the clients online with new data, `view.drifted`
                those of them that a detector flagged. At the first call all clients count as online. If
                clients report, `round.hear` says which others are among them. At later calls `view.joined`
                and `view.left` have the clients that began and ceased to hold data.

        Returns:
            The new assignment, or None to keep the current one. The first call must return an assignment.
        """
        return None

    @returns("coordinator.checks:assigned")
    def on_joined(self, view: View) -> Assignment | None:
        """Place the clients that joined, before `on_data` decides about all clients with new data.

        By default they belong to the models of the largest cluster, the lowest of equals: those of its lowest
        client, in whose lane they are. If nobody belongs to a model, they belong to the first ones, as many
        as a client had.

        Args:
            view: as in `on_data`; `view.joined` has the clients to place, whose members are -1.

        Returns:
            The new assignment, or None to leave them without a model: they are then neither selected nor
            scored until another assignment gives them one.
        """
        assignment = view.assignment
        assert assignment is not None, "the first call is of on_data"
        members, lanes = assignment.members.copy(), assignment.lanes
        placed = np.flatnonzero(members[:, 0] >= 0)
        if len(placed) > 0:
            largest = np.bincount(members[placed, 0]).argmax()
            example = placed[members[placed, 0] == largest][0]
            models, lane = members[example], assignment.lane_of_client[example]
        else:
            first = np.arange(members.shape[1])
            models, lane = np.where(first < len(view.model_ids), first, -1), np.int64(0)
        members[view.joined] = models
        if lanes is not None:
            lanes = lanes.copy()
            lanes[view.joined] = lane
        return Assignment.moved(members, len(view.model_ids), lanes=lanes)

    @returns("coordinator.checks:assigned")
    def on_participants(self, view: View) -> Assignment | None:
        """Decide after `view.participants` were selected. The lanes and quotas of this round do not change.

        Args:
            view: the state of the run; `view.participants` has the selected clients.

        Returns:
            The new assignment, or None to keep the current one.
        """
        return None

    @returns("coordinator.checks:assigned")
    def on_updates(self, view: View) -> Assignment | None:
        """Decide after `view.updates` came back and were aggregated into `view.models`.

        Not called in a round without usable updates.

        Args:
            view: the state of the run; `view.updates` has the updates of this round.

        Returns:
            The new assignment, or None to keep the current one.
        """
        return None

    @returns("coordinator.checks:served_by")
    def serve(self, view: View) -> InferencePlan:
        """Choose the models that predict for each client; by default its own models, equally weighted.

        Called in rounds in which clients are evaluated.

        Args:
            view: the state of the run; `view.members` has the models of each client.

        Returns:
            The plan: models and weights of shape (num_clients, width), and how predictions are combined.
        """
        return InferencePlan.alike(view.members)
