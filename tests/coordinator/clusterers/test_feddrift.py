import numpy as np

from coordinator.clusterers.feddrift import FedDrift, FedDriftSettings
from coordinator.view import ClaimedBy
from tests.coordinator.clusterers.scored import Story

ALIKE = [[0.9, 0.9], [0.9, 0.9]]


def a_story(clients: int, *, window: bool = False, **settings) -> Story:
    return Story(FedDrift(FedDriftSettings(**settings)), clients, window=window).start()


def two_isolated(clients: int = 4, **settings) -> Story:
    """The last two clients drifted at data step 2, each to a model of its own: rows 1 and 2."""
    story = a_story(clients, **settings)
    story.step([[0.9]] * clients)
    story.step([[0.9]] * (clients - 2) + [[0.2], [0.3]])
    assert story.rows == [0] * (clients - 2) + [1, 2]
    return story


def one_isolated(**options) -> Story:
    """The second of two clients drifted at data step 2; the models were trained to [0, 0] and [3, 6]."""
    story = a_story(2, **options)
    story.step([[0.9], [0.9]])
    story.step([[0.9], [0.1]])
    story.train([0, 0], [3, 6])
    return story


def test_each_client_that_drifts_gets_its_own_model():
    story = two_isolated()
    assert story.models == [[0, 0]] * 3
    assert story.claimed.tolist() == [4 * 100 + 4 * 100 + 2 * 100, 100, 100]


def test_models_that_are_alike_are_merged_a_step_later_by_their_samples():
    story = two_isolated()
    # Client 0 joins row 1 before the merge at data step 4.
    story.step([[0, 0.9, 0], [0.9, 0, 0], [0, 0.9, 0], [0, 0, 0.9]])
    assert story.claimed[1:].tolist() == [300, 200]
    story.train([1, 1], [5, 0], [10, 20])
    assignment = story.step(
        # Client 2 moves to row 2, so that 300 + 100 samples are of row 1 now, and 200 + 200 of row 2.
        [[0, 0.9, 0.8], [0.9, 0, 0], [0, 0.8, 0.9], [0, 0.85, 0.9]],
        # Model 1 on row 2: (200 * .85 + 80 + 85) / 400 = .8375; model 2 on row 1: (300 * .85 + 80) / 400.
        across=[[0.9, 0, 0], [0, 0.9, 0.85], [0, 0.85, 0.9]],
    )
    assert assignment is not None
    assert assignment.successor.tolist() == [0, 1, 1]
    assert assignment.mixing.tolist() == [[1, 0, 0], [0, 0.5, 0.5]]
    assert story.models == [[1, 1], [7.5, 10]]
    assert story.rows == [1, 0, 1, 1]
    # Claims are added, then the newest arrivals of its three members.
    assert story.claimed[1] == 300 + 200 + 3 * 100


def test_three_models_that_are_alike_become_the_lowest_in_one_assignment():
    story = two_isolated(3)
    story.train([1, 0], [2, 0], [9, 0])
    # Client 0 alone was on row 0 in the last step, but it holds all older data.
    weights = np.array([300 + 300 + 100 + 100, 100 + 100, 100 + 100]) / 1200
    story.step(np.full((3, 3), 0.85) + 0.05 * np.eye(3), across=np.full((3, 3), 0.9))
    assert story.rows == [0, 0, 0]
    assert np.allclose(story.models, [[weights @ [1, 2, 9], 0]])


def test_models_alike_on_what_is_claimed_stay_apart_when_the_newest_arrivals_tell_them_apart():
    story = one_isolated()
    # Model 0 on row 1: (100 * .85 + 50) / 200 = .675, which is .225 below model 1.
    assert story.step([[0.9, 0.5], [0.5, 0.9]], across=[[0.9, 0.85], [0.85, 0.9]]) is None


def test_the_models_of_this_step_are_neither_offered_nor_merged():
    story = a_story(3)
    story.step([[0.9], [0.9], [0.9]])
    story.requests.clear()
    story.step([[0.9], [0.1], [0.1]])
    assert story.requests == [([0, 1, 2], [0], "arrived")]
    story.requests.clear()
    story.step([[0.9, 0, 0], [0, 0.9, 0], [0, 0, 0.9]])
    assert story.requests == [
        ([0, 1, 2], [0, 1, 2], "arrived"),
        *(([0, 1, 2], [0, 1, 2], ClaimedBy(row)) for row in range(3)),
    ]


