from __future__ import annotations

import numpy as np

from coordinator.adaptations.alone import Alone, AloneSettings
from tests.coordinator.adaptations.views import Training, a_view


def test_the_steps_that_are_due_add_up_to_the_rate_times_the_rounds_rounded_down() -> None:
    training = Training()
    alone = Alone(AloneSettings(steps_per_round=0.29))
    for rounds in range(1, 101):
        alone.adapt(a_view(rounds=rounds, train=training))
    assert sum(steps for (steps,) in training.steps) == 29  # 0.29 x 100 is 28.999999999999996
    assert {steps for (steps,) in training.steps} == {1}


def test_by_default_each_client_takes_the_steps_of_the_federation() -> None:
    training, alone = Training(), Alone(AloneSettings())
    assert alone.adapt(a_view(rounds=3, steps_per_client=2.5, train=training)).models.tolist() == [[7.0]]
    work = alone.work(a_view([[1, 0]] * 2, rounds=3, steps_per_client=2.5, new_data=False))
    assert work is not None
    assert work.trained_samples.tolist() == [20.0, 20.0]  # 7 - 5 steps of 10 samples, in every round


def test_a_client_trains_on_what_it_held_before_its_data_change_and_not_twice() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    both = a_view([[1, 0]] * 2, train=training)
    alone.data_changes(a_view([[1, 0]], rounds=2, scored=both.scored, train=training))
    alone.adapt(a_view([[0, 1]] * 2, rounds=3, train=training))
    alone.adapt(a_view([[0, 1]] * 2, rounds=3, train=training))
    assert training.steps == [[2], [1, 3]]


def test_a_client_that_held_nothing_does_not_make_up_for_it() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    alone.data_changes(a_view([[0, 0]], rounds=8, train=training))
    assert alone.adapt(a_view(rounds=10, train=training)).models.tolist() == [[2.0]]
    assert training.steps == [[2]]


def test_the_solver_keeps_its_state_until_the_data_change() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    alone.adapt(a_view(rounds=1, train=training))
    alone.adapt(a_view(rounds=3, train=training))
    alone.data_changes(a_view(rounds=4, train=training))
    alone.adapt(a_view(rounds=5, train=training))
    kept = [None if state is None else float(state["moment"][0, 0]) for state in training.states]
    assert kept == [None, 1.0, 3.0, 0.0]


def test_a_client_is_found_by_its_id_among_those_that_are_scored() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    scored = np.array([2, 5, 9])
    alone.adapt(a_view(clients=np.array([5]), scored=scored, rounds=4, train=training))
    served = alone.adapt(
        a_view([[1, 0]] * 2, clients=np.array([9, 5]), scored=scored, rounds=4, train=training)
    )
    assert served.models.tolist() == [[4.0], [4.0]]
    assert training.steps == [[4], [4, 0]]
    assert served.plan.first().tolist() == [0, 1]
