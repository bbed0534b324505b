"""Two arms over four or five rounds of ten seconds, with figures worked out by hand."""

import math
from dataclasses import replace

import pytest

from experiments.results.reading.recorded import REFERENCE
from experiments.results.statistics.comparisons import Compared, Run, comparisons
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.medians import Bounds, exactly
from experiments.results.statistics.targets import target_table
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables import all_quantities
from experiments.results.tables.summary import measure
from tests.experiments.synthetic_runs import a_run

INF = math.inf


def tables(accuracies, *, target=0.5, event_round=None, horizon_s=None, window=1, onsets=None):
    """Accuracy rows by arm, target rows by arm, and the table of the target.

    `accuracies` has, by arm, a list of accuracies for each seed; the first arm is the reference. `onsets` are
    how many of four clients have one at each data step, which are rounds; without them no log tells any.
    """
    runs = [
        a_run(arm, seed, values) for arm, by_seed in accuracies.items() for seed, values in enumerate(by_seed)
    ]
    if onsets is not None:
        header = {"num_clients": 4, "onsets": {"steps": list(onsets), "counts": list(onsets.values())}}
        runs = [
            replace(run, header=header, records=[replace(item, step=item.round) for item in run.records])
            for run in runs
        ]
    curves = [accuracy_curve(run, window) for run in runs]
    horizon = common_horizon(
        runs,
        curves,
        asked_s=horizon_s,
        event_rounds=() if event_round is None else (event_round,),
    )
    measured = [Run.of(run, curve, horizon) for run, curve in zip(runs, curves, strict=True)]
    compared = Compared(comparisons(measured, next(iter(accuracies))), horizon)
    table = target_table(target, compared)
    measure(compared, all_quantities().values())
    return (
        {row.arm: row for row in compared.arms},
        {row.arm: row for row in table.rows},
        table,
    )


def test_the_table_without_a_target_by_hand():
    rows, _, _ = tables({"global": [[0.125, 0.25, 0.25, 0.5]], "fielding": [[0.25, 0.5, 0.75, 0.75]]})
    # From 10 to 40 s: (0.125 + 0.25 + 0.25) / 3 and (0.25 + 0.5 + 0.75) / 3; the last evaluation is the end.
    assert rows["global"]["mean_accuracy"].per_seed == [pytest.approx(0.625 / 3)]
    assert rows["fielding"]["mean_accuracy"].per_seed == [0.5]
    assert rows["fielding"]["gain_pp"].per_seed == [pytest.approx(100 * (0.5 - 0.625 / 3))]
    assert rows["fielding"]["final_accuracy"].per_seed == [0.75]
    assert rows["global"]["gain_pp"] is None
    assert rows["fielding"]["gain_after_drift_pp"] is None


def test_the_gain_after_drift_starts_with_each_runs_own_event():
    rows, _, _ = tables(
        {"global": [[0.5, 0.5, 0.25, 0.25]], "fielding": [[0.5, 0.5, 0.25, 0.75]]}, event_round=2
    )
    # Round 2 opens at 20 s. From there to 40 s: 0.5 and 0.25 of global, 0.5 and 0.25 of fielding.
    assert rows["fielding"]["gain_after_drift_pp"].per_seed == [0.0]
    rows, _, _ = tables(
        {"global": [[0.5, 0.5, 0.25, 0.25, 0.25]], "fielding": [[0.5, 0.5, 0.25, 0.75, 0.75]]}, event_round=2
    )
    # And from 40 to 50 s 0.25 and 0.75: a gain of 50 pp in a third of the time.
    assert rows["fielding"]["gain_after_drift_pp"].per_seed == [pytest.approx(50 / 3)]


def test_an_event_after_the_horizon_of_any_run_has_no_figures():
    rows, targets, _ = tables({"global": [[0.5] * 4], "fielding": [[0.5] * 4]}, event_round=3, horizon_s=30.0)
    assert rows["fielding"]["gain_after_drift_pp"] is None
    assert targets["fielding"]["below_after_drift"] is None


def test_without_any_time_in_common_there_is_no_gain_after_an_event_either():
    rows, _, _ = tables({"global": [[None, 0.5]], "fielding": [[0.5, 0.5]]}, event_round=0, horizon_s=15.0)
    assert rows["fielding"]["mean_accuracy"].mean is None
    assert rows["fielding"]["gain_after_drift_pp"] is None