def test_models_are_compared_on_so_many_samples():
    story = two_isolated(merge_samples=50)
    story.step([[0.9, 0, 0]] * 2 + [[0, 0.9, 0], [0, 0, 0.9]])
    assert story.limits[-4:] == [None, 50, 50, 50]


def test_an_isolated_client_is_measured_against_its_accuracy_at_the_drift():
    story = two_isolated()
    # 0.25 is far below the 0.9 from before the drift, but near the 0.3 that it fell to.
    story.step([[0.9, 0, 0]] * 2 + [[0, 0.85, 0], [0, 0, 0.25]])
    assert story.rows == [0, 0, 1, 2]
    # 0.7 is far below the 0.85 of the last step, though far above the 0.2 at the drift.
    story.step([[0.9, 0, 0]] * 2 + [[0, 0.7, 0], [0, 0, 0.25]])
    assert story.rows == [0, 0, 3, 2]


def test_a_concept_that_returns_goes_back_to_its_old_model():
    story = a_story(2)
    story.step([[0.9], [0.9]])
    story.step([[0.9], [0.1]])
    story.step([[0.9, 0], [0, 0.9]])
    story.step([[0.9, 0], [0.9, 0]])
    assert story.rows == [0, 0]
    assignment = story.step([[0.9, 0], [0, 0.9]])
    assert assignment is not None
    assert not assignment.changes_models
    assert story.rows == [0, 1]


def test_with_a_window_a_model_that_nobody_used_ends_a_step_later():
    story = a_story(2, window=True)
    story.step([[0.9], [0.9]])
    story.step([[0.9], [0.1]])
    story.step([[0.9, 0], [0, 0.9]])
    story.step([[0.9, 0], [0.9, 0]])
    assert story.claimed.tolist() == [200, 0]
    story.requests.clear()
    assignment = story.step([[0.9, 0], [0.9, 0]])
    assert assignment is not None
    assert assignment.successor.tolist() == [0, -1]
    assert len(story.bank) == 1
    assert story.requests == [([0, 1], [0], "arrived")]


def test_a_model_whose_claims_have_expired_is_offered_and_compared_on_the_newest_arrivals_of_its_members():
    story = two_isolated()
    story.claimed[1] = 0
    story.train([0, 0], [3, 0], [0, 3])
    story.requests.clear()
    story.step(
        [[0.9, 0, 0]] * 2 + [[0, 0.9, 0.85], [0, 0.85, 0.9]],
        across=[[0.9, 0, 0], [0, 0, 0.9], [0, 0, 0.9]],
    )
    assert [(models, samples) for _, models, samples in story.requests] == [
        ([0, 1, 2], "arrived"),
        ([0, 1, 2], ClaimedBy(0)),
        ([0, 1, 2], ClaimedBy(2)),
    ]
    assert story.rows == [0, 0, 1, 1]
    # 100 samples are of row 1, 100 + 100 of row 2.
    assert np.allclose(story.models, [[0, 0], [1, 2]])


def test_a_model_whose_claims_have_expired_is_not_compared_while_its_members_are_offline():
    story = two_isolated()
    story.claimed[1] = 0
    story.requests.clear()
    story.step([[0.9, 0, 0]] * 2 + [[0, 0.9, 0], [0, 0, 0.9]], offline=[2])
    assert [models for _, models, _ in story.requests] == [[0, 1, 2], [0, 2], [0, 2]]
    assert story.rows == [0, 0, 1, 2]


def test_with_a_window_a_merge_weighs_the_claims_in_it_and_the_newest_arrivals():
    story = a_story(3, window=True)
    story.step([[0.9], [0.9], [0.9]])
    story.step([[0.9], [0.9], [0.1]])
    story.train([0, 0], [3, 6])
    assert story.claimed.tolist() == [200, 100]
    # Client 1 moves to row 1: 200 + 100 samples against 100 + 200.
    story.step([[0.9, 0.85], [0.85, 0.9], [0.85, 0.9]], across=ALIKE)
    assert np.allclose(story.models, [[1.5, 3]])


