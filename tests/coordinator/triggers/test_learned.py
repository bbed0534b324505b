from types import SimpleNamespace

import numpy as np
import pytest

from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.triggers.base import Moved
from coordinator.triggers.learned import Learned, LearnedSettings
from emulator.messages import ArrayUpdates, Trigger
from emulator.storage.state_tree import from_bytes, to_bytes
from tests.fakes import a_view, one_hot

# Three thresholds, each tried for two events; the best is kept for three.
SHORT = LearnedSettings(thresholds=(0, 0.15, 0.3), explore_events=2, keep_events=3)

# The mean losses in the rounds of each event of an exploration in the order 0.15, 0.3, 0.
EXPLORED = [
    [1.0, 0.9, 0.5],  # a fall of 0.5
    [0.7, 0.6],  # and of 0.1: 0.15 has a reward of 0.3
    [2.0, 1.0],  # a fall of 1
    [1.0, 1.3],  # and a rise of 0.3: 0.3 has one of 0.35, the best
    [0.5, 9.0, 0.5],  # a rise that is gone at the end
    [3.0, 3.0],  # and no change: 0 has a reward of 0
]
STILL = [1.0, 1.0]  # an event without a fall


class Orders:
    """Stands for `View.rng`: the order of each exploration, in turn, and the streams that were asked for."""

    def __init__(self, *orders) -> None:
        self.orders = list(orders)
        self.asked: list[tuple] = []

    def __call__(self, *key):
        self.asked.append(key)
        return SimpleNamespace(permutation=lambda count: np.array(self.orders.pop(0))[:count])


def moved(rng=np.random.default_rng) -> Moved:
    """Centres 5 apart; one moved by 1, or by 2 since the last global clustering: shares of 0.2 and 0.4."""
    centers, previous, last_global = (np.array([[0.0], [at]]) for at in (5.0, 4.0, 7.0))
    return Moved(centers, np.arange(2), centers, previous, last_global, "euclidean", rng)


def updates(*losses, steps=1) -> ArrayUpdates:
    """The updates of a round, with their `loss_before`."""
    ones = np.ones(len(losses), dtype=np.int64)
    metrics = {"loss_before": np.array(losses, dtype=np.float64)}
    return ArrayUpdates(ones, ones, ones, ones * steps, np.zeros((len(losses), 1), dtype=np.float32), metrics)


def played(learned: Learned, events, rng) -> list[float | None]:
    """The threshold in force from each opening with drift, given the mean losses of the next rounds."""
    thresholds = []
    for losses in events:
        thresholds.append(learned.evaluate(moved(rng)).threshold)
        for loss in losses:
            learned.observe(updates(loss - 0.25, loss + 0.25))
    return thresholds


def test_each_threshold_is_tried_in_order_then_the_best_is_kept_then_all_are_tried_again():
    rng = Orders([1, 2, 0], [0, 2, 1])
    kept = [[9.0, 1.0]] * 3  # large falls that belong to no trial
    again = [STILL, STILL, [1.0, 0.75], STILL, [1.0, 0.75], [1.0, 0.75], *[STILL] * 3]
    thresholds = played(Learned(SHORT), EXPLORED + kept + again, rng)
    assert thresholds[:9] == [0.15, 0.15, 0.3, 0.3, 0, 0, 0.3, 0.3, 0.3]
    # Rewards of 0, 0.125 and 0.25: those of the first exploration do not count any more.
    assert thresholds[9:] == [0, 0, 0.3, 0.3, 0.15, 0.15, 0.15, 0.15, 0.15]
    assert rng.asked == [("learned",)] * 2


