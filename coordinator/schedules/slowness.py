"""ASO-Fed's learning rate: the slower a client, the larger its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from coordinator.schedules.base import Schedule
from coordinator.view import View
from emulator import plugins
from emulator.arrays import Floats, Ints
from emulator.messages import COMPLETED, EndedVisits


class Slowness(Schedule):
    """Multiplies the learning rate of a client by the logarithm of how long its visits take.

    rate = base max(1, ln d), with d the mean duration, in virtual seconds, of the client's visits so far
    whose updates were absorbed, from dispatch to the end of the upload. Before the first of them, and up to a
    mean of e seconds, it is the base rate: a slow client, which contributes rarely, steps farther.

    State: the sum of the durations and their number (N,), from the first dispatch on.

    Source: Chen et al., "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data", IEEE Big
    Data 2020, section on the dynamic learning step size.

    After a visit of e^2 seconds of client 0, and of one second of client 1:

    >>> from types import SimpleNamespace as Of
    >>> schedule, base = Slowness(plugins.NoSettings()), {"learning_rate": np.full(3, 0.1)}
    >>> schedule.observe(Of(num_clients=3))
    >>> done, zero, ends = np.full(2, COMPLETED), np.zeros(2), np.array([math.e**2, 1])
    >>> schedule.feedback(Of(client=np.array([0, 1]), outcome=done, start_s=zero, end_s=ends))
    >>> schedule.task_settings(np.arange(3), np.zeros(3, dtype=int), base, None)["learning_rate"].tolist()
    [0.2, 0.1, 0.1]
    """

    Settings = plugins.NoSettings
    state_fields = ("_seconds", "_visits")
    sets = frozenset({"learning_rate"})

    def __init__(self, settings: plugins.Settings) -> None:
        super().__init__(settings)
        self._seconds: Floats = np.zeros(0)
        self._visits: Ints = np.zeros(0, dtype=np.int64)

    def feedback(self, visits: EndedVisits) -> None:
        absorbed = visits.outcome == COMPLETED
        clients = visits.client[absorbed]
        np.add.at(self._seconds, clients, (visits.end_s - visits.start_s)[absorbed])
        np.add.at(self._visits, clients, 1)

    def observe(self, view: View) -> None:
        if len(self._visits) == 0:
            self._seconds = np.zeros(view.num_clients)
            self._visits = np.zeros(view.num_clients, dtype=np.int64)

    def task_settings(
        self, client: Ints, model: Ints, base: Mapping[str, Floats], view: View
    ) -> Mapping[str, Floats]:
        means = self._seconds[client] / np.maximum(self._visits[client], 1)
        # One by one: numpy's logarithm of an array may differ in the last bit from one processor to another.
        factors = [math.log(mean) if mean > math.e else 1.0 for mean in means.tolist()]
        return {"learning_rate": base["learning_rate"] * np.array(factors, dtype=np.float64)}