def test_the_table_of_a_target_by_hand():
    _, rows, _ = tables(
        {"global": [[0.25, 0.25, 0.5, 0.25, 0.5]], "fielding": [[0.25, 0.5, 0.25, 0.5, 0.5]]}, event_round=2
    )
    reference, fielding = rows["global"], rows["fielding"]
    # At the target for 10 s of the 50 s up to the horizon; fielding for 10 and 10 s.
    assert reference["time_below_s"].median == exactly(40.0)
    assert fielding["time_below_s"].median == exactly(30.0)
    assert fielding["saved_s"].median == exactly(10.0)
    # From 20 s, when round 2 opens: below for 20 of 30 s and for 10 of 30 s.
    assert reference["below_after_drift"].median == exactly(pytest.approx(2 / 3))
    assert fielding["below_after_drift"].median == exactly(pytest.approx(1 / 3))
    # Held at 50 and at 40 s, 30 and 20 s after the event; before it by fielding alone, from 20 s on.
    assert reference["held_from_s"].median == exactly(30.0)
    assert fielding["held_from_s"].median == exactly(20.0)
    assert fielding["speedup"].median == exactly(1.5)
    assert (reference["held_before_s"].median, fielding["held_before_s"].median) == (
        Bounds(20.0, INF),
        exactly(20.0),
    )
    assert fielding["first_reached_s"].median == exactly(20.0)
    assert (reference["held"], fielding["held"], fielding["seeds"]) == (1, 1, 1)
    assert (reference["saved_s"], reference["speedup"]) == (None, None)


def test_a_run_that_never_falls_below_a_target_holds_it_by_its_first_evaluation_after_the_event():
    _, rows, table = tables(
        {"global": [[0.75, 0.75, 0.25, 0.75]], "fielding": [[0.75, 0.75, 0.75, 0.75]]}, event_round=2
    )
    assert table.counts_from_event
    assert rows["fielding"]["held_before_s"].median == Bounds(0.0, 10.0)
    assert rows["fielding"]["held_from_s"].median == Bounds(0.0, 10.0)
    assert rows["fielding"]["speedup"].median == Bounds(2.0, INF)  # 20 s over at most 10


def test_a_median_does_not_jump_from_one_side_of_an_event_to_the_other():
    # Before it, all hold the target; after it two of three, or one of three, never fall below it.
    stays, falls = [0.75, 0.75, 0.75, 0.75], [0.75, 0.75, 0.25, 0.75]
    _, rows, _ = tables({"global": [stays, stays, falls], "fielding": [stays, falls, falls]}, event_round=2)
    assert rows["global"]["held_from_s"].median == Bounds(0.0, 10.0)
    assert rows["fielding"]["held_from_s"].median == exactly(20.0)


def test_an_event_counts_if_half_of_the_clients_drift_in_it_by_the_log():
    runs = {"global": [[0.75, 0.75, 0.25, 0.75]], "fielding": [[0.75, 0.75, 0.75, 0.75]]}
    for onsets, counts in (({2: 1}, False), ({2: 2}, True), ({1: 1, 2: 3}, True)):
        _, rows, table = tables(runs, event_round=2, onsets=onsets)
        assert table.counts_from_event is counts, onsets
        assert rows["global"]["held_from_s"].median == exactly(20.0 if counts else 40.0)


def test_times_are_from_the_start_where_fewer_evaluations_follow_the_event_than_a_mean_is_of():
    # Of 90, 90, 90, 50, 50 %, the mean of the last three is 63.3: two from the event on are 50 and 50.
    runs = {"global": [[0.9, 0.9, 0.9, 0.5, 0.5]], "fielding": [[0.9] * 5]}
    _, rows, table = tables(runs, target=REFERENCE, event_round=3, window=3)
    assert not table.counts_from_event
    assert (table.accuracy.mean, rows["global"]["held"]) == (pytest.approx(1.9 / 3), 1)  # it holds its own
    _, rows, table = tables(runs, target=REFERENCE, event_round=2, window=3)
    assert table.counts_from_event
    assert rows["global"]["held"] == 1


def test_unless_every_run_has_an_event_by_the_horizon_times_are_from_the_start():
    runs = {"global": [HELD_LATE], "fielding": [HELD_LATE]}
    for changes in ({}, {"event_round": 3}):
        _, rows, table = tables(runs, **changes)
        assert not table.counts_from_event
        assert rows["fielding"]["held_before_s"] is None
        assert rows["fielding"]["held_from_s"].median == exactly(20.0)


NOT_HELD, HELD_LATE, HELD_FROM_THE_FIRST = [0.25, 0.75, 0.25], [0.25, 0.75, 0.75], [0.75, 0.75, 0.75]


