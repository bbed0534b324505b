"""Numbers that grow while the data of a client drift."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from coordinator.detectors import Detector
from coordinator.schedules.on_drift import OnDrift, OnDriftSettings
from emulator.messages import SolverFacts
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import NOTHING, FakeExecutor, FakeStream, Population, one_hot

CLIENTS = 4


def on_drift(**settings: Any) -> OnDrift:
    return OnDrift(OnDriftSettings(**settings))


def told(schedule: OnDrift, changed: Sequence[int], *flagged: Sequence[int]) -> list[float]:
    """The numbers of all clients at a dispatch, with 0.1 as the base; `flagged` by each detector."""
    drift = {f"d{number}": np.isin(np.arange(CLIENTS), ids) for number, ids in enumerate(flagged)}
    view: Any = SimpleNamespace(num_clients=CLIENTS, changed=np.array(changed, dtype=int), drift=drift)
    schedule.observe(view)
    (name,) = schedule.sets
    base, zeros = {name: np.full(CLIENTS, 0.1)}, np.zeros(CLIENTS, dtype=int)
    for _ in range(2):  # asking again changes nothing
        numbers = schedule.task_settings(np.arange(CLIENTS), zeros, base, view)[name].tolist()
    return numbers


def test_a_flag_multiplies_and_news_without_one_returns_to_the_base() -> None:
    schedule = on_drift()
    assert told(schedule, [0, 1, 2], [0, 1]) == [0.2, 0.2, 0.1, 0.1]
    assert told(schedule, [0, 1, 3], [0, 3]) == [0.4, 0.1, 0.1, 0.2]
    # Client 3 has no news, and keeps what it has; 0 drifts on.
    assert told(schedule, [0, 2], [0]) == [0.8, 0.1, 0.1, 0.2]
    assert told(schedule, [0, 3], [0]) == [1.0, 0.1, 0.1, 0.1]
    assert told(schedule, []) == [1.0, 0.1, 0.1, 0.1]
    assert told(schedule, [0], []) == [0.1, 0.1, 0.1, 0.1]


def test_a_product_stays_within_its_bounds() -> None:
    falling = on_drift(number="learning_rate", factor=0.5, least=0.03)
    assert [told(falling, [0], [0])[0] for _ in range(4)] == [0.05, 0.03, 0.03, 0.03]
    assert told(falling, [0], [])[0] == 0.1
    rising = on_drift(factor=3, most=0.5)
    assert [told(rising, [0], [0])[0] for _ in range(3)] == pytest.approx([0.3, 0.5, 0.5])


def test_flags_without_end_do_not_overflow() -> None:
    schedule = on_drift(factor=1e38, most=1e38)
    schedule.restore({"_times": {"clients": CLIENTS, "of": np.array([[0, 1], [10**9, 1]])}})
    assert told(schedule, [])[:3] == pytest.approx([1e38, 1e37, 0.1])


def test_one_detector_decides_or_any() -> None:
    assert told(on_drift(), [0, 1, 2], [0], [1]) == [0.2, 0.2, 0.1, 0.1]
    assert told(on_drift(detector="d1"), [0, 1, 2], [0], [1]) == [0.1, 0.2, 0.1, 0.1]


def test_its_state_has_only_the_clients_that_drift() -> None:
    schedule, again = on_drift(), on_drift()
    for flagged in ([1, 3], [3], [3]):
        told(schedule, flagged, flagged)
    content = to_bytes(schedule.state())
    again.restore(from_bytes(content))
    assert to_bytes(again.state()) == content
    assert again.state()["_times"]["of"].tolist() == [[1, 3], [1, 3]]
    assert told(again, []) == told(schedule, []) == [0.1, 0.2, 0.1, 0.8]


class Falling(Detector):
    """Flags a client for whom the model predicts less than 0.3 of what has arrived."""

    Settings = type(NOTHING)
    watches = "arrivals"

    def detect(self, clients: Any, signal: Any, last: Any) -> Any:
        return signal[:, 0] < 0.3 * signal[:, 1]


def test_in_a_run_the_number_of_a_task_follows_the_news_of_its_client() -> None:
    # Their model goes from 0 halfway to the targets 0 and 1 in the mean: to 0.25, and to 0.375. Of one sample
    # client 1 predicts so much, and client 0 the rest.
    executor = FakeExecutor([0.0, 1.0])
    executor.solver = SolverFacts(settings={"fedprox.mu": 0.3})
    labels = [one_hot(step % 2, step % 2, of=2) for step in range(3)]
    Population(
        executor,
        stream=FakeStream(labels),
        detectors={"news": Falling(NOTHING)},
        schedules=(on_drift(),),
        rounds=3,
    ).play()
    numbers = [wave.settings["fedprox.mu"].tolist() for wave in executor.waves]
    assert numbers == [[0.3, 0.6], [0.3, 1.0], [0.3, 0.3]]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"factor": 1}, "1 changes nothing"),
        ({"factor": 0}, "factor"),
        ({"least": 2.0}, "least = 2: must not be above most = 1"),
        ({"number": "local_steps"}, "'local_steps': is a whole number"),
        ({"number": "batch_size"}, "'batch_size': is a whole number"),
        ({"number": "learning_rate", "factor": 0.5}, "least = 0: must be above 0"),
    ],
)
def test_what_changes_nothing_or_has_no_number_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        OnDriftSettings(**settings)
