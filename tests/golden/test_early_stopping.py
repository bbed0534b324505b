"""Visits of epochs by hand: how long they last, and what one that is abandoned or drops out leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coordinator.schedules.by_cluster import ByCluster, ByClusterSettings
from tests.fakes import (
    FakeAvailability,
    FakeExecutor,
    FakeStream,
    Played,
    Population,
    StoppingExecutor,
    a_fleet,
)

# 250 parameters are 1000 bytes, and a batch has 4 samples. The clients hold 10, 7 and 1 samples, of which
# they hold out 4, 3 and none; they take 3, 1 and 1 epochs, of 3 at most. Client 0 predicts before the first
# epoch and after two of them, client 1 before and after its only one. The model factor is 2.
#             download   trained           predicted   seconds                      upload
#   client 0  0.5 + 2    3 x 2 x 4 = 24    3 x 4 = 12  (24 + 12 / 3) x 2 x 2 = 112  0.5 + 4    = 119
#   client 1  4          1 x 1 x 4 = 4     2 x 3 = 6   (4 + 6 / 3) x 3 x 2 = 36     10         = 50
#   client 2  8          1 x 1 x 4 = 4     none        4 x 1 x 2 = 8                40         = 56
FLEET = a_fleet(3, [2, 3, 1], [500, 250, 125], [250, 100, 25], [0.5, 0, 0])
HELD = [10, 7, 1]
TARGETS = [1.0, 0.5, -8.0]


def stopping(**settings: Any) -> Played:
    return Population(
        StoppingExecutor(TARGETS, epochs=[3, 1, 1], held_out=[4, 3, 0], num_parameters=250),
        stream=FakeStream(np.ones((4, 3, 1)), train=HELD),
        fleet=FLEET,
        model_factor=2.0,
        batch_size=4,
        local_epochs=3,
        log_visits=True,
        **settings,
    ).play()


def test_a_visit_lasts_as_long_as_its_epochs_and_its_predictions_take() -> None:
    played = stopping()
    (rows,), (record,) = played.visits, played.records
    assert rows.download_s.tolist() == [2.5, 4, 8]
    assert rows.compute_s.tolist() == [112, 36, 8]
    assert rows.upload_s.tolist() == [4.5, 10, 40]
    assert rows.end_s.tolist() == [119, 50, 56]
    assert record.closed_s == 119
    assert record.noted == {"epochs": 5 / 3, "without_held_out": 1}


def test_a_client_that_drops_out_while_it_computes_is_charged_for_its_download_alone() -> None:
    """Client 1 goes offline 9 s after its download: nobody sees its model, but its epochs are noted."""
    played = stopping(availability=FakeAvailability({1: [(0.0, 13.0)]}))
    record = played.records[0]
    assert (record.dropped, record.completed) == ([1], [0, 2])
    assert (record.download_bytes, record.upload_bytes) == (3000, 2000)
    assert record.noted == {"epochs": 5 / 3, "without_held_out": 1}
    assert played.executor.trained == [[0, 1, 2]]
    # (10 x 0.5 x 1 - 1 x 0.5 x 8) / 11
    assert played.models == [pytest.approx([1 / 11] * 250)]


def test_nobody_sees_the_model_of_a_visit_that_is_abandoned() -> None:
    """Client 0, which trains the longest, is still computing as the round closes, and in all rounds after."""
    played = stopping(participants=2, over_commit=1.5, rounds=3)
    assert [record.closed_s for record in played.records] == [56, 112, 168]
    assert [record.completed for record in played.records] == [[1, 2]] * 3
    assert [record.upload_bytes for record in played.records] == [2000, 4000, 6000]
    assert played.executor.trained == [[0, 1, 2]] * 3
    # To the mean of the targets, (7 x 0.5 - 8) / 8, a round goes half of the way.
    assert played.models == [pytest.approx([-4.5 / 8 * (1 - 0.5**3)] * 250)]


@pytest.mark.parametrize(
    ("last", "samples"), [("filled", [24, 16, 8]), ("short", [20, 14, 2])], ids=["filled", "short"]
)
def test_without_a_rule_that_stops_all_epochs_are_taken_and_timed_before_training(
    last: Any, samples: list[int]
) -> None:
    """Two epochs of ceil(10 / 4) = 3, 2 and 1 steps; a client without samples does not take part."""
    population = Population(
        FakeExecutor([*TARGETS, 0.0], num_parameters=250),
        stream=FakeStream(np.ones((1, 4, 1)), train=[*HELD, 0]),
        fleet=a_fleet(4, 2.0, 500, 250),
        batch_size=4,
        local_epochs=2,
        last=last,
        log_visits=True,
    )
    played = population.play()
    (tasks,), (rows,) = played.executor.waves, played.visits
    assert tasks.settings["local_steps"].tolist() == [6, 4, 2]
    assert "local_epochs" not in tasks.settings
    assert rows.compute_s.tolist() == [2.0 * number for number in samples]
    assert played.records[0].closed_s == 2 + 2 * samples[0] + 4
    assert played.records[0].noted is None


def test_where_a_schedule_sets_the_batch_size_an_epoch_has_as_many_steps_as_these_batches_need() -> None:
    """Two epochs of 7 samples, in batches of 2: 8 steps of 2 s for each sample of a full batch."""
    schedule = ByCluster(ByClusterSettings.model_validate({"clusters": {"0": {"batch_size": 2}}}))
    played = Population(
        FakeExecutor([1.0], num_parameters=250),
        stream=FakeStream(np.ones((1, 1, 1)), train=[7]),
        fleet=a_fleet(1, 2.0, 500, 250),
        batch_size=4,
        local_epochs=2,
        schedules=(schedule,),
    ).play()
    assert played.executor.waves[0].settings["local_steps"].tolist() == [8]
    assert played.records[0].closed_s == 2 + 2 * 8 * 2 + 4