def test_a_client_that_is_offline_keeps_its_model_also_when_that_is_merged():
    story = two_isolated()
    story.step(
        [[0.9, 0, 0]] * 2 + [[0, 0.9, 0.85], [0, 0, 0]],
        offline=[3],
        across=[[0.9, 0, 0], [0, 0.9, 0.9], [0, 0.9, 0.9]],
    )
    assert story.rows == [0, 0, 1, 1]


def test_a_model_whose_claims_nobody_online_holds_is_compared_on_its_newest_arrivals_but_weighs_all():
    story = one_isolated()
    story.out_of_reach = [1]
    story.step([[0.9, 0.85], [0.85, 0.9]], across=[[0.9, 0.0], [0.9, 0.9]])
    # 500 + 100 samples are of row 0, 100 + 100 of row 1.
    assert np.allclose(story.models, [[0.75, 1.5]])


def test_a_model_whose_data_nobody_online_holds_is_not_merged():
    story = one_isolated()
    story.out_of_reach = [1]
    assert story.step([[0.9, 0.85], [0.85, 0.9]], offline=[1], across=ALIKE) is None


def test_while_there_is_room_each_drifted_client_gets_a_model_then_they_stay_with_their_best():
    story = a_story(4, max_models=3)
    story.step([[0.9]] * 4)
    story.step([[0.9], [0.1], [0.1], [0.1]])
    assert story.rows == [0, 1, 2, 0]


def test_a_model_that_is_given_up_for_a_new_one_is_not_merged():
    story = a_story(2, max_models=2)
    story.step([[0.9], [0.9]])
    story.step([[0.9], [0.1]])
    story.step([[0.9, 0], [0.9, 0]])
    assignment = story.step([[0.9, 0], [0.2, 0]], across=ALIKE)
    assert assignment is not None
    assert assignment.successor.tolist() == [0, -1]
    assert assignment.mixing.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert story.rows == [0, 1]
    assert story.claimed[1] == 100


def test_a_new_model_may_start_as_a_copy_of_what_was_best_for_its_client():
    story = two_isolated(new_model_init="copy_best")
    story.step([[0.9, 0, 0]] * 2 + [[0, 0.9, 0], [0, 0, 0.9]])
    story.train([1, 1], [2, 2], [3, 3])
    story.step([[0.9, 0, 0], [0.2, 0.3, 0.1], [0, 0.9, 0], [0, 0.1, 0.2]])
    assert story.rows == [0, 3, 1, 4]
    assert story.models == [[1, 1], [2, 2], [3, 3], [2, 2], [3, 3]]


def test_a_late_response_within_the_data_step_of_an_isolation_does_not_end_it():
    story = two_isolated()
    # Clients 0 and 1 were offline when their data arrived, and respond later in the same step.
    for client, offline in ((0, [1, 2, 3]), (1, [0, 2, 3])):
        story.requests.clear()
        story.step([[0.9, 1, 1]] * 4, offline=offline, late=True)
        assert story.requests == [([client], [0], "arrived")]
        assert story.rows == [0, 0, 1, 2]


def test_a_late_response_does_not_merge_again_what_was_compared_in_its_data_step():
    story = two_isolated()
    arrived = [[0.9, 0, 0]] * 2 + [[0, 0.9, 0.85], [0, 0.85, 0.9]]
    alike = [[0.9, 0, 0], [0, 0.9, 0.9], [0, 0.9, 0.9]]
    story.step(arrived, offline=[1])
    story.requests.clear()
    assert story.step(arrived, offline=[0, 2, 3], across=alike, late=True) is None
    assert story.requests == [([1], [0, 1, 2], "arrived")]
    story.step(arrived, across=alike)
    assert story.rows == [0, 0, 1, 1]


def test_arrivals_claimed_before_any_response_do_not_count_twice_in_a_merge():
    story = one_isolated()
    assert story.step(None, offline=[0, 1]) is None
    assert story.claimed.tolist() == [500 + 100, 100 + 100]
    story.step([[0.9, 0.85], [0.85, 0.9]], across=ALIKE, late=True)
    assert np.allclose(story.models, [[0.75, 1.5]])


def test_rounds_without_arrivals_make_no_request():
    story = two_isolated()
    story.requests.clear()
    assert story.quiet_round() is None
    assert story.requests == []
