"""The settings of the tasks of (client, model) pairs, and the work of their visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coordinator.federation.method import RoundSettings
from coordinator.schedules import Schedule
from coordinator.view import View
from emulator.arrays import Bools, Floats, Ints
from emulator.errors import RunError
from emulator.messages import Work


def task_settings(
    settings: RoundSettings, schedules: Sequence[Schedule], client: Ints, row: Ints, views: Sequence[View]
) -> dict[str, Floats]:
    """The settings of n tasks, as columns (n,) by name: the round's, or what a schedule decides.

    `client` (n,) and `row` (n,), a row of the bank, are the pair of each task; `views` holds the view of each
    schedule, which observes it first. Raises RunError if a schedule returns anything but a number of each
    task for each setting that it sets.
    """
    base = {
        "learning_rate": np.zeros(len(client)) + settings.learning_rate,
        "local_steps": np.zeros(len(client)) + settings.local_steps,
        "batch_size": np.zeros(len(client)) + settings.batch_size,
    }
    decided: dict[str, Floats] = {}
    for schedule, view in zip(schedules, views, strict=True):
        schedule.observe(view)
        columns = schedule.task_settings(client, row, base, view)
        if columns.keys() != schedule.sets or any(np.shape(of) != row.shape for of in columns.values()):
            returned = {name: np.shape(column) for name, column in columns.items()}
            raise RunError(
                f"the schedule {schedule.name} returned arrays of shapes {returned}; must be one of shape "
                f"{row.shape} for each of {sorted(schedule.sets)}"
            )
        decided.update(columns)
    return base | decided


def visit_work(
    visit: Ints, settings: Mapping[str, Floats], downloaded: Bools, num_visits: int, model_bytes: float
) -> Work:
    """The transfer and training of each visit, summed over its tasks.

    `visit` (n,) is the visit of each task, in [0, num_visits). `downloaded` (n,) marks the tasks whose model
    the client holds already, and does not download again; every task uploads one model. The columns of the
    result are of shape (num_visits,).
    """

    def total(amount: Floats) -> Floats:
        return np.bincount(visit, weights=amount, minlength=num_visits).astype(np.float64)

    return Work(
        download_bytes=model_bytes * total((~downloaded).astype(np.float64)),
        upload_bytes=model_bytes * total(np.ones(len(visit))),
        forward_samples=np.zeros(num_visits),
        trained_samples=total(settings["local_steps"] * settings["batch_size"]),
    )
