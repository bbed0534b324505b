"""Non-finite numbers: leaves out such updates and memories, and ends a run that has diverged."""

from __future__ import annotations

import numpy as np

from coordinator.federation.method import RoundSettings
from emulator.arrays import Bools, Floats32, Ints
from emulator.errors import RunError
from emulator.messages import Updates
from emulator.storage.stateful import Stateful

FRUITLESS_ROUNDS = 10
"""Consecutive rounds without a finite update after which the run is declared diverged.

Rounds in which nothing was trained do not count, and do not interrupt the sequence.
"""


class Divergence(Stateful):
    """Checks updates, models and losses for non-finite numbers; `other_hints` extends the hint in errors.

    State: how many of the last rounds in which anything was trained had no finite update, and whether in this
    round anything was trained, and any of it usable.
    """

    state_fields = ("_fruitless", "_trained", "_usable")

    def __init__(self, settings: RoundSettings, other_hints: str = "") -> None:
        self.settings = settings
        self.hint = f"a lower training.learning_rate than {settings.learning_rate:g}{other_hints} may help"
        self._fruitless = 0
        self._trained = self._usable = False

    def usable(self, round_: int, updates: Updates) -> tuple[Bools, list[int]]:
        """(n,) which updates are usable, finite with a finite loss, and the other clients' ids, ascending.

        Raises RunError at the first update that is not usable if `round.nonfinite_updates` is "stop".
        """
        trained = updates.num_samples > 0
        finite = updates.finite & (~trained | np.isfinite(updates.metrics["loss"]))
        self._trained, self._usable = True, self._usable or bool(finite[trained].any())
        return finite, self._left_out(round_, updates, finite)

    def forgotten(self, round_: int, clients: Ints) -> list[int]:
        """The `clients` (ascending) whose new memory was not finite, as a list.

        Raises RunError if there is one, and `round.nonfinite_updates` is "stop".
        """
        if len(clients) > 0 and self.settings.nonfinite_updates == "stop":
            raise RunError(
                f"round {round_}: what client {clients[0]} was to remember is not finite (of {len(clients)} "
                f'such), and round.nonfinite_updates = "stop"; a lower learning rate of the local rule that '
                f"remembers it may help"
            )
        found: list[int] = clients.tolist()
        return found

    def round_closes(self, round_: int) -> None:
        """Raise RunError if this is the last of FRUITLESS_ROUNDS rounds in a row without a usable update."""
        if self._trained:
            self._fruitless = 0 if self._usable else self._fruitless + 1
        self._trained = self._usable = False
        if self._fruitless == FRUITLESS_ROUNDS:
            raise RunError(
                f"round {round_}: training diverged, in {FRUITLESS_ROUNDS} rounds in a row no update was "
                f"finite; {self.hint}"
            )

    def requested(self, round_: int, updates: Updates) -> Updates:
        """The finite ones of the updates that a part has requested, which are of no server step.

        Raises RunError at the first other one if `round.nonfinite_updates` is "stop".
        """
        finite = updates.finite
        rejected = self._left_out(round_, updates, finite)
        return updates.take(np.flatnonzero(finite)) if rejected else updates

    def _left_out(self, round_: int, updates: Updates, finite: Bools) -> list[int]:
        """The clients (ascending) of the rows that are not `finite` (n,), if these do not stop the run."""
        if finite.all():
            return []
        rejected: list[int] = np.unique(updates.client[~finite]).tolist()
        if self.settings.nonfinite_updates == "stop":
            clients = f"{len(rejected)} of {len(np.unique(updates.client))} clients"
            raise RunError(
                f"round {round_}: the update of client {rejected[0]} is not finite (of {clients}), and "
                f'round.nonfinite_updates = "stop"; {self.hint}'
            )
        return rejected

    def refuse(self, round_: int, *values: float | Floats32) -> None:
        """Raise RunError unless all of `values`, which are models and losses, are finite."""
        if not all(np.isfinite(value).all() for value in values):
            raise RunError(f"round {round_}: training diverged, a model or a loss is not finite; {self.hint}")
