import numpy as np

from coordinator.assignment import Assignment
from coordinator.memories.claimed import Claimed, ClaimedSettings
from emulator.messages import SampleRanges
from tests.fakes import a_view, ints


def view_of(members: list, step: int, num_models: int = 2, expired: int = -1):
    """At each step t two samples reach client c: the table rows 100 c + 2 t and 100 c + 2 t + 1.

    Samples that arrived up to step `expired` are no longer held.
    """
    columns = np.array(members)
    assignment = Assignment.moved(columns, num_models)

    def arrived(ids, first, last):
        oldest = max(first, expired + 1)
        return SampleRanges.one_each(100 * ids + 2 * oldest, 100 * ids + 2 * max(last + 1, oldest))

    return a_view(
        num_clients=len(columns),
        assignment=assignment,
        step=step,
        model_ids=range(num_models),
        arrived=arrived,
    )


def claimed_over(steps: list, num_models: int = 2, window: int | None = None):
    """A memory that claimed for these members, step by step, and its last view."""
    memory = Claimed(ClaimedSettings(window=window))
    for step, members in enumerate(steps):
        view = view_of(members, step, num_models)
        memory.claim(view)
    return memory, view


def trained(memory, clients, view) -> list[tuple[int, int, list[int]]]:
    client, model, samples = memory.rows(clients, view)
    ranges = [samples.first[samples.offsets[row] : samples.offsets[row + 1]] for row in range(len(samples))]
    return [(int(c), int(m), first.tolist()) for c, m, first in zip(client, model, ranges, strict=True)]


def test_a_client_that_moved_on_keeps_training_its_former_model_on_its_former_samples():
    # Client 1 moves from model 0 to model 1 at step 1; client 0 stays.
    memory, view = claimed_over([[0, 0], [0, 1]])
    assert trained(memory, ints(0, 1), view) == [(0, 0, [0, 2]), (1, 0, [100]), (1, 1, [102])]


def test_only_participants_train():
    memory, view = claimed_over([[0, 0], [0, 1]])
    assert trained(memory, ints(1), view) == [(1, 0, [100]), (1, 1, [102])]


def test_a_model_without_members_does_not_train_but_keeps_its_claims():
    memory, view = claimed_over([[0, 0], [1, 1]])
    assert trained(memory, ints(0, 1), view) == [(0, 1, [2]), (1, 1, [102])]
    # Model 0 has a member again: the samples of step 0 are trained on again.
    view = view_of([0, 1], step=2)
    memory.claim(view)
    assert trained(memory, ints(0, 1), view) == [
        (0, 0, [0, 4]),
        (0, 1, [2]),
        (1, 0, [100]),
        (1, 1, [102, 104]),
    ]


def test_each_step_is_a_range_of_its_own_and_all_samples_have_equal_weight():
    memory, view = claimed_over([[0], [0], [0]])
    samples = memory.rows(ints(0), view)[2]
    assert (samples.first.tolist(), samples.last.tolist()) == ([0, 2, 4], [2, 4, 6])
    assert samples.weight.tolist() == [1, 1, 1]


def test_claiming_again_replaces_the_claims_of_this_step_alone():
    memory, _ = claimed_over([[0, 0], [0, 1]])
    view = view_of([1, 0], step=1)
    memory.claim(view)
    assert trained(memory, ints(0, 1), view) == [(0, 0, [0]), (0, 1, [2]), (1, 0, [100, 102])]


def test_a_member_of_several_models_claims_for_each_of_them():
    memory, view = claimed_over([[[0, -1], [1, 0]]])
    assert trained(memory, ints(0, 1), view) == [(0, 0, [0]), (1, 0, [100]), (1, 1, [100])]


def test_claims_out_of_the_window_are_forgotten():
    memory, view = claimed_over([[0], [0], [1], [0]], window=2)
    assert trained(memory, ints(0), view) == [(0, 0, [6])]
    assert memory.samples(ints(0), 1, view).rows(0).tolist() == [4, 5]


def test_claims_pass_to_successors_and_die_with_a_model_that_has_none():
    memory, _ = claimed_over([[0, 1, 2, 3]], num_models=4)
    # Models 0 and 2 merge into row 0, model 1 has no successor, model 3 becomes row 2; row 1 is new.
    merge = Assignment(
        mixing=np.array([[0.5, 0, 0.5, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]),
        extra=np.zeros((1, 2), dtype=np.float32),
        successor=ints(0, -1, 0, 2),
        members=ints(0, 1, 0, 2)[:, None],
    )
    memory.models_changed(merge)
    view = view_of([0, 1, 0, 2], step=0, num_models=3)
    counts = [memory.samples(np.arange(4), model, view).counts().tolist() for model in range(3)]
    assert counts == [[2, 0, 2, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
    assert trained(memory, np.arange(4), view) == [(0, 0, [0]), (2, 0, [200]), (3, 2, [300])]


def test_a_model_without_members_still_has_its_samples():
    memory, view = claimed_over([[0, 0], [1, 1]])
    assert memory.samples(ints(0, 1), 0, view).counts().tolist() == [2, 2]


def test_claims_whose_samples_all_expired_train_nothing():
    memory, _ = claimed_over([[0, 1], [1, 1]])
    view = view_of([1, 0], step=1, expired=0)
    memory.claim(view)
    assert trained(memory, ints(0, 1), view) == [(0, 1, [2]), (1, 0, [102])]


def test_without_claims_no_client_trains():
    memory = Claimed(ClaimedSettings())
    assert trained(memory, ints(0, 1), view_of([0, 1], step=0)) == []


def test_what_arrived_at_steps_without_a_round_is_claimed_with_the_next_arrivals():
    # Two data steps have passed between two openings: client 1 moved at the second of these.
    memory, _ = claimed_over([[0, 0]])
    view = view_of([0, 1], step=2)
    memory.claim(view)
    memory.claim(view)
    assert trained(memory, ints(0, 1), view) == [(0, 0, [0, 2, 4]), (1, 0, [100]), (1, 1, [102, 104])]
    recent = Claimed(ClaimedSettings(window=2))
    for step in (0, 3):
        recent.claim(view_of([0, 1], step=step))
    assert trained(recent, ints(0), view_of([0, 1], step=3)) == [(0, 0, [4, 6])]
