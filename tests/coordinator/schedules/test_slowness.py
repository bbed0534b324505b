"""Learning rates by how long the visits of a client take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coordinator.schedules.slowness import Slowness
from emulator.messages import ABANDONED, COMPLETED, DROPPED, EndedVisits
from tests.fakes import NOTHING, FakeExecutor, Population, a_fleet, ints


def ended(clients: Sequence[int], seconds: Sequence[float], outcomes: Sequence[int] = ()) -> EndedVisits:
    whole = np.zeros(len(clients), dtype=np.int64)
    starts = np.full(len(clients), 100.0)
    done = outcomes or [COMPLETED] * len(clients)
    return EndedVisits(whole, ints(*clients), whole, starts, starts + np.array(seconds), ints(*done), whole)


def rates(*steps: EndedVisits, clients: int = 3) -> list[float]:
    """The rates of all clients after these server steps, with a base of 1."""
    schedule, view = Slowness(NOTHING), SimpleNamespace(num_clients=clients)
    observed: Any = view
    schedule.observe(observed)
    for visits in steps:
        schedule.feedback(visits)
        schedule.observe(observed)
    zeros, base = np.zeros(clients, dtype=int), {"learning_rate": np.ones(clients)}
    return schedule.task_settings(np.arange(clients), zeros, base, observed)["learning_rate"].tolist()


def test_a_rate_grows_with_the_logarithm_of_the_mean_duration() -> None:
    assert rates() == [1, 1, 1]
    # The mean of 1 and 2 e^3 - 1 seconds is e^3; of 2 s the logarithm is below 1.
    found = rates(ended([0, 1], [1, 2]), ended([0], [2 * math.e**3 - 1]))
    assert found == pytest.approx([3, 1, 1])


def test_only_visits_whose_updates_were_absorbed_count_also_two_of_one_client() -> None:
    seconds, outcomes = [1e4, 20, 40, 1e5], [DROPPED, COMPLETED, COMPLETED, ABANDONED]
    assert rates(ended([0, 0, 0, 1], seconds, outcomes)) == pytest.approx([math.log(30), 1, 1])


def test_in_a_run_a_slow_client_trains_at_a_larger_rate_from_its_second_visit_on() -> None:
    # With a transfer of 4 s either way visits take 9 s and 108 s.
    executor = FakeExecutor([1.0, 1.0])
    Population(executor, fleet=a_fleet(2, [1.0, 100.0]), schedules=(Slowness(NOTHING),), rounds=2).play()
    first, second = (wave.settings["learning_rate"].tolist() for wave in executor.waves)
    assert first == [0.1, 0.1]
    assert second == pytest.approx([0.1 * math.log(9), 0.1 * math.log(108)])
