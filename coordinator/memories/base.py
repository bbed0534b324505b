"""The protocol of memories: which (client, model) pairs train, and on which samples."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from coordinator.assignment import Assignment
from coordinator.view import Part, View
from emulator.arrays import Bools, Ints
from emulator.messages import SampleRanges
from emulator.plugins import returns


class Memory(Part):
    """Base of memories; built with its own frozen settings.

    A memory decides which (client, model) pairs train, and on which samples.
    """

    def models_changed(self, assignment: Assignment) -> None:
        """As for every part; a memory that keeps claims passes those of a model to its successor."""

    def claim(self, view: View) -> None:
        """Claim the newest arrivals of every client for the models that it belongs to now.

        Called when a round is opened, and after participants were moved; a claim replaces an earlier one of
        the same data step. A memory that keeps no claims does nothing.

        Args:
            view: the facts of this moment; `view.members` (N, width) are the present members.
        """

    @abstractmethod
    @returns("coordinator.checks:samples_of")
    def samples(self, clients: Ints, model: int, view: View) -> SampleRanges:
        """The samples that each client holds for one model.

        Args:
            clients: (n,) ids, ascending.
            model: row of the bank.
            view: the facts of this moment.

        Returns:
            One row per client, without ranges for a client that holds no samples for the model.
        """

    @abstractmethod
    @returns("coordinator.checks:pairs")
    def rows(self, clients: Ints, view: View) -> tuple[Ints, Ints, SampleRanges]:
        """The (client, model) pairs that train, and their samples.

        A client that belongs to no model (its row of `view.members` is all -1) may have no pair.

        Args:
            clients: (n,) ids of participants, ascending.
            view: the facts of this moment.

        Returns:
            client: (pairs,) id of each pair's client; pairs are sorted by client, then model.
            model: (pairs,) row of the bank.
            samples: one row per pair, each with at least one sample.
        """

    @returns("coordinator.checks:trains")
    def trains(self, clients: Ints, view: View) -> Bools:
        """Whether each client has something to train, a pair in `rows`; the others cannot be selected.

        Within a data step the result may depend on `view.members`, but not on the round: it is evaluated once
        per assignment and data step.

        Args:
            clients: (n,) distinct ids in any order.
            view: the facts of this moment.

        Returns:
            (n,) bools.
        """
        training, _, _ = self.rows(np.sort(clients), view)
        return np.isin(clients, training)