@pytest.mark.parametrize(
    ("reference", "arm", "speedup"),
    [
        (HELD_LATE, HELD_LATE, exactly(1.0)),
        (NOT_HELD, HELD_LATE, Bounds(1.5, INF)),
        (HELD_LATE, NOT_HELD, Bounds(0.0, 20 / 30)),
        (NOT_HELD, NOT_HELD, Bounds(0.0, INF)),
        (HELD_FROM_THE_FIRST, HELD_LATE, Bounds(0.0, 0.5)),
        (HELD_LATE, HELD_FROM_THE_FIRST, Bounds(2.0, INF)),
        (HELD_FROM_THE_FIRST, NOT_HELD, Bounds(0.0, 10 / 30)),
        (NOT_HELD, HELD_FROM_THE_FIRST, Bounds(3.0, INF)),
        (HELD_FROM_THE_FIRST, HELD_FROM_THE_FIRST, Bounds(0.0, INF)),
    ],
)
def test_a_pair_of_runs_has_the_bounds_of_its_speed_up(reference, arm, speedup):
    _, rows, _ = tables({"global": [reference], "fielding": [arm]})
    assert rows["fielding"]["speedup"].per_seed == [speedup]


def test_of_three_seeds_two_that_hold_a_target_decide_the_median():
    _, rows, _ = tables({"global": [HELD_LATE] * 3, "fielding": [HELD_LATE, NOT_HELD, HELD_LATE]})
    fielding = rows["fielding"]
    assert fielding["held"] == 2
    assert fielding["held_from_s"].median == exactly(20.0)
    assert fielding["speedup"].median == exactly(1.0)
    assert fielding["speedup"].interval == Bounds(0.0, 1.0)
    assert fielding["speedup"].level == 0.75


def test_of_four_seeds_two_that_do_not_hold_it_leave_a_bound():
    _, rows, _ = tables({"global": [HELD_LATE] * 4, "fielding": [HELD_LATE, NOT_HELD, HELD_LATE, NOT_HELD]})
    fielding = rows["fielding"]
    assert fielding["held_from_s"].median == Bounds(25.0, INF)
    assert fielding["speedup"].median == Bounds(0.0, pytest.approx(math.sqrt(20 / 30)))


def test_time_saved_is_undetermined_where_neither_arm_ever_reaches_the_target():
    _, rows, _ = tables({"global": [[0.25] * 3] * 3, "fielding": [[0.25] * 3] * 3})
    assert rows["fielding"]["time_below_s"].median == exactly(30.0)
    assert rows["fielding"]["saved_s"].median.status == "undetermined"


def test_time_saved_is_known_where_a_single_seed_of_either_arm_reaches_it():
    _, rows, _ = tables(
        {"global": [[0.25] * 3] * 3, "fielding": [[0.25] * 3, [0.25] * 3, [0.25, 0.75, 0.25]]}
    )
    assert rows["fielding"]["saved_s"].median == exactly(0.0)
    assert rows["fielding"]["saved_s"].interval == Bounds(0.0, 10.0)


def test_the_references_own_accuracy_at_the_horizon_can_be_the_target_seed_by_seed():
    _, rows, table = tables(
        {"global": [[0.25, 0.5, 0.5], [0.25, 0.5, 0.75]], "fielding": [[0.25, 0.5, 0.5], [0.5, 0.5, 0.75]]},
        target="reference",
    )
    assert table.accuracy.per_seed == [0.5, 0.75]
    assert rows["fielding"]["held_from_s"].per_seed == [exactly(20.0), exactly(30.0)]


def test_without_an_evaluation_by_the_horizon_no_run_reaches_the_reference():
    _, rows, table = tables({"global": [[0.5]], "fielding": [[0.5]]}, target="reference", horizon_s=5.0)
    assert table.accuracy.mean is None
    assert rows["fielding"]["held"] == 0
    assert rows["fielding"]["time_below_s"].median == exactly(5.0)


def test_arms_are_paired_on_the_seeds_they_share():
    rows, targets, _ = tables({"global": [[0.25, 0.5]], "fielding": [[0.5, 0.5], [0.75, 0.75]]})
    assert rows["fielding"]["gain_pp"].per_seed == [25.0]
    assert targets["fielding"]["seeds"] == 1


def test_joint_intervals_are_wider_than_their_own_where_there_are_several_arms():
    seeds = [[0.25, 0.5], [0.25, 0.6], [0.25, 0.7]]
    better = [[0.5, 0.5], [0.55, 0.6], [0.45, 0.7]]
    alone, _, _ = tables({"global": seeds, "one": better})
    among, _, _ = tables({"global": seeds, "one": better, "two": better})
    assert alone["one"]["gain_pp"].ci95_joint == alone["one"]["gain_pp"].ci95 == among["one"]["gain_pp"].ci95
    assert among["one"]["gain_pp"].ci95_joint[0] < among["one"]["gain_pp"].ci95[0]
