from __future__ import annotations

import numpy as np
import pytest

from coordinator.pacing import CohortSize
from coordinator.pacing.fixed import Fixed, FixedSettings
from tests.fakes import INF, FakeAvailability, FakeExecutor, Population, a_fleet, ints


def fixed(duration_s: float = 600.0) -> Fixed:
    return Fixed(FixedSettings(duration_s=duration_s), CohortSize(10))


def test_a_duration_has_to_be_given_and_above_zero():
    with pytest.raises(ValueError, match="greater than 0"):
        FixedSettings(duration_s=0)
    with pytest.raises(ValueError, match="Field required"):
        FixedSettings()


def test_the_time_alone_fills_absorbs_and_closes():
    quota, out, back = ints(5, 3), ints(1, 0), ints(5, 9)
    for rule in (fixed().full, fixed().absorbs):
        assert rule(quota, out, back, np.array([599.9])).tolist() == [False]
        assert rule(quota, out, back, np.array([600.0])).tolist() == [True]
    assert not fixed().closes(10, 599.9)
    assert fixed().closes(0, 600.0)


def a_population(**more) -> Population:
    """Four clients whose visits take 9, 10, 11 and 700 s."""
    return Population(
        FakeExecutor([1.0] * 4),
        fleet=a_fleet(4, seconds_per_sample=[1.0, 2.0, 3.0, 692.0]),
        pacing=lambda cohort: Fixed(FixedSettings(duration_s=600.0), cohort),
        rounds=3,
        **more,
    )


def test_rounds_of_600_seconds_take_600_seconds_and_not_as_long_as_their_visits():
    records = a_population().play().records
    assert [record.closed_s for record in records] == [600.0, 1200.0, 1800.0]
    assert [record.completed for record in records] == [[0, 1, 2]] * 3
    assert [record.abandoned for record in records] == [1] * 3


def test_a_round_whose_visits_all_drop_out_lasts_as_long_and_changes_no_model():
    away = FakeAvailability({client: [(-INF, 5.0), (700.0, INF)] for client in range(4)})
    played = a_population(availability=away).play()
    first, second, _ = played.records
    assert (first.closed_s, first.completed, first.dropped) == (600.0, [], [0, 1, 2, 3])
    assert first.train_loss is None
    assert (second.dispatched_s, second.closed_s) == (700.0, 1300.0)


def test_a_time_out_is_refused_as_the_duration_is_one():
    with pytest.raises(ValueError, match="unknown key 'timeout_s'; choices: duration_s"):
        FixedSettings.model_validate({"duration_s": 60.0, "timeout_s": 90.0})
