import math
from dataclasses import replace

import numpy as np
import pytest

from emulator.errors import InputError
from experiments.results.statistics.medians import Bounds, exactly
from experiments.results.statistics.time_to_accuracy import AccuracyCurve, accuracy_curve, curve_of, smooth
from tests.experiments.synthetic_runs import a_record, a_run

NEVER = math.inf


def a_curve(accuracy, smoothed=None, every_s=10.0):
    """A curve with an evaluation every `every_s` seconds, the first one after `every_s`."""
    values = np.array(accuracy, dtype=np.float64)
    times_s = every_s * np.arange(1, len(values) + 1)
    return AccuracyCurve(times_s, values, values if smoothed is None else np.array(smoothed))


def test_smoothing_starts_with_the_evaluations_there_are():
    assert smooth(np.array([0.0, 1.0, 0.5, 0.0]), 3).tolist() == [0.0, 0.5, 0.5, 0.5]


def test_a_window_of_one_changes_nothing():
    assert smooth(np.array([0.1, 0.7, 0.3]), 1).tolist() == [0.1, 0.7, 0.3]


def test_equal_evaluations_give_equal_means_wherever_they_stand():
    accuracy = np.array([0.9, 0.1, 0.2, 0.3, 0.7, 0.3, 0.1, 0.2])
    smoothed = smooth(accuracy, 3)
    assert smoothed[3] == smoothed[7]


def test_a_window_below_one_is_refused():
    with pytest.raises(ValueError, match=r"window \(0\) must be at least 1"):
        smooth(np.array([0.5]), 0)


def test_an_evaluation_counts_when_its_round_closed():
    curve = accuracy_curve(a_run("global", 0, [None, 0.4, None, 0.6]), 1)
    assert curve.times_s.tolist() == [20.0, 40.0]
    assert curve.accuracy.tolist() == [0.4, 0.6]


def test_a_run_without_an_evaluation_is_named():
    with pytest.raises(InputError, match="arm 'global', seed 3: no round was evaluated"):
        accuracy_curve(a_run("global", 3, [None, None]), 5)


def test_an_accuracy_that_few_rounds_have_is_a_curve_of_these_rounds():
    run = a_run("global", 0, [0.5] * 3)
    run.records[1] = a_record(1, trained_accuracy=0.25)
    run.records[2] = a_record(2, trained_accuracy=0.75)
    curve = curve_of(run, "trained_accuracy", 2)
    assert (curve.times_s.tolist(), curve.accuracy.tolist()) == ([20.0, 30.0], [0.25, 0.75])
    assert (curve.smoothed.tolist(), curve.window) == ([0.25, 0.5], 2)
    assert curve_of(run, "pooled_accuracy", 2) is None


# -- mean accuracy -----------------------------------------------------------------------------------------


def test_mean_accuracy_is_an_integral_over_virtual_time():
    # 0.25 from 10 to 20 s, 0.5 to 30 s, 1.0 to the horizon at 35 s: (2.5 + 5 + 5) / 25.
    assert a_curve([0.25, 0.5, 1.0]).mean_accuracy(10.0, 35.0) == 0.5


def test_the_area_below_a_level_counts_nothing_above_it():
    # 0.25 from 15 to 20 s, 0.5 to 30 s, 1.0 to 35 s, below 0.75: 0.5 x 5 + 0.25 x 10.
    assert a_curve([0.25, 0.5, 1.0]).area_below_s(0.75, 15.0, 35.0) == 5.0
    assert a_curve([0.25, 0.5, 1.0]).area_below_s(0.75, 5.0, 35.0) is None


def test_mean_accuracy_may_start_between_two_evaluations():
    # 0.25 from 15 to 20 s, 0.5 to 25 s: 3.75 / 10.
    assert a_curve([0.25, 0.5, 1.0]).mean_accuracy(15.0, 25.0) == 0.375


def test_mean_accuracy_is_the_share_of_time_at_a_target_averaged_over_all_targets():
    curve = a_curve(np.random.default_rng(3).random(40))
    shares = [1 - curve.time_below_s(target, 395.0, 10.0) / 385.0 for target in np.linspace(0, 1, 20_001)]
    assert curve.mean_accuracy(10.0, 395.0) == pytest.approx(np.mean(shares), abs=1e-4)


def test_there_is_no_mean_accuracy_before_the_first_evaluation_or_over_no_time():
    curve = a_curve([0.25, 0.5])
    assert curve.mean_accuracy(9.0, 30.0) is None
    assert curve.mean_accuracy(20.0, 20.0) is None


