"""Scores of detectors worked out by hand: rounds of ten seconds, each of a data step of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from coordinator.detectors.base import Watches
from emulator.storage.log_lines import WATCHED
from experiments.results.reading.detection import DetectionSettings
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.comparisons import Comparison, Run
from experiments.results.statistics.detection.by_drift import NEVER
from experiments.results.statistics.detection.scores import detection_of, score_run
from tests.experiments.synthetic_runs import a_detecting_run

LATE, MISSED, UNASKED = 0, 1, 2
DRIFTS = [(3, LATE, "sudden", 0, 1), (4, MISSED, "sudden", 0, 1), (5, UNASKED, "gradual", 0, 2)]
DECIDED = {1: [LATE], 2: [LATE, MISSED, UNASKED], 4: [LATE], 5: [LATE, MISSED], 6: [LATE], 8: [MISSED]}
FLAGGED = {2: [MISSED], 5: [LATE], 6: [LATE]}


def settings(positive="changed", first_round=2, last_round=None, tolerance=3) -> DetectionSettings:
    return DetectionSettings(positive, first_round, last_round, tolerance)


def a_run(decided=DECIDED, flagged=FLAGGED, drifts=DRIFTS, watched="training", **changes) -> ReportedRun:
    return a_detecting_run("global", 0, decided, flagged, drifts, watched=watched, **changes)


def scores(run, **changes):
    return score_run(run, settings(**changes))["watch"]


def figures(run, *names, **changes):
    found = scores(run, **changes).figures
    return [found[name] for name in names] if names else found


def test_one_late_detection_one_miss_one_false_alarm_and_one_client_never_asked():
    """The flag of round 6 repeats that of round 5, which finds the drift of round 3 two rounds late.

    Decisions are made by the close of a round: of round 4 at 50 s and of round 5 at 60 s, and round 3 opened
    at 30 s.
    """
    assert figures(a_run()) == {
        "drifts": 3,
        "found": 1,
        "never_asked": 1,
        "recall_asked": 1 / 2,
        "recall_all": 1 / 3,
        "delay_rounds_mean": 2.0,
        "delay_rounds_median": 2.0,
        "delay_rounds_90": 2.0,
        "delay_s_median": 30.0,
        "delay_s_90": 30.0,
        "asked_s_median": 20.0,
        "found_s_median": 10.0,
        "false_alarms": 1,
        "repeats": 1,
        "false_alarms_per_1000": 125.0,
        "undrifted_flagged": None,
        "decisions": 8,
        "tp": 2,
        "tn": 2,
        "fp": 1,
        "fn": 3,
        "accuracy": 1 / 2,
        "precision": 2 / 3,
        "recall": 2 / 5,
        "f1": 1 / 2,
        "clipped": 7,
    }


def test_of_the_clients_without_a_drift_those_that_were_flagged_are_a_share():
    """Clients 0 and 1 drift, the latter after the scored rounds; of 1, 2 and 3 two are flagged, one twice."""
    drifts = [(2, 0, "sudden", 0, 1), (9, 1, "sudden", 0, 1)]
    run = a_run({3: [0, 1, 2], 4: [0, 2, 3], 9: [1, 3]}, {3: [0, 1], 4: [0, 2], 9: [3]}, drifts)
    assert figures(run, "undrifted_flagged", last_round=8) == [2 / 3]


def test_drifts_are_told_apart_by_kind():
    found = scores(a_run())
    assert found.of_kind("sudden") == {"drifts": 2, "found": 1, "recall_all": 1 / 2}
    assert found.of_kind("gradual") == {"drifts": 1, "found": 0, "recall_all": 0.0}
    assert found.of_kind("recurring") == {"drifts": 0, "found": 0, "recall_all": None}


def test_a_detector_of_representations_decides_as_the_round_opens():
    names = ("delay_rounds_median", "delay_s_median", "asked_s_median", "found_s_median")
    assert figures(a_run(watched="representation"), *names) == [2.0, 20.0, 10.0, 10.0]


def test_a_detector_of_arrivals_has_decided_by_the_close_of_a_round_of_which_the_dispatches_are_unknown():
    """Of client 0 samples arrive in rounds 4 and 6, and are flagged in round 6, three rounds after the drift.

    Round 3 opens at 30 s, and rounds 4 and 6 close at 50 and 70 s; when in them it was sent out counts not.
    """
    run = a_run({0: [0], 4: [0, 1], 6: [0]}, {6: [0]}, [(3, 0, "sudden", 0, 1)], watched="arrivals")
    later = [replace(record, dispatched_s=record.opened_s + 4) for record in run.records]
    for records in (run.records, later):
        one = replace(run, records=records)
        assert figures(one, "found", "delay_rounds_median") == [1, 3.0]
        assert figures(one, "delay_s_median", "asked_s_median", "found_s_median") == [40.0, 20.0, 20.0]
        assert figures(one, "decisions", "tp", "tn", "fp", "fn") == [3, 1, 1, 0, 1]
        assert scores(one).asked.tolist() == [4]


def test_a_drift_that_a_detector_of_arrivals_finds_in_its_own_round_took_that_round():
    run = a_run({3: [0]}, {3: [0]}, [(3, 0, "sudden", 0, 1)], watched="arrivals")
    assert figures(run, "found", "delay_rounds_median", "delay_s_median") == [1, 0.0, 10.0]


def test_a_client_for_whom_nothing_has_arrived_since_its_drift_was_seen_is_not_asked_again():
    """Its only visit with new samples is in round 4, without a flag: the drift of round 3 is missed."""
    run = a_run({4: [0]}, {}, [(3, 0, "sudden", 0, 1)], watched="arrivals")
    assert figures(run, "found", "never_asked", "recall_asked", "fn") == [0, 0, 0.0, 1]


def test_a_run_may_have_detectors_of_all_that_can_be_watched():
    """Each of them flags client 0 in round 3, and has its decisions by what it watches."""
    assert get_args(Watches) == WATCHED
    run = a_run({}, {}, [(3, 0, "sudden", 0, 1)])
    decided = {watched: [0] for watched in WATCHED}
    records = [
        replace(record, decided=decided, flagged={watched: [0] for watched in WATCHED})
        if number == 3
        else record
        for number, record in enumerate(run.records)
    ]
    header = {**run.header, "detectors": {watched: watched for watched in WATCHED}}
    found = score_run(replace(run, header=header, records=records), settings())
    assert {name: of.figures["delay_s_median"] for name, of in found.items()} == {
        "representation": 0.0,
        "arrivals": 10.0,
        "training": 10.0,
    }


def test_a_drift_that_is_found_in_its_own_round_has_a_delay_of_no_round():
    run = a_run({3: [0]}, {3: [0]}, [(3, 0, "sudden", 0, 1)], watched="representation")
    assert figures(run, "found", "delay_rounds_median", "delay_s_median", "recall_all") == [1, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(("tolerance", "found", "alarms"), [(2, 1, 1), (1, 0, 3)])
def test_a_flag_is_true_up_to_the_tolerance_and_after_a_late_one_all_are_false(tolerance, found, alarms):
    """Round 5 is two rounds after the drift; without a true flag, round 6 repeats nothing."""
    assert figures(a_run(), "found", "false_alarms", tolerance=tolerance) == [found, alarms]


def test_a_client_that_is_asked_after_the_tolerance_alone_was_not_asked():
    run = a_run({5: [0]}, {}, [(3, 0, "sudden", 0, 1)])
    assert figures(run, "never_asked", tolerance=2) == [0]
    assert figures(run, "never_asked", "recall_asked", "recall_all", tolerance=1) == [1, None, 0.0]


def test_each_drift_of_a_client_has_its_own_flag():
    """The second begins in round 5; the flag of round 5 finds it, and that of round 6 repeats it."""
    drifts = [(3, 0, "sudden", 0, 1), (5, 0, "sudden", 1, 0)]
    run = a_run({4: [0], 5: [0], 6: [0]}, {5: [0], 6: [0]}, drifts)
    found = scores(run)
    assert (found.found.tolist(), found.asked.tolist(), found.figures["repeats"]) == ([NEVER, 5], [4, 5], 1)
    first = scores(a_run({4: [0], 5: [0]}, {4: [0], 5: [0]}, drifts))
    assert (first.found.tolist(), first.delay_s.tolist(), first.figures["repeats"]) == (
        [4, 5],
        [20.0, 10.0],
        0,
    )


def test_drifts_of_a_client_that_begin_in_the_same_round_are_one():
    """Both data steps take effect with round 2, the first of step 5 or later."""
    drifts = [(4, 0, "sudden", 0, 1), (5, 0, "gradual", 1, 2)]
    run = a_run({2: [0]}, {2: [0]}, drifts, steps=[0, 1, 5, 6, 6, 6, 6, 6, 6, 6])
    assert figures(run, "drifts", "found") == [1, 1]
    assert scores(run).of_kind("gradual")["found"] == 1


def test_drifts_that_the_run_did_not_reach_are_none_of_it():
    assert figures(a_run(drifts=[*DRIFTS, (30, 0, "sudden", 1, 0)]), "drifts") == [3]


def test_drifts_and_flags_outside_of_the_scored_rounds_are_not_scored():
    """From round 4 on the drift of round 3 is none, and its flag of round 5 no false alarm either."""
    late = figures(a_run(), "drifts", "found", "false_alarms", "repeats", "decisions", first_round=4)
    assert late == [2, 0, 0, 1, 5]
    early = figures(a_run(), "drifts", "found", "never_asked", "decisions", last_round=4)
    assert early == [2, 0, 1, 4]  # that of round 4 was not yet asked about


def test_a_flag_before_the_scored_rounds_makes_later_ones_repeats():
    run = a_run({1: [0], 3: [0]}, {1: [0], 3: [0]}, [(1, 0, "sudden", 0, 1)])
    assert figures(run, "false_alarms", "repeats", first_round=2) == [0, 1]
    beyond = a_run({3: [0]}, {3: [0]}, [(1, 0, "sudden", 0, 1)])
    assert figures(beyond, "false_alarms", "repeats", first_round=2, tolerance=1) == [1, 0]


def test_delays_are_the_median_and_what_nine_in_ten_do_not_exceed():
    drifts = [(2, client, "sudden", 0, 1) for client in range(4)]
    run = a_run({2: [0, 1], 3: [2], 5: [3]}, {2: [0, 1], 3: [2], 5: [3]}, drifts)
    assert figures(run, "delay_rounds_median", "delay_rounds_90") == [0.5, 3.0]


def confusion(run, positive, **changes):
    return figures(run, "tp", "tn", "fp", "fn", positive=positive, **changes)


def test_decisions_should_be_flags_in_a_span_of_rounds_only():
    assert confusion(a_run(), (5, 6)) == [2, 4, 1, 1]
    assert confusion(a_run(), (0, 3)) == [0, 5, 3, 0]  # nobody has changed by then who was asked


def test_decisions_should_be_flags_in_the_span_of_a_kind_that_the_client_has_had():
    assert confusion(a_run(), {"sudden": (5, 5), "gradual": (2, 9)}) == [1, 4, 2, 1]
    assert confusion(a_run(), {"recurring": (0, 9)}) == [0, 5, 3, 0]


def test_a_client_counts_for_each_kind_that_it_has_had():
    drifts = [(3, 0, "sudden", 0, 1), (5, 0, "gradual", 1, 2)]
    run = a_run({4: [0], 6: [0], 8: [0]}, {}, drifts)
    spans = {"sudden": (4, 8), "gradual": (8, 8)}
    assert confusion(run, spans) == [0, 0, 0, 3]
    assert confusion(run, {"gradual": (4, 6)}) == [0, 2, 0, 1]


def test_a_client_that_is_back_at_its_concept_has_not_changed():
    run = a_run({4: [0], 6: [0]}, {4: [0], 6: [0]}, [(3, 0, "sudden", 4, 1), (5, 0, "sudden", 1, 4)])
    assert confusion(run, "changed") == [1, 0, 1, 0]


def test_a_change_that_concepts_do_not_show_is_one_for_good():
    drifts = [(3, 0, "mix", -1, -1), (4, 1, "sudden", 0, 1), (6, 0, "mix", -1, -1)]
    run = a_run({2: [0], 4: [0, 1], 9: [0, 1, 2]}, {9: [0, 2]}, drifts)
    assert confusion(run, "changed") == [1, 1, 1, 3]


def test_what_was_before_the_scored_rounds_is_no_change():
    drifts = [(1, 0, "sudden", 0, 1), (1, 1, "mix", -1, -1)]
    run = a_run({2: [0, 1]}, {}, drifts)
    for positive in ("changed", {"sudden": (0, 9), "mix": (0, 9)}):
        assert confusion(run, positive, first_round=2) == [0, 2, 0, 0]
        assert confusion(run, positive, first_round=1) == [0, 0, 0, 2]


def test_ratios_without_a_denominator_are_not_defined():
    quiet = figures(a_run({}, {}))
    undefined = [name for name, value in quiet.items() if value is None]
    assert undefined == [
        *("recall_asked", "delay_rounds_mean", "delay_rounds_median", "delay_rounds_90"),
        *("delay_s_median", "delay_s_90"),
        *("asked_s_median", "found_s_median", "false_alarms_per_1000", "undrifted_flagged"),
        *("accuracy", "precision", "recall", "f1"),
    ]
    assert (quiet["recall_all"], quiet["never_asked"]) == (0.0, 3)
    assert figures(a_run({2: [0]}, {}, []), "recall_all", "recall", "f1", "accuracy") == [
        None,
        None,
        None,
        1.0,
    ]


def a_comparison(*runs):
    measured = [Run(run, None, None, ()) for run in runs]
    return Comparison(runs[0].arm, measured, measured, is_reference=True)


def test_figures_of_an_arm_are_means_over_seeds_of_which_all_must_be_defined():
    quiet = a_detecting_run("global", 1, {2: [LATE]}, {}, DRIFTS)
    detection = detection_of([a_comparison(a_run(), quiet)], settings())
    found = detection.arms["global"]["watch"]
    assert (found.figures["found"].mean, found.figures["found"].per_seed) == (0.5, [1, 0])
    assert (found.figures["precision"].mean, found.figures["precision"].per_seed) == (None, [2 / 3, None])
    assert found.kinds["sudden"]["found"].per_seed == [1, 0]
    assert detection.as_json()["arms"]["global"]["watch"]["kinds"]["gradual"]["drifts"] == {
        "mean": 1.0,
        "ci95": None,
        "per_seed": [1, 1],
    }


def test_runs_without_detectors_have_no_figures():
    run = a_run()
    bare = ReportedRun("global", 0, {}, run.records, run.timing)
    empty = ReportedRun("global", 0, {**run.header, "detectors": {}}, run.records, run.timing)
    assert detection_of([a_comparison(bare)], settings()) is None
    assert detection_of([a_comparison(empty)], settings()) is None
