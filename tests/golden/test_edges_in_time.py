"""Events at exactly the same instant, and one bit before it."""

import math

import pytest

from coordinator.pacing.sync import SyncSettings
from tests.fakes import FakeAvailability, FakeExecutor, Population, a_fleet

VISIT_S = 9.0  # one parameter at 1 byte/s: 4 s down, one sample of 1 s, 4 s up
JUST_BEFORE = math.nextafter(VISIT_S, 0.0)


def one_client(offline_s: float = math.inf, **settings) -> Population:
    return Population(
        FakeExecutor([1.0]),
        availability=FakeAvailability({0: [(0.0, offline_s), (100.0, math.inf)]}),
        **settings,
    )


def test_a_client_that_goes_offline_at_the_very_instant_of_arrival_has_arrived():
    record = one_client(offline_s=VISIT_S).play().records[0]
    assert (record.completed, record.dropped, record.closed_s) == ([0], [], VISIT_S)


def test_a_client_that_goes_offline_the_instant_before_is_dropped_then():
    played = one_client(offline_s=JUST_BEFORE).play()
    record = played.records[0]
    assert (record.completed, record.dropped, record.closed_s) == ([], [0], JUST_BEFORE)
    assert played.executor.trained == []


def test_a_dropped_client_is_charged_pro_rata():
    # Offline at 6 s: the download is done, the upload, from 5 s to 9 s, for a quarter.
    record = one_client(offline_s=6.0).play().records[0]
    assert record.dropped == [0]
    assert (record.download_bytes, record.upload_bytes) == (4.0, 1.0)


def test_an_upload_that_completes_at_the_deadline_has_arrived():
    record = one_client(pacing=SyncSettings(deadline_s=VISIT_S)).play().records[0]
    assert (record.completed, record.closed_s) == ([0], VISIT_S)


def test_a_deadline_the_instant_before_abandons_it():
    record = one_client(pacing=SyncSettings(deadline_s=JUST_BEFORE)).play().records[0]
    assert (record.completed, record.abandoned, record.closed_s) == ([], 1, JUST_BEFORE)


def test_a_drop_out_at_the_deadline_is_a_drop_out():
    record = one_client(offline_s=6.0, pacing=SyncSettings(deadline_s=6.0)).play().records[0]
    assert (record.dropped, record.abandoned) == ([0], 0)


def test_a_deadline_that_comes_after_its_round_closed_means_nothing_to_the_next():
    # Rounds of 9 s; the first one's deadline, at 12 s, falls into the second.
    records = one_client(rounds=3, pacing=SyncSettings(deadline_s=12.0)).play().records
    assert [record.closed_s for record in records] == [9.0, 18.0, 27.0]
    assert [record.completed for record in records] == [[0]] * 3


def test_of_uploads_at_the_same_instant_those_of_the_lowest_clients_complete():
    record = Population(FakeExecutor([1.0] * 4), participants=2, over_commit=2.0).play().records[0]
    assert record.participants == [0, 1, 2, 3]
    assert record.completed == [0, 1]
    # The bytes of the others were transferred all the same.
    assert record.upload_bytes == 16.0


@pytest.mark.parametrize("rounds", [3])
def test_a_round_where_everybody_drops_leaves_the_models_and_opens_the_next_at_the_last_drop(rounds):
    # Both are online again from 100 s on.
    played = Population(
        FakeExecutor([1.0, 1.0]),
        availability=FakeAvailability({0: [(0.0, 3.0), (100.0, 200.0)], 1: [(0.0, 8.0), (100.0, 200.0)]}),
        rounds=rounds,
    ).play()
    first, second, third = played.records
    assert (first.completed, first.dropped, first.closed_s) == ([], [0, 1], 8.0)
    assert (first.train_loss, first.accuracy) == (None, 0.0)
    assert (second.opened_s, second.dispatched_s, second.closed_s) == (8.0, 100.0, 109.0)
    assert (second.accuracy, third.accuracy) == (0.5, 0.75)
    assert played.executor.trained == [[0, 1], [0, 1]]


def test_when_the_last_visits_out_drop_the_round_closes_with_the_completed_ones():
    fleet = a_fleet(2, seconds_per_sample=[1.0, 50.0])
    played = Population(
        FakeExecutor([1.0, -1.0]), fleet=fleet, availability=FakeAvailability({1: [(0.0, 20.0)]})
    ).play()
    record = played.records[0]
    assert (record.completed, record.dropped, record.closed_s) == ([0], [1], 20.0)
    assert played.models == [[0.5]]