def test_nothing_after_the_horizon_counts():
    accuracy = np.random.default_rng(4).random(30)
    long, short = a_curve(accuracy), a_curve(accuracy[:21])  # the 21st is the first after 205 s
    for curve_figure in (
        lambda curve: curve.mean_accuracy(10.0, 205.0),
        lambda curve: curve.time_below_s(0.5, 205.0),
        lambda curve: curve.final(205.0),
        lambda curve: curve.held_from(0.2, 205.0),
        lambda curve: curve.first_reached(0.9, 205.0),
    ):
        assert curve_figure(long) == curve_figure(short)


# -- time below --------------------------------------------------------------------------------------------


def test_time_below_counts_every_dip_and_what_precedes_the_first_evaluation():
    # Above from 20 to 30 s and from 40 s to the horizon at 45 s: 15 of 45 s.
    assert a_curve([0.4, 0.6, 0.4, 0.5]).time_below_s(0.5, 45.0) == 30.0


def test_time_below_is_unsmoothed():
    assert a_curve([0.4, 0.6], smoothed=[0.4, 0.45]).time_below_s(0.5, 30.0) == 20.0


def test_a_run_that_never_reaches_a_target_is_below_it_for_exactly_the_horizon():
    assert a_curve([0.1, 0.2, 0.3]).time_below_s(0.5, 34.56789) == 34.56789


def test_time_below_from_an_event_on():
    assert a_curve([0.6, 0.4, 0.6]).time_below_s(0.5, 40.0, 15.0) == 10.0


# -- held from, first reached ------------------------------------------------------------------------------


def test_a_target_is_held_from_where_the_smoothed_accuracy_stays_at_it():
    curve = a_curve([0.2, 0.8, 0.4, 0.6, 0.7])
    assert curve.held_from(0.5, 50.0) == exactly(40.0)
    assert curve.first_reached(0.5, 50.0) == exactly(20.0)


def test_one_client_holds_its_target_from_the_round_worked_out_by_hand():
    # Means of two are 0.2, 0.3, 0.5, 0.65, 0.7, at the ends of rounds of 10 s.
    curve = accuracy_curve(a_run("global", 0, [0.2, 0.4, 0.6, 0.7, 0.7]), 2)
    assert curve.held_from(0.5, 50.0) == exactly(30.0)


def test_exactly_at_the_target_is_at_it():
    assert a_curve([0.1, 0.5, 0.5]).held_from(0.5, 30.0) == exactly(20.0)


def test_after_an_instant_times_count_from_it_and_accuracies_are_smoothed_anew():
    # At 10, 20, 30 and 40 s; the mean of two at 30 s, over the event at 25 s, would still be 0.5.
    curve = replace(a_curve([0.9, 0.9, 0.1, 0.7], [0.9, 0.9, 0.5, 0.4]), window=2).after(25.0)
    assert curve.times_s.tolist() == [5.0, 15.0]
    assert curve.smoothed.tolist() == pytest.approx([0.1, 0.4])
    assert curve.held_from(0.35, 15.0) == exactly(15.0)
    assert a_curve([0.9]).after(10.0).held_from(0.4, 5.0) == Bounds(5.0, NEVER)


def test_a_target_held_from_the_first_evaluation_was_held_from_then_or_earlier():
    assert a_curve([0.9, 0.9]).held_from(0.5, 20.0) == Bounds(0.0, 10.0)
    assert a_curve([0.9, 0.1]).first_reached(0.5, 20.0) == Bounds(0.0, 10.0)


def test_a_target_that_is_not_held_at_the_horizon_is_held_later_or_never():
    curve = a_curve([0.2, 0.8, 0.9, 0.4, 0.9])
    assert curve.held_from(0.5, 45.0) == Bounds(45.0, NEVER)
    assert curve.first_reached(0.95, 45.0) == Bounds(45.0, NEVER)


def test_a_dip_after_the_horizon_takes_nothing_back():
    curve = a_curve([0.2, 0.8, 0.9, 0.4])
    assert curve.held_from(0.5, 39.0) == exactly(20.0)


def test_a_run_that_is_not_evaluated_by_the_horizon_has_reached_nothing():
    curve = a_curve([0.9])
    assert curve.held_from(0.5, 5.0) == Bounds(5.0, NEVER)
    assert curve.first_reached(0.5, 5.0) == Bounds(5.0, NEVER)
    assert curve.time_below_s(0.5, 5.0) == 5.0
    assert curve.final(5.0) is None


def test_the_final_accuracy_is_the_smoothed_one_at_the_horizon():
    assert a_curve([0.2, 0.4, 0.8], smoothed=[0.2, 0.3, 0.6]).final(29.0) == 0.3
