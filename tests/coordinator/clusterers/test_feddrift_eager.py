import pytest

from coordinator.clusterers.accuracy_drift import AccuracyDriftSettings
from coordinator.clusterers.feddrift_eager import FedDriftEager
from tests.coordinator.clusterers.scored import Story


def a_story(clients: int, seed: int = 0, window: bool = False, **settings) -> Story:
    part = FedDriftEager(AccuracyDriftSettings(**settings))
    return Story(part, clients, seed=seed, window=window).start()


def test_all_clients_start_on_one_model_without_a_request():
    story = a_story(3)
    assert story.rows == [0, 0, 0]
    assert story.models == [[0, 0]]
    assert story.requests == []


def test_two_clients_that_drift_share_one_new_model():
    story = a_story(4)
    assert story.step([[0.9], [0.9], [0.9], [0.9]]) is None
    story.train([5, 5])
    assignment = story.step([[0.9], [0.2], [0.85], [0.3]])
    assert assignment is not None
    assert story.rows == [0, 1, 0, 1]
    assert story.models == [[5, 5], [0, 0]]
    assert assignment.successor.tolist() == [0]


def test_a_fall_of_exactly_delta_is_no_drift():
    story = a_story(2, delta=0.1)
    story.step([[0.8], [0.8]])
    assert story.step([[0.7], [0.69]]) is not None
    assert story.rows == [0, 1]


def test_no_drift_is_found_at_the_first_arrivals_after_the_start():
    story = a_story(2)
    assert story.step([[0.9], [0.0]]) is None


def test_slow_falls_are_compared_step_by_step_and_are_no_drift():
    story = a_story(1)
    assignments = [story.step([[accuracy]]) for accuracy in (0.9, 0.82, 0.74, 0.66)]
    assert assignments == [None] * 4


def two_models(**settings) -> Story:
    """Of three clients, the last is on a second model."""
    story = a_story(3, **settings)
    story.step([[0.9], [0.9], [0.9]])
    story.step([[0.9], [0.9], [0.2]])
    assert story.rows == [0, 0, 1]
    return story


def test_the_best_of_all_models_is_chosen_and_ties_go_to_the_lowest_row():
    story = two_models()
    story.step([[0.9, 0.9], [0.8, 0.9], [0.9, 0.1]])
    assert story.rows == [0, 1, 0]


def test_a_concept_that_returns_goes_back_to_its_old_model():
    story = two_models()
    story.step([[0.9, 0.1], [0.9, 0.1], [0.9, 0.2]])
    assert story.rows == [0, 0, 0]
    assignment = story.step([[0.9, 0.1], [0.1, 0.9], [0.9, 0.2]])
    assert assignment is not None
    assert not assignment.changes_models
    assert story.rows == [0, 1, 0]


def test_without_a_window_a_model_that_nobody_uses_stays_on_offer():
    story = two_models()
    for _ in range(3):
        story.step([[0.9, 0.1]] * 3)
    assert story.requests[-1] == ([0, 1, 2], [0, 1], "arrived")
    assert len(story.bank) == 2


def test_with_a_window_a_model_without_members_and_claims_is_not_offered_and_ends():
    story = two_models(window=True)
    story.step([[0.9, 0.1]] * 3)
    assert story.claimed.tolist() == [300, 0]
    assignment = story.step([[0.8, 0.9]] * 3)
    assert story.requests[-1] == ([0, 1, 2], [0], "arrived")
    assert assignment is not None
    assert assignment.successor.tolist() == [0, -1]
    assert story.rows == [0, 0, 0]


def test_a_client_that_is_offline_keeps_its_model_and_what_is_known_of_it():
    story = two_models()
    story.step([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    assert story.step([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]], offline=[2]) is None
    assert story.rows == [0, 0, 1]
    # Measured against 0.9, from before it was offline.
    story.step([[0.9, 0.1], [0.9, 0.1], [0.3, 0.4]])
    assert story.rows == [0, 0, 2]


def test_a_client_without_new_samples_keeps_its_model():
    story = two_models()
    assert story.step([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]], empty=[2]) is None
    assert story.rows == [0, 0, 1]


