"""The protocol of schedules: the settings of each task, such as its learning rate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from coordinator.view import Part, View
from emulator.arrays import Floats, Ints
from emulator.messages import EndedVisits
from emulator.plugins import returns

TASK_SETTINGS = ("batch_size", "learning_rate", "local_steps")
"""The settings of a task that a schedule may decide, besides those that local rules read."""


class Schedule(Part):
    """Base of schedules; built with its own frozen settings.

    `sets` names the settings that it decides: of `TASK_SETTINGS`, or numbers that rules of the solver read.
    No two schedules of an arm may decide the same one.
    """

    sets: ClassVar[frozenset[str]]

    def feedback(self, visits: EndedVisits) -> None:
        """Take note of how visits ended; called by a server step, for all that it takes.

        Args:
            visits: these visits, also those that were abandoned or dropped.
        """

    def observe(self, view: View) -> None:
        """Take note of the models; called once per round, before `task_settings`.

        Args:
            view: the facts at dispatch; `view.models` contain all updates aggregated so far.
        """

    @abstractmethod
    @returns("coordinator.checks:settings")
    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        """The settings of a round's n tasks that this schedule decides.

        Args:
            client: (n,) the client of each task.
            model: (n,) the row of the bank that each task trains.
            base: (n,) arrays by name, the settings that hold without any schedule: those of the round, and
                of the numbers that rules read those which a schedule decides.
            view: the facts at dispatch; of the participants `changed` have scored what has arrived for
                them, of whom the detectors that watch arrivals flag some, in `drift`.

        Returns:
            (n,) an array for each name in `sets`.
        """
