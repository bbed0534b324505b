import pytest

from experiments.planned_run import PlannedRun
from experiments.time_left import TimeLeft


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def runs(*arms, experiment="x", rounds=10):
    return [PlannedRun(experiment, arm, seed, rounds) for seed in (0, 1) for arm in arms]


def play(left, clock, run, rounds, round_s):
    left.begin(run)
    for _ in range(rounds):
        clock.now_s += round_s
        left.round_done()


def test_nothing_is_known_before_the_first_round(clock):
    left = TimeLeft(runs("a"), {}, clock)
    assert left.seconds is None
    assert left.fraction == 0.0


def test_rounds_so_far_tell_how_long_the_others_take(clock):
    planned = runs("a")
    left = TimeLeft(planned, {}, clock)
    play(left, clock, planned[0], 5, 2.0)
    assert left.seconds == pytest.approx((20 - 5) * 2.0)
    assert left.fraction == 0.25


def test_a_slow_arm_is_judged_by_its_own_rounds(clock):
    fast, slow, *others = planned = runs("fast", "slow")
    left = TimeLeft(planned, {}, clock)
    play(left, clock, fast, 10, 1.0)
    left.end()
    play(left, clock, slow, 10, 9.0)
    left.end()
    assert len(others) == 2
    assert left.seconds == pytest.approx(10 * 1.0 + 10 * 9.0)


def test_an_arm_that_has_not_run_is_taken_for_the_mean_of_its_experiments_others(clock):
    elsewhere = PlannedRun("y", "a", 0, 10)
    planned = [elsewhere, *runs("a", "b", "new")[:3]]
    left = TimeLeft(planned, {}, clock)
    for run, round_s in zip(planned, (50.0, 1.0, 3.0), strict=False):
        play(left, clock, run, 10, round_s)
        left.end()
    assert left.seconds == pytest.approx(10 * 2.0)


def test_runs_that_were_finished_earlier_tell_it_from_the_start(clock):
    done, todo = runs("a")
    left = TimeLeft([done, todo], {done: 40.0}, clock)
    assert left.seconds == pytest.approx(40.0)
    assert left.fraction == 0.0


def test_what_a_failed_run_did_not_play_is_not_left_to_do(clock):
    first, second = runs("a")
    left = TimeLeft([first, second], {}, clock)
    play(left, clock, first, 4, 1.0)
    left.end()
    assert left.fraction == 0.5
    assert left.seconds == pytest.approx(10.0)


def test_all_is_done_where_nothing_was_left(clock):
    [done, other] = runs("a")
    left = TimeLeft([done, other], {done: 1.0, other: 1.0}, clock)
    assert (left.fraction, left.seconds) == (1.0, 0.0)