def test_a_drifted_client_is_measured_against_its_accuracy_at_the_drift():
    story = two_models()
    # 0.5 is far below the 0.9 from before the drift, but above the 0.2 that it fell to.
    assert story.step([[0.9, 0.1], [0.9, 0.1], [0.2, 0.5]]) is None


def test_rounds_without_arrivals_make_no_request():
    story = a_story(2)
    story.step([[0.9], [0.9]])
    assert story.requests == [([0, 1], [0], "arrived")]
    assert story.quiet_round() is None
    assert len(story.requests) == 1


def test_a_new_model_may_start_as_a_copy_of_the_best_for_the_first_drifted_client():
    story = two_models(new_model_init="copy_best")
    story.step([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    story.train([5, 5], [6, 6])
    assignment = story.step([[0.9, 0.1], [0.2, 0.3], [0.4, 0.3]])
    assert assignment is not None
    assert story.rows == [0, 2, 2]
    assert story.models == [[5, 5], [6, 6], [6, 6]]
    assert assignment.extra.size == 0


@pytest.mark.parametrize("seed", range(6))
def test_without_room_the_model_unused_for_longest_is_given_up_and_its_claims_with_it(seed):
    story = two_models(seed=seed, max_models=3)
    story.step([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    story.step([[0.9, 0.1], [0.9, 0.1], [0.2, 0.3]])
    assert story.rows == [0, 0, 2]
    story.train([5, 5], [6, 6], [7, 7])
    # Row 1 has no members since the step before, row 2 none since now.
    story.step([[0.9, 0, 0], [0.9, 0, 0], [0.9, 0, 0.1]])
    assignment = story.step([[0.9, 0, 0], [0.3, 0.1, 0.1], [0.9, 0, 0]])
    assert assignment is not None
    assert assignment.successor.tolist() == [0, -1, 1]
    assert story.models == [[5, 5], [7, 7], [0, 0]]
    assert story.rows == [0, 2, 0]
    # All that row 2 claims, it claims since it was made.
    assert story.claimed[2] == 100


def recycled(seed: int) -> list[int]:
    """The successors when one of two models that lost their members in the same step is dropped."""
    story = a_story(3, seed=seed, max_models=3)
    story.step([[0.9], [0.9], [0.9]])
    story.step([[0.9], [0.9], [0.2]])
    story.step([[0.9, 0], [0.9, 0], [0, 0.9]])
    story.step([[0.9, 0], [0.2, 0], [0, 0.9]])
    assert story.rows == [0, 2, 1]
    story.step([[0.9, 0, 0], [0.9, 0, 0], [0.9, 0, 0]])
    assignment = story.step([[0.9, 0, 0], [0.2, 0, 0], [0.9, 0, 0]])
    assert assignment is not None
    return assignment.successor.tolist()


def test_among_models_left_in_the_same_step_chance_decides_and_the_seed_repeats_it():
    assert {tuple(recycled(seed)) for seed in range(8)} == {(0, -1, 1), (0, 1, -1)}
    assert recycled(0) == recycled(0)


def test_while_all_models_are_used_drifted_clients_stay_with_their_best():
    story = two_models(max_models=2)
    story.step([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    assert story.step([[0.9, 0.1], [0.4, 0.3], [0.1, 0.9]]) is None
    # What it has now is what the next step is compared with.
    assert story.step([[0.9, 0.1], [0.35, 0.3], [0.1, 0.9]]) is None


@pytest.mark.parametrize("delta", [0.0, -0.1, 1.5])
def test_delta_is_a_share_above_zero(delta):
    with pytest.raises(ValueError, match="delta"):
        AccuracyDriftSettings(delta=delta)
