"""Drop-outs by hand, by FedScale's rule and by ours: which visits drop out, when, and at what cost."""

import pytest

from tests.fakes import FakeAvailability, FakeExecutor, Intervals, Population, a_fleet

# One parameter at 1 byte/s and a sample of 2 s: a visit of 4 + 2 + 4 = 10 s in both time models.
TEN_SECONDS = 2.0
TIME_MODELS = ("driftscale", "fedscale")


def ten_second_visits(sessions: dict[int, Intervals], clients: int, time_model: str, **more) -> Population:
    return Population(
        FakeExecutor([1.0] * clients),
        availability=FakeAvailability(sessions),
        fleet=a_fleet(clients, TEN_SECONDS),
        time_model=time_model,
        **more,
    )


@pytest.mark.parametrize(
    ("time_model", "completed", "dropped", "closed_s"),
    [("driftscale", [], [0], 5.0), ("fedscale", [0], [], 10.0)],
)
def test_a_client_that_is_back_online_at_the_end_of_its_visit_has_dropped_out_or_not(
    time_model, completed, dropped, closed_s
):
    played = ten_second_visits({0: [(0.0, 5.0), (8.0, 20.0)]}, 1, time_model).play()
    record = played.records[0]
    assert (record.completed, record.dropped, record.closed_s) == (completed, dropped, closed_s)
    assert played.executor.trained == ([completed] if completed else [])


@pytest.mark.parametrize(("time_model", "bytes_each_way"), [("driftscale", (8, 7)), ("fedscale", (4, 4))])
def test_a_client_that_is_offline_at_the_end_of_its_visit_moves_no_bytes_by_fedscales_rule(
    time_model, bytes_each_way
):
    # Client 1 goes offline at 9 s, after three quarters of its upload.
    played = ten_second_visits({1: [(0.0, 9.0)]}, 2, time_model).play()
    record = played.records[0]
    assert (record.completed, record.dropped, record.closed_s) == ([0], [1], 10.0)
    assert (record.download_bytes, record.upload_bytes) == bytes_each_way
    assert played.executor.trained == [[0]]


@pytest.mark.parametrize(("time_model", "closed_s"), [("driftscale", 9.0), ("fedscale", 7.0)])
def test_with_too_few_survivors_fedscales_round_closes_with_the_slowest_of_them(time_model, closed_s):
    # Visits of 4, 7, 12 and 15 s, half a second of them in each direction; three of the four are wanted.
    record = (
        Population(
            FakeExecutor([1.0] * 4),
            availability=FakeAvailability({2: [(0.0, 9.0)], 3: [(0.0, 8.0)]}),
            fleet=a_fleet(4, [3.0, 6.0, 11.0, 14.0], download_bytes_per_s=8.0, upload_bytes_per_s=8.0),
            time_model=time_model,
            participants=3,
            over_commit=1.3,
        )
        .play()
        .records[0]
    )
    assert record.participants == [0, 1, 2, 3]
    assert (record.completed, record.dropped, record.closed_s) == ([0, 1], [2, 3], closed_s)


@pytest.mark.parametrize(
    ("sessions", "survives"),
    [
        ([(0.0, 10.0)], True),  # what completes as its client goes offline has arrived, in both time models
        ([(0.0, 5.0), (10.0, 20.0)], True),
        ([(0.0, 5.0), (8.0, 10.0)], False),  # online in FedScale, whose intervals include their ends
    ],
)
def test_at_the_edge_of_an_interval_fedscales_rule_follows_our_half_open_ones(sessions, survives):
    record = ten_second_visits({1: sessions}, 2, "fedscale").play().records[0]
    assert (1 in record.completed, 1 in record.dropped) == (survives, not survives)


def test_a_round_that_nobody_survives_is_the_same_in_both_time_models():
    # Offline at 3 s and at 8 s, within the first visit; online again from 100 s on.
    sessions: dict[int, Intervals] = {0: [(0.0, 3.0), (100.0, 200.0)], 1: [(0.0, 8.0), (100.0, 200.0)]}
    ours, fedscales = (ten_second_visits(sessions, 2, name, rounds=3).play().records for name in TIME_MODELS)
    assert [record.closed_s for record in fedscales] == [8.0, 110.0, 120.0]
    assert [record.dropped for record in fedscales] == [[0, 1], [], []]
    assert fedscales == ours
