"""Who is sent each new version of a model as it is made, besides those that are dispatched with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coordinator.federation.bank import ModelBank
from coordinator.federation.base import Base
from coordinator.pacing.base import Push
from emulator.arrays import Bools, Floats, Ints
from emulator.ledger import Ledger
from emulator.ports import Availability
from emulator.storage.state_tree import Tree
from emulator.storage.stateful import Stateful


class Pushing(Stateful):
    """Charges what a pacing's `push` sends: bytes alone, so that no instant of a run depends on it.

    No packet of it is lost, and a client that is requested to score a model downloads it again.

    State, with "online": by the id of each model that was pushed its version, and (N,) who was sent it.
    """

    state_fields = ("_holders",)

    def __init__(
        self,
        push: Push,
        *,
        bank: ModelBank,
        availability: Availability,
        ledger: Ledger,
        base: Base,
        model_bytes: float,
        whole_bytes: float,
    ) -> None:
        """With models that take `model_bytes` to send, with what is sent along, of `whole_bytes` in all."""
        self.pushes = push != "none"  # if not, nothing is to be called
        self._push = push
        self._bank = bank
        self._availability = availability
        self._ledger = ledger
        self._base = base
        self._model_bytes = model_bytes
        self._whole_bytes = whole_bytes
        self._holders: dict[int, tuple[int, Bools]] = {}

    def state(self) -> dict[str, Tree]:
        return {"_holders": [(model, *content) for model, content in self._holders.items()]}

    def restore(self, state: Mapping[str, Tree]) -> None:
        self._holders = {int(model): (version, holds) for model, version, holds in state["_holders"]}

    def published(self, updated: Bools, members: Ints, out: Ints, now_s: float) -> None:
        """Send the new versions of the models that are `updated` (M,), of which each is sent to its members.

        `members` (N, width) are rows of the bank, padded with -1, and `out` (n,) the clients whose visits are
        out. Who is offline is sent nothing.
        """
        clients = np.sort(out) if self._push == "active" else np.flatnonzero((members >= 0).any(axis=1))
        clients = clients[self._availability.online(clients, now_s)]
        own = members[clients]
        sent = (own >= 0) & updated[own]
        sent_bytes = np.count_nonzero(sent) * self._model_bytes
        along = self._base.sent(clients[sent.any(axis=1)]).sum()
        down, models = np.array([sent_bytes + along]), sent_bytes / self._whole_bytes
        self._ledger.charge_training(down, np.zeros(1), models)
        if self._push == "online":
            ids, versions = self._bank.ids.tolist(), self._bank.versions.tolist()
            self._holders = {model: self._holders[model] for model in ids if model in self._holders}
            for row in np.flatnonzero(updated).tolist():
                holds = np.zeros(len(members), dtype=bool)
                holds[clients[(own == row).any(axis=1)]] = True
                self._holders[ids[row]] = versions[row], holds

    def held_shares(self, visit: Ints, client: Ints, row: Ints, downloaded: Bools, num_visits: int) -> Floats:
        """(visits,) the share of the models that each visit is to download which its client was sent before.

        `visit` (n,), in [0, num_visits), `client` (n,) and `row` (n,) of the bank are those of each task, of
        which some models were `downloaded` (n,) for requests.
        """
        held = np.zeros(len(client))
        for model in np.unique(row).tolist() if self._holders else ():
            version, holds = self._holders.get(int(self._bank.ids[model]), (-1, np.zeros(0, dtype=bool)))
            if version == self._bank.versions[model]:
                tasks = row == model
                held[tasks] = holds[client[tasks]]
        held[downloaded] = 0.0
        number = np.bincount(visit, weights=~downloaded, minlength=num_visits)
        shares: Floats = np.bincount(visit, weights=held, minlength=num_visits) / np.maximum(number, 1.0)
        return shares