def test_drift_in_every_round_is_learned_from_as_an_event_has_two_rounds_or_more():
    # Falls of 0.25, 0.75 and 0.
    losses = [1.0, 0.75, 1.0, 0.25, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    learned = Learned(LearnedSettings(thresholds=(0, 0.5, 1), explore_events=1, keep_events=2))
    thresholds = played(learned, [[loss] for loss in losses], Orders([2, 1, 0]))
    assert thresholds == [1, 1, 0.5, 0.5, 0, 0, 0.5, 0.5, 0.5, 0.5]


def test_further_drift_before_the_second_round_is_of_the_same_event():
    settings = LearnedSettings(thresholds=(0, 1), explore_events=1)
    # Falls from 2 to 0.5, and to 0.75.
    trials = [[2.0], [1.5, 1.0, 0.5], [], [2.0], [0.75]]
    assert played(Learned(settings), [*trials, STILL], Orders([0, 1])) == [0, 0, 1, 1, 1, 0]
    assert played(Learned(settings), [*trials, STILL], Orders([1, 0])) == [1, 1, 0, 0, 0, 1]


def test_the_decision_is_that_of_a_shift_against_the_threshold_in_force():
    learned, rng = Learned(SHORT), Orders([1, 2, 0])
    logged = []
    for _ in range(12):  # two in each event
        logged.append(learned.evaluate(moved(rng)))
        learned.observe(updates(1.0))
    assert logged[::2] == logged[1::2]
    assert logged[::4] == [
        Trigger(1.0, 5.0, 0.15, 2, True),
        Trigger(1.0, 5.0, 0.3, 2, False),
        Trigger(1.0, 5.0, 0.0, 2, True),
    ]
    assert {type(value) for value in vars(logged[0]).values()} == {float, int, bool}
    added_up = Learned(SHORT.model_copy(update={"shift_from": "last_global"}))
    assert added_up.evaluate(moved(Orders([2]))) == Trigger(2.0, 5.0, 0.3, 2, True)


def best(*events, thresholds=(0, 1), order=(0, 1)) -> float | None:
    """The threshold that is kept after one event for each, given its rounds' updates."""
    learned = Learned(LearnedSettings(thresholds=thresholds, explore_events=1))
    rng = Orders(order)
    for rounds in events:
        learned.evaluate(moved(rng))
        for observed in rounds:
            learned.observe(observed)
    return learned.evaluate(moved(rng)).threshold


def test_of_equal_rewards_the_first_threshold_in_the_list_is_kept_whatever_the_order():
    falls = [[updates(2.0), updates(1.0)]] * 2
    assert best(*falls, thresholds=(0.5, 0.25), order=[1, 0]) == 0.5
    assert best(*falls, thresholds=(0.25, 0.5), order=[1, 0]) == 0.25


def test_no_fall_is_better_than_a_rise():
    assert best([updates(1.0), updates(1.5)], [updates(9.0)] * 2) == 1
    assert best([updates(1.0), updates(0.5)], [updates(9.0)] * 2) == 0


NOT_FINITE = [updates(np.inf, 1.0), updates(np.nan), updates(), updates(7.0, steps=0)]


@pytest.mark.parametrize("not_finite", NOT_FINITE)
def test_a_round_without_a_finite_mean_loss_is_ignored(not_finite):
    # Falls of 0.5 and of 0.25: neither the first nor the last round is the one that is ignored.
    rounds = [not_finite, updates(2.0), updates(1.5), not_finite]
    assert best(rounds, [updates(2.0), updates(1.75)]) == 0
    assert best([updates(2.0), updates(1.75)], rounds) == 1


@pytest.mark.parametrize("not_finite", NOT_FINITE)
def test_a_round_without_a_finite_mean_loss_is_not_one_of_the_two_of_an_event(not_finite):
    learned, rng = Learned(LearnedSettings(thresholds=(0, 1), explore_events=1)), Orders([0, 1])
    thresholds = []
    for observed in (not_finite, updates(1.0), not_finite, updates(1.0), updates(1.0)):
        thresholds.append(learned.evaluate(moved(rng)).threshold)
        learned.observe(observed)
    assert thresholds == [0, 0, 0, 0, 1]


def test_the_mean_is_over_the_updates_that_took_steps():
    first, last = updates(1.0, 3.0), updates(1.0, np.nan)
    last.num_steps[1] = 0
    # A fall from 2 to 1, in between falls of 0.75 and 1.25.
    assert best([first, last], [updates(1.0), updates(0.25)]) == 0
    assert best([first, last], [updates(2.0), updates(0.75)]) == 1


@pytest.mark.parametrize("stored_after", range(1, 20))
def test_a_stored_trigger_resumes_within_its_exploration_and_within_an_event(stored_after):
    # The same losses again, now with drift in every round.
    events = [*EXPLORED, *[[loss] for losses in EXPLORED for loss in losses]]
    whole = played(Learned(SHORT), events, Orders([1, 2, 0], [0, 1, 2]))
    rng = Orders([1, 2, 0], [0, 1, 2])
    learned, again = Learned(SHORT), Learned(SHORT)
    before = played(learned, events[:stored_after], rng)
    again.restore(from_bytes(to_bytes(learned.state())))
    assert before + played(again, events[stored_after:], rng) == whole


def test_orders_differ_between_explorations_and_repeat_with_the_seed():
    def orders(seed: int) -> list[float | None]:
        learned = Learned(LearnedSettings(explore_events=1, keep_events=1))
        return [played(learned, [STILL], a_view(seed=seed, round_=2 * event).rng)[0] for event in range(12)]

    first, second = orders(0)[:5], orders(0)[6:11]
    assert sorted(first) == sorted(second) == [0, 1 / 6, 1 / 3, 1 / 2, 2 / 3]
    assert first != second
    assert orders(0) == orders(0) != orders(1)


def test_fielding_passes_it_the_updates_and_asks_for_their_first_losses():
    fielding = Fielding(
        FieldingSettings(trigger={"kind": "learned", "thresholds": [0.25, 0.5], "explore_events": 1})
    )
    assert fielding.needs == {"loss_before"}
    assert Fielding(FieldingSettings()).needs == frozenset()
    reports, logged = one_hot(0, 0, 1, 1, of=2), []
    first = fielding.on_data(a_view(reports))
    fielding.on_updates(a_view(reports, updates=updates(9.0)))  # before any drift
    for round_ in range(3):
        fielding.on_data(a_view(reports, drifted=[0], assignment=first, round_=round_, triggers=logged))
        # Only the second threshold that is tried is followed by a fall.
        for loss in (1.0, 0.5) if round_ == 1 else (1.0, 1.0):
            fielding.on_updates(a_view(reports, updates=updates(loss)))
    assert sorted(trigger.threshold for trigger in logged[:2]) == [0.25, 0.5]
    assert logged[2].threshold == logged[1].threshold


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"thresholds": []}, "at least 1 item"),
        ({"thresholds": [0.5, 0.25, 0.5]}, "must differ from each other"),
        ({"thresholds": [-0.5]}, "greater than or equal to 0"),
        ({"thresholds": ["never"]}, "valid number"),
        ({"explore_events": 0}, "greater than or equal to 1"),
        ({"keep_events": 0}, "greater than or equal to 1"),
    ],
)
def test_thresholds_are_different_numbers_and_events_are_counted_from_one(settings, problem):
    with pytest.raises(ValueError, match=problem):
        LearnedSettings(**settings)
