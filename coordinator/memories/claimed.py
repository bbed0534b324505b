"""A client trains a model on the samples that were claimed for it: FedDrift's W.

FedDrift, algorithm 1: W[t][m][c] states that the samples that reached client c at data step t belong to model
m. A client that moved to another model keeps training its former model on its former samples, as long as that
model has a member.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from coordinator.assignment import Assignment
from coordinator.memories.base import Memory
from coordinator.view import View
from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges
from emulator.numbers import Count
from emulator.plugins import Settings


class ClaimedSettings(Settings):
    """The age up to which claims are kept."""

    window: Count | None = Field(
        None, description="number of newest data steps whose claims are kept; without it, all", examples=[10]
    )


class Claimed(Memory):
    """Each model trains on the samples claimed for it; a model without members does not train.

    A batch never mixes samples of several steps. What arrived at data steps in which no round was opened is
    claimed with the arrivals of the next one. State: for each data step in the window, in order, (N, M)
    which rows of the bank each client's arrivals of that step are claimed for.

    Client 0 moves from model 0 to model 1 at step 1. It now trains both, each on the one sample that arrived
    while it belonged to that model; model 0 is still active, since client 1 belongs to it.

    Source: FedDrift (Jothimurugesan et al., AISTATS 2023), algorithm 1: its indicators W.

    >>> from types import SimpleNamespace
    >>> def arrived(clients, first_step, last_step):
    ...     return SampleRanges.one_each(10 * clients + first_step, 10 * clients + last_step + 1)
    >>> memory = Claimed(ClaimedSettings())
    >>> for step, members in enumerate([[[0], [0]], [[1], [0]]]):
    ...     view = SimpleNamespace(
    ...         step=step, members=np.array(members), model_ids=np.array([0, 1]), arrived=arrived
    ...     )
    ...     memory.claim(view)
    >>> client, model, samples = memory.rows(np.array([0]), view)
    >>> client, model, samples.rows(0), samples.rows(1)
    (array([0, 0]), array([0, 1]), array([0]), array([1]))
    """

    Settings = ClaimedSettings
    settings: ClaimedSettings
    state_fields = ("_claims",)

    def __init__(self, settings: ClaimedSettings) -> None:
        super().__init__(settings)
        self._claims: dict[int, Bools] = {}

    def models_changed(self, assignment: Assignment) -> None:
        """Claims of an old model pass to its successor (of several, the union); a new model has no claims."""
        for step, old in self._claims.items():
            new = np.zeros((len(old), assignment.num_models), dtype=bool)
            for row, successor in enumerate(assignment.successor.tolist()):
                if successor >= 0:
                    new[:, successor] |= old[:, row]
            self._claims[step] = new

    def claim(self, view: View) -> None:
        """Claim the arrivals of the present step for the present members, replacing claims of this step.

        And those of the steps before it that had no opening of their own.
        """
        members = view.members
        claims = np.zeros((len(members), len(view.model_ids)), dtype=bool)
        client, column = np.nonzero(members >= 0)
        claims[client, members[client, column]] = True
        newest = max(self._claims, default=view.step)
        for step in range(min(newest + 1, view.step), view.step + 1):
            self._claims[step] = claims
        if self.settings.window is not None:
            oldest = view.step - self.settings.window + 1
            self._claims = {step: claims for step, claims in self._claims.items() if step >= oldest}

    def samples(self, clients: Ints, model: int, view: View) -> SampleRanges:
        return self._ranges(clients, np.arange(len(clients)), np.full(len(clients), model), view)

    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        """The pairs of a client and an active model for which claimed samples are still held.

        A model is active while it has a member. See `Memory.rows` for the shapes.
        """
        active = np.isin(np.arange(len(view.model_ids)), view.members)
        claimed = np.zeros((len(clients), len(active)), dtype=bool)
        for claims in self._claims.values():
            claimed |= claims[clients]
        which, model = np.nonzero(claimed & active)
        samples = self._ranges(clients, which, model, view)
        # Claimed samples may have expired since.
        filled = np.flatnonzero(samples.counts() > 0)
        return clients[which[filled]], model[filled].astype(np.int64), samples.take(filled)

    def _ranges(self, clients: Ints, which: Ints, model: Ints, view: View) -> SampleRanges:
        """(pairs,) the samples claimed for pairs of a client and a model: a range for each data step.

        `which` (pairs,) are the indices of the pairs' clients in `clients`, `model` (pairs,) their models.
        """
        nothing = np.zeros(len(which), dtype=np.int64)
        parts = [SampleRanges.one_each(nothing, nothing)]
        for step, claims in self._claims.items():
            arrived = view.arrived(clients, step, step)
            first, last = arrived.first[which], arrived.last[which]
            last = np.where(claims[clients[which], model], last, first)
            parts.append(SampleRanges.one_each(first, last))
        return SampleRanges.joined(parts)
