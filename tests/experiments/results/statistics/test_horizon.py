import pytest

from experiments.results.many_runs.directories import reduced
from experiments.results.statistics.horizon import (
    common_horizon,
    event_rounds,
    is_static,
    seconds_per_round,
)
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from tests.experiments.synthetic_runs import a_record, a_run


def a_horizon(runs, **settings):
    return common_horizon(runs, [accuracy_curve(run, 1) for run in runs], **settings)


def rounds_of(arm, count, duration_s=10.0, evaluate_every=1, seed=0):
    """A run of `count` equal rounds; data arrive every ten, and every `evaluate_every`-th is evaluated."""
    run = a_run(arm, seed, [0.5] * count)
    run.records[:] = [
        a_record(
            number,
            opened_s=duration_s * number,
            closed_s=duration_s * (number + 1),
            accuracy=0.5 if (number + 1) % evaluate_every == 0 else None,
        )
        for number in range(count)
    ]
    return run


def test_the_horizon_is_where_the_first_run_was_evaluated_for_the_last_time():
    horizon = a_horizon([rounds_of("global", 100), rounds_of("slow", 90, seed=3)])
    assert horizon.horizon_s == 900.0
    assert horizon.set_by == ("slow", 3)
    assert horizon.ended_first() == "slow, seed 3, ended there"


def test_an_event_of_a_nominal_round_took_effect_at_the_first_opening_at_or_after_its_instant():
    runs = [rounds_of("global", 30), rounds_of("slow", 12, 25.0)]
    horizon = a_horizon(runs, event_rounds=[3, 8, 40], seconds_per_round=20.0)
    assert [horizon.events_s(run) for run in runs] == [[60.0, 160.0], [75.0, 175.0]]
    assert [horizon.event_s(run) for run in runs] == [60.0, 75.0]
    assert reduced(runs[1], None, 1, [3, 8, 40], 20.0).events_s == [75.0, 175.0]
    assert horizon.as_json()["seconds_per_round"] == 20.0
    assert "seconds_per_round" not in a_horizon(runs).as_json()


@pytest.mark.parametrize("value", [None, "300", True, 0, -1.0, float("inf"), float("nan")])
def test_seconds_of_a_nominal_round_that_are_no_positive_number_are_none(value):
    assert seconds_per_round({"round": {"seconds_per_round": value}}) is None
    assert seconds_per_round({"round": value}) is seconds_per_round({}) is None


def test_a_horizon_that_is_asked_for_is_kept_where_every_run_gets_there():
    horizon = a_horizon([rounds_of("global", 100), rounds_of("slow", 92)], asked_s=910.0)
    assert (horizon.horizon_s, horizon.set_by, horizon.warnings()) == (910.0, None, [])


def test_the_comparison_starts_with_the_latest_first_evaluation():
    runs = [rounds_of("global", 100), rounds_of("slow", 100, evaluate_every=2)]
    assert a_horizon(runs).start_s == 20.0


def test_a_horizon_short_of_what_was_asked_is_warned_of_with_the_run_that_ended():
    warnings = a_horizon([rounds_of("global", 100)], asked_s=2_000.0).warnings()
    assert warnings == [
        "the horizon is 16.7 min less than the 33.3 min of report.horizon_s: global, seed 0, ended there"
    ]


def test_a_horizon_under_nine_tenths_of_the_longest_run_is_warned_of():
    assert a_horizon([rounds_of("global", 100), rounds_of("slow", 111)]).warnings() == []
    warnings = a_horizon([rounds_of("global", 100), rounds_of("slow", 112)]).warnings()
    assert warnings == [
        "the horizon is 89 % of the longest run (18.7 min): what came later is not in the tables"
    ]


def test_arms_that_reach_other_data_by_the_horizon_are_warned_of():
    even = a_horizon([rounds_of("global", 100), rounds_of("slow", 91, 11.0)])
    assert even.steps == {"global": 10.0, "slow": 9.0}
    assert even.warnings() == []
    warnings = a_horizon([rounds_of("global", 100), rounds_of("slow", 80, 12.5)]).warnings()
    assert warnings == [
        "arms reach between 8 and 10 data steps by the horizon: they were compared on different data"
    ]


