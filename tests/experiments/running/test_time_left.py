import pytest

from experiments.running.plan import PlannedRun
from experiments.running.time_left import TimeLeft


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
    left.begun(run)
    for number in range(rounds):
        clock.now_s += round_s
        left.round_done(run, number + 1)


def test_nothing_is_known_before_the_first_round(clock):
    left = TimeLeft(runs("a"), {}, clock=clock)
    assert left.seconds is None
    assert left.fraction == 0.0


def test_rounds_so_far_tell_how_long_the_others_take(clock):
    planned = runs("a")
    left = TimeLeft(planned, {}, clock=clock)
    play(left, clock, planned[0], 5, 2.0)
    assert left.seconds == pytest.approx((20 - 5) * 2.0)
    assert left.fraction == 0.25


def test_a_slow_arm_is_judged_by_its_own_rounds(clock):
    fast, slow, *others = planned = runs("fast", "slow")
    left = TimeLeft(planned, {}, clock=clock)
    play(left, clock, fast, 10, 1.0)
    left.done(fast)
    play(left, clock, slow, 10, 9.0)
    left.done(slow)
    assert len(others) == 2
    assert left.seconds == pytest.approx(10 * 1.0 + 10 * 9.0)


def test_an_arm_that_has_not_run_is_taken_for_the_mean_of_its_experiments_others(clock):
    elsewhere = PlannedRun("y", "a", 0, 10)
    planned = [elsewhere, *runs("a", "b", "new")[:3]]
    left = TimeLeft(planned, {}, clock=clock)
    for run, round_s in zip(planned, (50.0, 1.0, 3.0), strict=False):
        play(left, clock, run, 10, round_s)
        left.done(run)
    assert left.seconds == pytest.approx(10 * 2.0)


def test_runs_finished_earlier_give_an_estimate_from_the_start(clock):
    done, todo = runs("a")
    left = TimeLeft([done, todo], {done: 40.0}, clock=clock)
    assert left.seconds == pytest.approx(40.0)
    assert left.fraction == 0.0


def test_what_a_failed_run_did_not_play_is_not_left_to_do(clock):
    first, second = runs("a")
    left = TimeLeft([first, second], {}, clock=clock)
    play(left, clock, first, 4, 1.0)
    left.drop(first)
    assert left.fraction == 0.5
    assert left.seconds == pytest.approx(10.0)


def test_all_is_done_where_nothing_was_left(clock):
    [done, other] = runs("a")
    left = TimeLeft([done, other], {done: 1.0, other: 1.0}, clock=clock)
    assert (left.fraction, left.seconds) == (1.0, 0.0)


# -- several at once ----------------------------------------------------------------------------------------


def test_the_work_that_remains_is_shared_out_over_the_runs_at_work_at_once(clock):
    one, two, *_ = planned = runs("a", "b")
    left = TimeLeft(planned, {}, at_once=2, clock=clock)
    left.begun(one)
    left.begun(two)
    clock.now_s = 4.0
    left.round_done(one, 4)  # one second a round
    clock.now_s = 6.0
    left.round_done(two, 2)  # three seconds a round
    assert left.seconds == pytest.approx((6 * 1.0 + 8 * 3.0 + 10 * 1.0 + 10 * 3.0) / 2)
    assert left.fraction == pytest.approx(6 / 40)


def test_no_less_is_left_than_the_longest_run_takes_alone(clock):
    fast, slow = planned = runs("fast", "slow")[:2]
    left = TimeLeft(planned, {}, at_once=8, clock=clock)
    left.begun(fast)
    left.begun(slow)
    clock.now_s = 5.0
    left.round_done(fast, 9)
    left.round_done(slow, 1)
    assert left.seconds == pytest.approx(9 * 5.0)


def test_rounds_that_were_not_reported_one_by_one_count_like_those_that_were(clock):
    one, two = planned = runs("a")
    left = TimeLeft(planned, {}, at_once=2, clock=clock)
    left.begun(one)
    left.begun(two)
    clock.now_s = 6.0
    left.round_done(one, 3)
    left.round_done(two, 3)
    left.round_done(two, 3)  # reported again, it changes nothing
    assert left.fraction == pytest.approx(6 / 20)
    assert left.seconds == pytest.approx(7 * 2.0)
    clock.now_s = 20.0
    left.done(one)  # seven rounds more, not reported before
    assert left.fraction == pytest.approx(13 / 20)
    assert left.seconds == pytest.approx(7 * 2.0)


def test_what_an_earlier_command_stored_is_neither_done_nor_left_to_do_here(clock):
    [run, _] = runs("a")
    left = TimeLeft([run], {}, clock=clock)
    left.begun(run)
    left.resumed(run, 6)
    assert (left.fraction, left.seconds) == (0.0, None)
    clock.now_s = 3.0
    left.round_done(run, 7)
    assert left.fraction == pytest.approx(1 / 4)
    assert left.seconds == pytest.approx(3 * 3.0)


@pytest.mark.parametrize(("stored", "fraction"), [(None, 0.0), (4, 0.2), (2, 0.1)])
def test_a_lost_run_has_what_its_checkpoint_lacks_to_do_again(clock, stored, fraction):
    lost, other = runs("a")
    left = TimeLeft([lost, other], {}, at_once=2, clock=clock)
    play(left, clock, lost, 5, 2.0)
    assert left.fraction == pytest.approx(0.25)
    left.begun(lost)
    if stored is not None:
        left.resumed(lost, stored)
    assert left.fraction == pytest.approx(fraction)
    assert left.seconds == pytest.approx(10 * 2.0)  # the other one
    left.drop(other)
    assert left.seconds == pytest.approx((10 - (stored or 0)) * 2.0)


def test_the_time_a_run_was_away_is_no_rounds(clock):
    [run, _] = runs("a")
    left = TimeLeft([run], {}, clock=clock)
    play(left, clock, run, 5, 2.0)
    clock.now_s += 1000.0
    left.begun(run)
    left.resumed(run, 5)
    assert left.seconds == pytest.approx(5 * 2.0)


def test_a_lost_run_that_an_earlier_command_began_counts_only_what_is_done_here(clock):
    [run, _] = runs("a")
    left = TimeLeft([run], {}, clock=clock)
    left.begun(run)
    left.resumed(run, 6)
    left.round_done(run, 9)
    assert left.fraction == pytest.approx(3 / 4)
    left.begun(run)
    left.resumed(run, 8)
    assert left.fraction == pytest.approx(2 / 4)
    left.begun(run)
    left.resumed(run, 2)  # the newer checkpoint was damaged
    assert left.fraction == 0.0
    left.done(run)
    assert (left.fraction, left.seconds) == (1.0, 0.0)


def test_the_time_of_rounds_within_a_nominal_round_counts_with_it(clock):
    (run, _) = runs("a")
    left = TimeLeft([run], {}, clock=clock)
    left.begun(run)
    for rounds in (0, 0, 1, 1, 2):
        clock.now_s += 1.0
        left.round_done(run, rounds)
    assert left.seconds == pytest.approx((10 - 2) * 2.5)
