"""Runs: what is known once of their logs, and what is left of them in tables of many runs."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.results.statistics.comparisons import Compared, Run, comparisons, let_go, once
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from tests.experiments.synthetic_runs import a_run


def a_run_up_to(horizon_s):
    log = a_run("global", 0, [0.25, 0.5, 0.75])
    curve = accuracy_curve(log, 1)
    return Run.of(log, curve, common_horizon([log], [curve], asked_s=horizon_s))


def test_a_function_is_computed_once_for_each_object_and_by_each_function():
    seen = []

    @once
    def first(log):
        seen.append(("first", log.seed))
        return log.seed

    @once
    def second(log):
        seen.append(("second", log.seed))
        return -log.seed

    logs = [a_run("global", seed, [0.5]) for seed in (3, 4)]
    assert [(first(log), second(log)) for log in logs * 2] == [(3, -3), (4, -4)] * 2
    assert seen == [("first", 3), ("second", 3), ("first", 4), ("second", 4)]


def test_of_a_log_that_was_let_go_only_what_was_known_is_known():
    @once
    def accuracies(log):
        return [record.accuracy for record in log.records]

    @once
    def num_records(log):
        return len(log.records)

    log = a_run("global", 0, [0.25, 0.5])
    assert accuracies(log) == [0.25, 0.5]
    kept = let_go(log)
    assert accuracies(kept) == [0.25, 0.5]
    assert (kept.arm, kept.seed, kept.timing) == (log.arm, log.seed, log.timing)
    for read in (num_records, lambda run: run.records[0], lambda run: run.header.get("hear")):
        with pytest.raises(AssertionError, match="tables of many runs keep no log"):
            read(kept)
    assert num_records(log) == 2


def test_columns_of_rounds_are_cut_at_the_horizon():
    run = a_run_up_to(20.0)

    def columns(log):
        closed_s = np.array([record.closed_s for record in log.records])
        return {"closed_s": closed_s, "twice": 2 * closed_s}

    assert {name: column.tolist() for name, column in run.rounds(columns).items()} == {
        "closed_s": [10.0, 20.0],
        "twice": [20.0, 40.0],
    }


def test_a_curve_is_averaged_over_the_time_that_is_compared():
    run = a_run_up_to(30.0)
    assert run.mean_of(run.curve) == (0.25 + 0.5) / 2  # from 10 s to 30 s
    assert run.mean_of(None) is None


def test_the_event_of_a_run_is_the_first_one_before_the_horizon():
    run = replace(a_run_up_to(20.0), events_s=(5.0, 15.0))
    assert run.event_s == 5.0
    assert replace(run, events_s=(20.0,)).event_s is None


def compared_up_to(horizon_s, accuracies):
    """One seed of arms with these accuracies, compared up to a horizon; round n closes at 10 (n + 1) s."""
    logs = [a_run(arm, 0, values) for arm, values in accuracies.items()]
    curves = [accuracy_curve(log, 1) for log in logs]
    horizon = common_horizon(logs, curves, asked_s=horizon_s)
    runs = [Run.of(log, curve, horizon) for log, curve in zip(logs, curves, strict=True)]
    return Compared(comparisons(runs, next(iter(accuracies))), horizon)


def test_arms_tie_whose_evaluations_are_all_within_a_fifth_of_a_point():
    accuracies = {
        "global": [0.5, 0.6, 0.7],
        "moves": [0.502, 0.598, 0.7],
        "near": [0.503, 0.6, 0.7],
        "again": [0.502, 0.6, 0.7],
    }
    assert compared_up_to(None, accuracies).ties == [["global", "moves", "again"]]


def test_evaluations_after_the_horizon_part_no_arms():
    accuracies = {"global": [0.5, 0.6, 0.7], "moves": [0.5, 0.6, 0.1]}
    assert compared_up_to(25.0, accuracies).ties == [["global", "moves"]]
    assert compared_up_to(None, accuracies).ties == []
