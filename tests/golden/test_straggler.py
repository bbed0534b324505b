"""Over-commitment by hand: the straggler is abandoned, and charged for the bytes transferred until then."""

import pytest

from coordinator.pacing.sync import SyncSettings
from tests.fakes import FakeExecutor, Population, a_fleet

# 250 parameters are 1000 bytes; one sample. Phases of the visits (download, compute, upload):
#   client 0    2 + 4 +  4 = 10 s
#   client 1    4 + 6 + 10 = 20 s
#   client 2    8 + 4 + 40 = 52 s, the straggler
FLEET = a_fleet(3, [4, 6, 4], download_bytes_per_s=[500, 250, 125], upload_bytes_per_s=[250, 100, 25])


def three_sent_two_kept(**settings) -> Population:
    return Population(
        FakeExecutor([1.0, 0.5, -8.0], num_parameters=250),
        fleet=FLEET,
        participants=2,
        over_commit=1.5,
        **settings,
    )


def test_the_round_closes_with_the_second_upload_and_the_straggler_is_abandoned():
    record = three_sent_two_kept().play().records[0]
    assert record.participants == [0, 1, 2]
    assert record.completed == [0, 1]
    assert record.dropped == []
    assert record.abandoned == 1
    assert record.closed_s == 20.0


def test_a_straggler_is_charged_for_the_share_of_its_upload_that_was_done():
    record = three_sent_two_kept().play().records[0]
    # At 20 s it had downloaded and computed for 12 s, and uploaded for 8 s of 40 s: a fifth.
    assert record.download_bytes == 3000
    assert record.upload_bytes == 2200


def test_a_straggler_is_never_trained_and_leaves_no_trace_in_the_model():
    played = three_sent_two_kept().play()
    assert played.executor.trained == [[0, 1]]
    # (0.5 * 1 + 0.5 * 0.5) / 2
    assert played.models == [[0.375] * 250]


def test_a_straggler_that_is_still_downloading_is_charged_for_that_share_alone():
    # At the deadline of 4 s, client 0 is computing, client 1 has just finished its download, and client 2
    # half of it.
    record = three_sent_two_kept(pacing=SyncSettings(deadline_s=4.0)).play().records[0]
    assert record.completed == []
    assert record.abandoned == 3
    assert record.closed_s == 4.0
    assert record.download_bytes == 1000 + 1000 + 500
    assert record.upload_bytes == 0


def test_the_events_of_abandoned_visits_change_nothing_in_later_rounds():
    records = three_sent_two_kept(rounds=4).play().records
    # Client 2's first visit would have been due at 52 s, in the third round.
    assert [record.closed_s for record in records] == [20.0, 40.0, 60.0, 80.0]
    assert [record.completed for record in records] == [[0, 1]] * 4
    assert [record.upload_bytes for record in records] == pytest.approx([2200, 4400, 6600, 8800], rel=1e-12)


def test_without_over_commitment_the_round_waits_for_its_slowest():
    population = three_sent_two_kept()
    population.participants, population.over_commit = 3, 1.0
    record = population.play().records[0]
    assert record.completed == [0, 1, 2]
    assert record.closed_s == 52.0
