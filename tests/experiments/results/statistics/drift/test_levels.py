"""Levels around a drift by made-up runs, of ten-second rounds unless said otherwise."""

from dataclasses import replace

import pytest

from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.drift.levels import find_drift
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import TIMING, a_moving_run, a_record, a_run

BEFORE = [0.0, 0.0, *[0.5] * 10]
"""Of twelve rounds; the drift is that of round 12, at 120 s."""


def drift_of(runs, **settings):
    settings = {"name": "x", "window": 1, "reference_arm": runs[0].arm, "event_rounds": [12], **settings}
    comparison = summarise(runs, **settings).comparison
    return comparison, find_drift(comparison)


def levels_of(run, name="accuracy", **settings):
    comparison, drift = drift_of([run], **settings)
    return drift.of(comparison.reference.measured[0], name)


def a_run_of_rounds(arm, seed, length_s, rounds):
    """A run of rounds of this length, each evaluated."""
    records = [
        a_record(
            number,
            opened_s=length_s * number,
            dispatched_s=length_s * number,
            closed_s=length_s * (number + 1),
        )
        for number in range(rounds)
    ]
    return ReportedRun(arm, seed, {}, records, TIMING)


def test_levels_and_the_area_lost_are_those_worked_out_by_hand():
    # From 120 s on: 0.5 for 10 s, until the first evaluation after it, 0.25 for 20 s, 0.75 for 50 s.
    found = levels_of(a_run("global", 0, [*BEFORE, 0.25, 0.25, *[0.75] * 6]))
    assert found.before == 0.5
    assert found.after == (0.5 * 10 + 0.25 * 20 + 0.75 * 50) / 80
    assert found.difference_pp == 100 * (found.after - 0.5)
    assert found.area_lost_pp_h == 25 * 20 / 3600  # what is above the level before gains nothing back


def test_of_fewer_evaluations_before_all_count_and_of_none_there_is_no_level():
    few = levels_of(a_run("global", 0, [None, 0.25, 0.75, 0.0, 0.0]), event_rounds=[3])
    assert few.before == 0.5
    none = levels_of(a_run("global", 0, [None, None, 0.5, 0.75]), event_rounds=[2])
    assert (none.before, none.after, none.area_lost_pp_h, none.recovery) == (None, None, None, None)


def test_the_stretch_is_the_mean_time_of_a_hundred_rounds_of_the_reference_arm_for_every_arm():
    reference = [a_run_of_rounds("global", seed, 10.0 - 2 * seed, 160) for seed in (0, 1)]
    _, drift = drift_of([*reference, a_run_of_rounds("fielding", 0, 5.0, 300)])
    assert drift.stretch_s == (1000 + 800) / 2


def test_nominal_rounds_last_as_long_as_they_are_configured():
    run = a_run_of_rounds("global", 0, 10.0, 160)
    assert drift_of([run], seconds_per_round=4.0, event_rounds=[30])[1].stretch_s == 400.0


def test_no_stretch_ends_after_the_horizon_and_all_are_equally_long():
    early, late = a_run_of_rounds("global", 0, 10.0, 50), a_run_of_rounds("fielding", 0, 20.0, 50)
    _, drift = drift_of([early, late])
    assert drift.stretch_s == 500 - 12 * 20  # the arm with the longer rounds has its drift at 240 s


def test_a_run_has_recovered_when_five_evaluations_in_a_row_average_near_the_level_before():
    # Of seven evaluations after it, the last five average 0.5; the five before 0.45.
    found = levels_of(a_run("global", 0, [*BEFORE, 0.25, 0.25, *[0.5] * 8])).recovery
    assert found.delay_s == 70.0
    assert (found.first_round, found.end_round) == (12, 19)
    assert found.num_bytes == 7 * (400 + 300 + 16)
    near = levels_of(a_run("global", 0, [*BEFORE, *[0.485] * 8])).recovery
    assert near.delay_s == 50.0


def test_a_run_never_recovers_if_it_stays_below_or_if_the_horizon_is_earlier():
    assert levels_of(a_run("global", 0, [*BEFORE, *[0.475] * 20])).recovery is None
    recovers = a_run("global", 0, [*BEFORE, *[0.5] * 8])
    assert levels_of(recovers).recovery.delay_s == 50.0
    assert levels_of(recovers, horizon_s=165.0).recovery is None


def test_without_a_mass_event_of_the_configuration_it_is_the_first_of_the_log():
    run = a_moving_run(0, [2, 4], rounds=12)  # data step 2 begins with round 4
    run = replace(run, records=[replace(record, accuracy=record.round / 16) for record in run.records])
    found = levels_of(run, event_rounds=[])
    assert found.before == (0 + 1 + 2 + 3) / 4 / 16
    assert levels_of(run, event_rounds=[6]).before == (0 + 1 + 2 + 3 + 4 + 5) / 6 / 16


def test_if_one_run_has_no_mass_event_of_the_configuration_all_have_those_of_their_logs():
    run = a_moving_run(0, [2], rounds=12)
    slow = replace(run, arm="slow", records=[replace(record, round=0) for record in run.records])
    comparison, drift = drift_of([run, slow], event_rounds=[6])
    assert [item.event_s for arm in comparison.arms for item in arm.measured] == [60.0, None]
    assert drift.stretch_s == 80.0  # both from 40 s to 120 s


def test_unless_every_run_has_a_drift_before_the_horizon_nothing_is_known():
    run = a_run("global", 0, [*BEFORE, 0.5, 0.5])
    assert drift_of([run], horizon_s=115.0)[1] is None
    assert drift_of([run], event_rounds=[])[1] is None
    assert drift_of([run, a_run("fielding", 0, BEFORE)])[1] is None


@pytest.mark.parametrize("name", ["personal_accuracy", "trained_accuracy", "pooled_accuracy"])
def test_every_accuracy_is_measured_alike(name):
    values = [*BEFORE, 0.25, 0.25, *[0.75] * 6]
    run = a_run("global", 0, [1.0] * 20)
    records = [replace(record, **{name: value}) for record, value in zip(run.records, values, strict=True)]
    assert levels_of(replace(run, records=records), name) == levels_of(a_run("global", 0, values))
    assert levels_of(run, name) is None
