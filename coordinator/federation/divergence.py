"""Non-finite numbers: single updates are left out; a run with no finite updates for many rounds ends."""

from __future__ import annotations

import numpy as np

from coordinator.federation.method import RoundSettings
from emulator.arrays import Floats32
from emulator.errors import RunError
from emulator.messages import Updates
from emulator.storage.stateful import Stateful

FRUITLESS_ROUNDS = 10
"""Consecutive rounds without a finite update after which the run is declared diverged."""


class Divergence(Stateful):
    """Checks updates, models and losses for non-finite numbers; `other_hints` extends the hint in errors.

    State: the number of consecutive rounds, up to now, without a finite update.
    """

    state_fields = ("_fruitless",)

    def __init__(self, settings: RoundSettings, other_hints: str = "") -> None:
        self.settings = settings
        self.hint = f"a lower training.learning_rate than {settings.learning_rate:g}{other_hints} may help"
        self._fruitless = 0

    def usable(self, round_: int, updates: Updates) -> tuple[Updates, list[int]]:
        """The updates that are finite, as are their losses, and the clients, ascending, with other updates.

        Raises RunError at the first non-finite update if `round.nonfinite_updates` is "stop", and after
        FRUITLESS_ROUNDS consecutive rounds without a finite update.
        """
        trained = updates.num_samples > 0
        finite = updates.finite & (~trained | np.isfinite(updates.metrics["loss"]))
        self._fruitless = 0 if finite[trained].any() else self._fruitless + 1
        if finite.all():
            return updates, []
        rejected = np.unique(updates.client[~finite]).tolist()
        if self.settings.nonfinite_updates == "stop":
            clients = f"{len(rejected)} of {len(np.unique(updates.client))} clients"
            raise RunError(
                f"round {round_}: the update of client {rejected[0]} is not finite (of {clients}), and "
                f'round.nonfinite_updates = "stop"; {self.hint}'
            )
        if self._fruitless == FRUITLESS_ROUNDS:
            raise RunError(
                f"round {round_}: training diverged, in {FRUITLESS_ROUNDS} rounds in a row no update was "
                f"finite; {self.hint}"
            )
        return updates.take(np.flatnonzero(finite)), rejected

    def refuse(self, round_: int, *values: float | Floats32) -> None:
        """RunError unless every model and every loss is finite."""
        if not all(np.isfinite(value).all() for value in values):
            raise RunError(f"round {round_}: training diverged, a model or a loss is not finite; {self.hint}")