def test_all_steps_of_static_data_are_the_same_data():
    static = a_horizon([rounds_of("global", 100), rounds_of("slow", 80, 12.5)], is_static=True)
    assert static.steps == {"global": 1.0, "slow": 1.0}
    assert static.warnings() == []
    assert is_static({"trace": {"static": True}})
    assert not is_static({"trace": {"static": True, "changes": [{"what": "own_swap"}]}})
    assert not is_static({"trace": {"source": "file"}})


def test_the_data_steps_of_an_arm_are_the_median_over_its_seeds():
    runs = [rounds_of("global", 100, 10.0 + seed, seed=seed) for seed in range(3)]
    assert a_horizon(runs).steps == {"global": 9.0}  # 100, 90 and 83 rounds: 10, 9 and 9 steps
    assert a_horizon(runs, asked_s=550.0).steps == {"global": 5.0}


def test_evaluations_far_apart_are_warned_of():
    assert a_horizon([rounds_of("global", 100, evaluate_every=2)]).warnings() == []
    warnings = a_horizon([rounds_of("global", 99, evaluate_every=3)]).warnings()
    assert warnings == ["evaluations lie up to 30.0 s apart: times are no finer than that"]


def test_evaluations_after_the_horizon_may_lie_far_apart():
    run = rounds_of("global", 200)
    run.records[110:150] = [a_record(number, accuracy=None) for number in range(110, 150)]
    assert a_horizon([run], asked_s=1_050.0).widest_gap_s == 10.0


def test_runs_without_a_stretch_in_common_are_warned_of():
    runs = [rounds_of("global", 10), rounds_of("slow", 10, 200.0)]
    assert a_horizon(runs).warnings()[-1] == (
        "some run has no evaluation before the horizon: there is no mean accuracy"
    )


def test_an_event_falls_when_its_round_opens_in_a_run():
    runs = [rounds_of("global", 100), rounds_of("slow", 100, 12.0)]
    horizon = a_horizon(runs, event_rounds=(20, 60))
    assert [horizon.event_s(run) for run in runs] == [200.0, 240.0]
    assert [horizon.events_s(run) for run in runs] == [[200.0, 600.0], [240.0, 720.0]]


def test_an_event_at_or_after_the_horizon_is_none():
    run = rounds_of("global", 100)
    assert a_horizon([run], event_rounds=(20,), asked_s=200.0).event_s(run) is None
    assert a_horizon([run], event_rounds=(20,), asked_s=200.0).events_s(run) == [200.0]
    assert a_horizon([run], event_rounds=(100,)).event_s(run) is None
    assert a_horizon([run]).event_s(run) is None


@pytest.mark.parametrize(
    ("trace", "rounds"),
    [
        ({"drift": {"kind": "label_mix", "events": [{"round": 90}, {"round": 50}]}}, [50, 90]),
        ({"drift": {"kind": "label_mix", "events": []}}, []),
        ({"drift": "none"}, []),
        ({"drift": {"events": [{"round": "x"}, 7, {}]}}, []),
        ({"drift": {"events": "x"}}, []),
        ({}, []),
    ],
)
def test_events_are_read_from_an_untrusted_configuration(trace, rounds):
    assert event_rounds({"trace": trace}) == rounds


def test_in_json_the_run_that_set_the_horizon_and_the_warnings_are_named():
    content = a_horizon([rounds_of("global", 100)], asked_s=2_000.0).as_json()
    assert content["set_by"] == {"arm": "global", "seed": 0}
    assert len(content["warnings"]) == 1
    assert list(content) == [
        *("start_s", "horizon_s", "asked_s", "set_by", "longest_s"),
        *("event_rounds", "steps", "widest_gap_s", "warnings"),
    ]
