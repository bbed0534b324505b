"""The protocol of schedules: the numbers of each task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from coordinator.view import Part, View
from emulator.arrays import Floats, Ints


class Schedule(Part):
    """Base of schedules; built with its own frozen settings.

    `sets` names the settings it decides: `learning_rate`, `local_steps` or `batch_size`. No two schedules of
    an arm may set the same.
    """

    sets: ClassVar[frozenset[str]]

    def observe(self, view: View) -> None:
        """A round's tasks are about to be frozen; `view.models` hold all that came back so far."""

    @abstractmethod
    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        """(n,) for each name in `sets`: of tasks of `client` on row `model`, otherwise as in `base`."""
