import numpy as np
import pytest

from coordinator.clusterers.aue import Aue, AuePerClient, AueSettings
from coordinator.memories.claimed import Claimed, ClaimedSettings
from coordinator.view import ScoreResponse
from emulator.messages import SampleRanges, Scores
from tests.fakes import a_view


class Clients:
    """Two clients of two labels, with 30 and 10 samples; `errors` (2, M) are their mean squared errors."""

    def __init__(self, errors, counts=(30, 10), offline=()):
        self.errors = np.array(errors, dtype=np.float64)
        self.counts = np.array(counts)
        self.offline = offline
        self.requests = []

    def __call__(self, clients, models, samples, metrics, limit=None):
        assert (samples, metrics) == ("arrived", {"true_class_error"})
        self.requests.append(models.tolist())
        online = clients[~np.isin(clients, self.offline)]
        sums = self.errors[np.ix_(online, models)] * self.counts[online, None]
        return ScoreResponse(online, Scores(self.counts[online], true_class_error=sums))


def view_of(assignment, step, clients=None, changed=(0, 1)):
    return a_view(
        np.full((2, 2), 0.5),
        assignment=assignment,
        models=None if assignment is None else np.arange(2.0 * assignment.num_models).reshape(-1, 2) + 10,
        model_ids=range(0 if assignment is None else assignment.num_models),
        step=step,
        changed=changed,
        score=clients,
    )


def grown(aue, steps, errors=None):
    """The assignment after `steps` data steps; `errors` of the models, by default those of a random guess."""
    assignment = aue.on_data(view_of(None, 0))
    for step in range(1, steps):
        clients = Clients(np.full((2, 9), 0.25) if errors is None else errors)
        assignment = aue.on_data(view_of(assignment, step, clients))
    return assignment


def test_it_starts_with_one_model_which_serves_alone():
    aue = Aue(AueSettings())
    assignment = grown(aue, 1)
    assert assignment.members.tolist() == [[0], [0]]
    plan = aue.serve(view_of(assignment, 0))
    assert (plan.models.tolist(), plan.weights.tolist()) == ([[0], [0]], [[1], [1]])
    assert plan.combine == "votes"


def test_every_data_step_brings_a_new_model_and_shifts_the_others():
    aue = Aue(AueSettings(num_models=3))
    assignment = grown(aue, 2)
    view = view_of(assignment, 2, Clients(np.full((2, 2), 0.25)))
    new = aue.on_data(view)
    assert (new.mixing @ np.concatenate([view.models, new.extra])).tolist() == [[0, 0], [10, 11], [12, 13]]
    assert new.successor.tolist() == [1, 2]
    assert new.members.tolist() == [[0, 1, 2]] * 2
    assert new.lane_of_client.tolist() == [0, 0]


def test_the_oldest_model_is_dropped_unscored_when_the_ensemble_is_full():
    aue = Aue(AueSettings(num_models=3))
    assignment = grown(aue, 3)
    clients = Clients(np.full((2, 3), 0.25))
    view = view_of(assignment, 3, clients)
    new = aue.on_data(view)
    assert (new.mixing @ np.concatenate([view.models, new.extra])).tolist() == [[0, 0], [10, 11], [12, 13]]
    assert new.successor.tolist() == [1, 2, -1]
    assert clients.requests == [[0, 1]]


def test_the_weights_by_hand():
    # Two labels: MSE_r = 1/4. Over the fleet the errors are (30 x 0.1 + 10 x 0.7) / 40 = 1/4 and
    # (30 x 0.7 + 10 x 0.9) / 40 = 3/4. So the weights are as 1 / (1/4) = 4, 1 / (1/4 + 1/4) = 2 and
    # 1 / (1/4 + 3/4) = 1.
    aue = Aue(AueSettings())
    assignment = grown(aue, 2)
    new = aue.on_data(view_of(assignment, 2, Clients([[0.1, 0.7], [0.7, 0.9]])))
    plan = aue.serve(view_of(new, 2))
    assert plan.models.tolist() == [[0, 1, 2]] * 2
    assert plan.weights == pytest.approx(np.array([[4, 2, 1], [4, 2, 1]]) / 7)


