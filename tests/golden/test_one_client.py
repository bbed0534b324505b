"""One client worked out by hand: time and bytes of a visit, ends of rounds, time to accuracy."""

import math

import pytest

from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.medians import Bounds, exactly
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from tests.fakes import FakeExecutor, Population, a_fleet

# 250 parameters are 1000 bytes. A visit:
#   download  0.5 s latency + 1000 B / 100 B/s                        = 10.5 s
#   compute   4 local steps x 5 samples x 0.25 s/sample x factor 2    = 10   s
#   upload    0.5 s latency + 1000 B / 50 B/s                         = 20.5 s
VISIT_S = 41.0


def one_client(rounds: int = 5, **settings) -> Population:
    return Population(
        FakeExecutor([1.0], num_parameters=250),
        fleet=a_fleet(
            1, seconds_per_sample=0.25, download_bytes_per_s=100, upload_bytes_per_s=50, latency_s=0.5
        ),
        model_factor=2.0,
        local_steps=4,
        batch_size=5,
        rounds=rounds,
        **settings,
    )


def test_a_round_takes_the_download_the_compute_and_the_upload_and_the_next_one_follows_at_once():
    records = one_client().play().records
    times = [(record.opened_s, record.dispatched_s, record.closed_s) for record in records]
    assert times == [(VISIT_S * r, VISIT_S * r, VISIT_S * (r + 1)) for r in range(5)]


def test_each_round_moves_the_model_both_ways_and_nothing_else():
    records = one_client().play().records
    assert [record.download_bytes for record in records] == [1000, 2000, 3000, 4000, 5000]
    assert [record.upload_bytes for record in records] == [1000, 2000, 3000, 4000, 5000]
    assert [record.control_bytes for record in records] == [0] * 5


def test_the_model_goes_half_of_the_way_to_its_target_each_round():
    records = one_client().play().records
    # 0 -> 1/2 -> 3/4 -> 7/8 -> 15/16 -> 31/32; the loss is the distance at the start of training.
    assert [record.accuracy for record in records] == [0.5, 0.75, 0.875, 0.9375, 0.96875]
    assert [record.train_loss for record in records] == [1.0, 0.5, 0.25, 0.125, 0.0625]


@pytest.mark.parametrize(
    ("target", "window", "known"),
    [
        (0.5, 1, Bounds(0.0, 41.0)),  # the first evaluation is at the target
        (0.85, 1, exactly(123.0)),  # 0.875 in the third round
        (0.85, 2, exactly(164.0)),  # means of two: 0.5, 0.625, 0.8125, 0.90625 in the fourth
        (0.95, 2, exactly(205.0)),  # (0.9375 + 0.96875) / 2 = 0.953125 in the last
        (0.96, 2, Bounds(205.0, math.inf)),  # never: censored at the end
    ],
)
def test_time_to_accuracy_to_the_digit(target, window, known):
    run = ReportedRun("global", 0, {}, one_client().play().records, {})
    assert accuracy_curve(run, window).held_from(target, 205.0) == known


def test_evaluating_every_second_round_dates_accuracy_to_the_rounds_that_were_evaluated():
    records = one_client(evaluate_every=2).play().records
    # The last round is always evaluated.
    assert [record.accuracy for record in records] == [None, 0.75, None, 0.9375, 0.96875]
    run = ReportedRun("global", 0, {}, records, {})
    assert accuracy_curve(run, 1).held_from(0.85, 205.0) == exactly(164.0)


def test_a_heavier_model_stretches_the_compute_alone():
    population = one_client(rounds=1)
    population.model_factor = 6.0
    # 5 s x 6 instead of 5 s x 2
    assert population.play().records[0].closed_s == 10.5 + 30 + 20.5
