import numpy as np
import pytest

from emulator.errors import InputError
from experiments.time_to_accuracy import accuracy_curve, smooth, time_to_accuracy
from tests.experiments.synthetic_runs import a_record, a_run

TIMES_S = np.array([10.0, 20.0, 30.0, 40.0, 50.0])


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


def test_one_client_reaches_its_target_at_the_round_worked_out_by_hand():
    # One client whose rounds take 10 s: means of two are 0.2, 0.3, 0.5, 0.65, 0.7; from 30 s on at least 0.5.
    run = a_run("global", 0, [0.2, 0.4, 0.6, 0.7, 0.7])
    assert accuracy_curve(run, 2).time_to(0.5) == (30.0, True)


def test_an_accuracy_that_falls_back_counts_only_from_where_it_stays():
    smoothed = np.array([0.2, 0.8, 0.4, 0.6, 0.7])
    assert time_to_accuracy(TIMES_S, smoothed, 0.5) == (40.0, True)


def test_exactly_at_the_target_is_reached():
    assert time_to_accuracy(TIMES_S, np.array([0.1, 0.5, 0.5, 0.5, 0.5]), 0.5) == (20.0, True)


def test_above_from_the_first_evaluation_is_reached_there():
    assert time_to_accuracy(TIMES_S, np.full(5, 0.9), 0.5) == (10.0, True)


def test_a_run_that_ends_below_the_target_is_censored_at_its_end():
    smoothed = np.array([0.2, 0.8, 0.9, 0.9, 0.4])
    assert time_to_accuracy(TIMES_S, smoothed, 0.5) == (50.0, False)
    assert time_to_accuracy(TIMES_S, smoothed, 0.5, end_s=57.5) == (57.5, False)


def test_a_censored_run_ends_with_its_last_round_evaluated_or_not():
    run = a_run("global", 0, [0.1, 0.2, None])
    assert accuracy_curve(run, 1).time_to(0.5) == (30.0, False)


def test_an_evaluation_counts_when_its_round_closed():
    run = a_run("global", 0, [None, 0.4, None, 0.6])
    curve = accuracy_curve(run, 1)
    assert curve.times_s.tolist() == [20.0, 40.0]
    assert curve.accuracy.tolist() == [0.4, 0.6]
    assert curve.end_s == a_record(3).closed_s


def test_a_run_without_an_evaluation_is_named():
    with pytest.raises(InputError, match="arm 'global', seed 3: no round was evaluated"):
        accuracy_curve(a_run("global", 3, [None, None]), 5)
