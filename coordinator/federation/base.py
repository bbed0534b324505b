"""The base: the frozen parameters of the model, which are in no model and go to each client once."""

from __future__ import annotations

import numpy as np

from emulator.arrays import Bools, Floats, Ints
from emulator.messages import BYTES_PER_PARAMETER
from emulator.storage.stateful import Stateful


class Base(Stateful):
    """Charges the base, along with the first model that each client is sent.

    A client that has it keeps it, whatever becomes of its data.

    State: (N,) who has it, or is being sent it, and will have it unless its visit is abandoned; empty if no
    parameter is frozen.

    Two clients, of which one has it already, and loses it:

    >>> base = Base(2, numbers=3)
    >>> base.sent(np.array([1])).tolist(), base.sent(np.arange(2)).tolist()
    ([12.0], [12.0, 0.0])
    >>> base.lost(np.array([1]))
    >>> base.sent(np.arange(2)).tolist()
    [0.0, 12.0]
    """

    state_fields = ("_has",)

    def __init__(self, num_clients: int = 0, numbers: int = 0) -> None:
        """Of so many `numbers`, which none of the clients has."""
        self.num_bytes = float(BYTES_PER_PARAMETER * numbers)
        self._has: Bools = np.zeros(num_clients if numbers > 0 else 0, dtype=bool)

    def sent(self, clients: Ints) -> Floats:
        """(n,) the bytes of it that `clients` (n,), each there once, are sent with a model now."""
        if self.num_bytes == 0:
            return np.zeros(len(clients))
        lacking = ~self._has[clients]
        self._has[clients] = True
        return np.where(lacking, self.num_bytes, 0.0)

    def lost(self, clients: Ints) -> None:
        """Take note that `clients` (n,) are sent it, and that it does not arrive."""
        if self.num_bytes > 0:
            self._has[clients] = False
