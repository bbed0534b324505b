from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coordinator.adaptations import ClientView
from coordinator.adaptations.alone import Alone, AloneSettings
from coordinator.federation.method import RoundSettings
from emulator.arrays import Ints
from emulator.counts import samples_of_steps
from tests.coordinator.adaptations.views import Training, a_view


def test_the_steps_that_are_due_are_the_rate_times_the_rounds_rounded_down() -> None:
    training = Training()
    alone = Alone(AloneSettings(steps_per_round=0.29))
    served = [alone.adapt(a_view(rounds=rounds, train=training)).models[0, 0] for rounds in (3, 4, 100)]
    assert served == [0.0, 1.0, 29.0]  # 0.29 x 100 is 28.999999999999996


def test_by_default_each_client_takes_the_steps_of_the_federation() -> None:
    training, alone = Training(), Alone(AloneSettings())
    assert alone.adapt(a_view(rounds=3, steps_per_client=2.5, train=training)).models.tolist() == [[7.0]]
    work = alone.work(a_view([[1, 0]] * 2, rounds=3, steps_per_client=2.5))
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


def of_epochs(
    held: list[int], rounds: int, training: Training, clients: list[int] | None = None
) -> ClientView:
    """A view of 3 `clients`, of which 2 take part in a round with 2 epochs of short batches of 4."""
    settings = RoundSettings(1, 1, 4, 0.1, local_epochs=2, last="short")
    num_samples = np.array(held)
    steps = settings.steps_of(num_samples)
    view = a_view(
        [[count, 0] for count in held],
        clients=np.array(clients or [0, 1, 2]),
        scored=np.arange(3),
        rounds=rounds,
        local_steps=steps,
        batch_size=4,
        steps_per_client=2 / 3 * steps,
        train=training,
    )

    def samples(steps: Ints) -> np.ndarray:
        return samples_of_steps(steps, num_samples, 4, "short")

    return replace(view, samples=samples)


@pytest.mark.parametrize("times", [1, 10])
def test_of_epochs_each_client_takes_those_of_the_federation_over_what_it_holds(times: int) -> None:
    """Of 10, 7 and 1 samples an epoch has 3, 2 and 1 steps, so 2 x 2 / 3 of them are due in a round.

    In visits of 2 epochs, and what is due beyond these for an evaluation.
    """
    training, alone = Training(), Alone(AloneSettings(times=times))
    after_two = [times * steps for steps in (8, 16 / 3, 8 / 3)]
    served = alone.adapt(of_epochs([10, 7, 1], 2, training))
    assert served.models.ravel().tolist() == np.floor(after_two).tolist()
    if times == 1:
        assert training.steps == [[6, 4, 2], [2, 1, 0]]
    work = [alone.work(of_epochs([10, 7, 1], rounds, training)) for rounds in range(1, 4)]
    total = sum(of_round.trained_samples for of_round in work if of_round is not None)
    # 12, 8 and 4 steps are whole epochs: 4 of each client, of 10, 7 and 1 samples.
    assert np.array_equal(total, times * 4 * np.array([10.0, 7.0, 1.0]))


def test_of_epochs_no_step_is_lost_or_taken_twice_as_data_of_another_number_arrive() -> None:
    """It holds 10 samples for 2 rounds, of 4 steps each, 4 for 3, of 4 / 3, none, and 5 for 3, of 8 / 3.

    In rounds 2 to 4, floor(16 / 3) - floor(8 / 3) steps of the second kind are due: a visit, and one that a
    copy takes for each look. By round 5 it is another whole visit.
    """
    training, alone = Training(), Alone(AloneSettings())
    alone.data_changes(of_epochs([10], 2, training, [0]))
    assert training.steps == [[6], [2]]
    for _ in range(2):
        alone.adapt(of_epochs([4], 4, training, [0]))
    alone.data_changes(of_epochs([4], 5, training, [0]))
    assert training.steps[2:] == [[2], [1], [1], [2]]
    alone.data_changes(of_epochs([0], 6, training, [0]))
    assert alone.adapt(of_epochs([5], 9, training, [0])).models.tolist() == [[8 + 4 + 8]]
    assert training.steps[6:] == [[4], [4]]
