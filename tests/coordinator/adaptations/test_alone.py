from __future__ import annotations

import numpy as np

from coordinator.adaptations.alone import Alone, AloneSettings
from tests.coordinator.adaptations.views import Training, a_view


def test_the_steps_that_are_due_are_the_rate_times_the_rounds_rounded_down() -> None:
    training = Training()
    alone = Alone(AloneSettings(steps_per_round=0.29))
    served = [alone.adapt(a_view(rounds=rounds, train=training)).models[0, 0] for rounds in (3, 4, 100)]
    assert served == [0.0, 1.0, 29.0]  # 0.29 x 100 is 28.999999999999996


def test_by_default_each_client_takes_the_steps_of_the_federation() -> None:
    training, alone = Training(), Alone(AloneSettings())
    assert alone.adapt(a_view(rounds=3, steps_per_client=2.5, train=training)).models.tolist() == [[7.0]]
    work = alone.work(a_view([[1, 0]] * 2, rounds=3, steps_per_client=2.5, new_data=False))
    assert work is not None
    assert work.trained_samples.tolist() == [20.0, 20.0]  # 7 - 5 steps of 10 samples, in every round


def test_steps_are_taken_in_whole_visits_and_an_evaluation_is_of_a_copy() -> None:
    """Of 11 steps two visits of 4 are kept; the 3 others are taken anew for each evaluation."""
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    for _ in range(2):
        assert alone.adapt(a_view(rounds=11, local_steps=4, train=training)).models.tolist() == [[11.0]]
    assert alone.adapt(a_view(rounds=13, local_steps=4, train=training)).models.tolist() == [[13.0]]
    assert training.steps == [[4], [4], [3], [3], [4], [1]]
    assert training.taken == [[0], [4], [8], [8], [8], [12]]


def test_a_client_trains_all_that_is_due_on_what_it_held_before_its_data_change() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    both = a_view([[1, 0]] * 2, train=training)
    alone.data_changes(a_view([[1, 0]], rounds=2, scored=both.scored, train=training))
    assert alone.adapt(a_view([[0, 1]] * 2, rounds=3, train=training)).models.tolist() == [[3.0], [3.0]]
    assert training.steps == [[2], [1, 3]]


def test_a_client_that_held_nothing_does_not_make_up_for_it() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    alone.data_changes(a_view([[0, 0]], rounds=8, train=training))
    assert alone.adapt(a_view(rounds=10, train=training)).models.tolist() == [[2.0]]
    assert training.steps == [[2]]


def test_the_solver_keeps_its_state_from_visit_to_visit_until_the_data_change() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    alone.adapt(a_view(rounds=4, local_steps=2, train=training))
    alone.adapt(a_view(rounds=5, local_steps=2, train=training))
    alone.data_changes(a_view(rounds=5, local_steps=2, train=training))
    alone.adapt(a_view(rounds=6, local_steps=2, train=training))
    kept = [None if state is None else float(state["moment"][0, 0]) for state in training.states]
    assert kept == [None, 2.0, 4.0, 4.0, 0.0]


def test_a_client_is_found_by_its_id_among_those_that_are_scored() -> None:
    training, alone = Training(), Alone(AloneSettings(steps_per_round=1))
    scored = np.array([2, 5, 9])
    alone.data_changes(a_view(clients=np.array([5]), scored=scored, rounds=4, train=training))
    served = alone.adapt(
        a_view([[1, 0]] * 2, clients=np.array([9, 5]), scored=scored, rounds=6, train=training)
    )
    assert served.models.tolist() == [[6.0], [6.0]]
    assert training.steps == [[4], [6, 2]]
    assert served.plan.first().tolist() == [0, 1]