def test_per_client_each_weighs_by_its_own_errors():
    # Client 0 has errors of 1/4 and 3/4, as above; client 1 has 3/4 and 1/4.
    aue = AuePerClient(AueSettings())
    assignment = grown(aue, 2)
    new = aue.on_data(view_of(assignment, 2, Clients([[0.25, 0.75], [0.75, 0.25]])))
    assert aue.serve(view_of(new, 2)).weights == pytest.approx(np.array([[4, 2, 1], [4, 1, 2]]) / 7)


@pytest.mark.parametrize("missing", [{"offline": [1]}, {"counts": (30, 0)}])
def test_per_client_a_client_without_response_uses_the_weights_of_the_fleet(missing):
    aue = AuePerClient(AueSettings())
    assignment = grown(aue, 2)
    new = aue.on_data(view_of(assignment, 2, Clients([[0.25, 0.75], [0.75, 0.25]], **missing)))
    assert aue.serve(view_of(new, 2)).weights == pytest.approx(np.array([[4, 2, 1], [4, 2, 1]]) / 7)


def test_errors_that_nobody_measured_are_those_of_a_random_guess():
    aue = Aue(AueSettings())
    assignment = grown(aue, 2)
    new = aue.on_data(view_of(assignment, 2, Clients([[0, 0], [0, 0]], counts=(0, 0))))
    assert aue.serve(view_of(new, 2)).weights == pytest.approx(np.array([[2, 1, 1]] * 2) / 4)


def test_off_by_one_each_model_counts_by_the_next_older_error_and_the_oldest_by_nothing():
    # The weights above, 4, 2 and 1, become 4, 1 and 0.
    aue = Aue(AueSettings(feddrift_aue_offbyone=True))
    assignment = grown(aue, 2)
    assert aue.serve(view_of(assignment, 1)).weights.tolist() == [[1, 0], [1, 0]]
    new = aue.on_data(view_of(assignment, 2, Clients([[0.25, 0.75], [0.25, 0.75]])))
    assert aue.serve(view_of(new, 2)).weights == pytest.approx(np.array([[4, 1, 0]] * 2) / 5)


def test_errors_may_be_measured_again_after_every_aggregation():
    updates = Clients([[9.0, 0.25, 0.75], [9.0, 0.25, 0.75]])
    by_data, by_updates = Aue(AueSettings()), Aue(AueSettings(weigh="updates"))
    for aue in (by_data, by_updates):
        assignment = grown(aue, 3, errors=np.zeros((2, 9)))
        assert aue.on_updates(view_of(assignment, 2, updates)) is None
    # Perfect models count as much as the newest one.
    assert by_data.serve(view_of(assignment, 2)).weights == pytest.approx(np.full((2, 3), 1 / 3))
    assert by_updates.serve(view_of(assignment, 2)).weights == pytest.approx(np.array([[4, 2, 1]] * 2) / 7)
    assert updates.requests == [[1, 2]]


def test_between_data_steps_nothing_changes():
    aue = Aue(AueSettings())
    assignment = grown(aue, 2)
    assert aue.on_data(view_of(assignment, 2, changed=())) is None
    # Client 1 comes online, and with it the data of a step that the ensemble has a model for.
    assert aue.on_data(view_of(assignment, 1, changed=[1])) is None


def test_with_claims_a_model_trains_on_all_steps_since_it_was_made():
    aue, memory = Aue(AueSettings(num_models=3)), Claimed(ClaimedSettings())
    assignment = None
    for step in range(5):
        assignment = aue.on_data(view_of(assignment, step, Clients(np.full((2, 9), 0.25))))
        memory.models_changed(assignment)
        view = a_view(
            num_clients=2,
            assignment=assignment,
            model_ids=range(assignment.num_models),
            step=step,
            arrived=lambda ids, first, last: SampleRanges.one_each(10 * ids + first, 10 * ids + last + 1),
        )
        memory.claim(view)
    steps = [memory.samples(np.array([0]), row, view).rows(0).tolist() for row in range(3)]
    assert steps == [[4], [3, 4], [2, 3, 4]]
