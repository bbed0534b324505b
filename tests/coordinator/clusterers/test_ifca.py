import numpy as np

from coordinator.clusterers.ifca import Ifca, IfcaSettings
from coordinator.view import ScoreResponse
from emulator.messages import Scores
from tests.fakes import a_view, ints


class Clients:
    """Clients that each respond with their row of `scores` (N, M), except those `offline`."""

    def __init__(self, scores, counts=None, offline=()):
        self.scores = np.array(scores, dtype=np.float64)
        self.counts = np.full(len(self.scores), 10) if counts is None else np.array(counts)
        self.offline = offline
        self.requests = []

    def __call__(self, clients, models, samples, metrics=frozenset({"correct"}), limit=None):
        (metric,) = metrics
        self.requests.append((clients.tolist(), models.tolist(), samples, metric))
        online = clients[~np.isin(clients, self.offline)]
        return ScoreResponse(
            online, Scores(self.counts[online], **{metric: self.scores[np.ix_(online, models)]})
        )


def started(num_clients=4, **settings):
    """A clusterer and its first assignment."""
    ifca = Ifca(IfcaSettings(**settings))
    return ifca, ifca.on_data(a_view(num_clients=num_clients))


def view_of(assignment, clients, round_=1, changed=(), participants=()):
    return a_view(
        num_clients=len(assignment.members),
        assignment=assignment,
        model_ids=range(assignment.num_models),
        round_=round_,
        score=clients,
        changed=changed,
        participants=participants,
    )


def test_every_model_has_an_initialisation_of_its_own_and_everybody_starts_on_the_first():
    _, assignment = started(num_models=3)
    models = assignment.mixing @ assignment.extra
    assert models.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert assignment.members.tolist() == [[0]] * 4
    assert assignment.lane_of_client.tolist() == [0] * 4


def test_in_every_round_but_the_first_participants_choose_the_most_accurate_model():
    ifca, assignment = started()
    clients = Clients([[1, 2], [5, 3], [0, 9], [0, 9]])
    assert ifca.on_participants(view_of(assignment, clients, round_=0, participants=[0, 1, 2])) is None
    assert clients.requests == []
    chosen = ifca.on_participants(view_of(assignment, clients, round_=1, participants=[0, 1, 2]))
    assert clients.requests == [([0, 1, 2], [0, 1], "arrived", "correct")]
    # Client 3, which would change too, does not take part.
    assert chosen.members.tolist() == [[1], [0], [1], [0]]
    assert chosen.lane_of_client.tolist() == [0] * 4
    assert not chosen.changes_models


def test_new_data_change_nothing_until_the_participants_choose():
    ifca, assignment = started()
    assert ifca.on_data(view_of(assignment, Clients([[0, 1]] * 4), changed=[0, 1])) is None


def test_who_chooses_at_once_chooses_in_the_first_round():
    ifca, assignment = started(first="choose")
    clients = Clients([[1, 2], [5, 3], [0, 9], [0, 9]])
    chosen = ifca.on_participants(view_of(assignment, clients, round_=0, participants=[0, 1, 2]))
    assert chosen.members.tolist() == [[1], [0], [1], [0]]


def test_once_per_step_the_clients_whose_data_changed_choose():
    ifca, assignment = started(choose="step")
    clients = Clients([[1, 2], [5, 3], [0, 9], [0, 9]])
    assert ifca.on_participants(view_of(assignment, clients, participants=[0, 1, 2, 3])) is None
    assert ifca.on_data(view_of(assignment, clients)) is None
    chosen = ifca.on_data(view_of(assignment, clients, changed=[0, 1, 3]))
    assert clients.requests == [([0, 1, 3], [0, 1], "arrived", "correct")]
    assert chosen.members.tolist() == [[1], [0], [0], [1]]


def test_once_per_step_and_at_once_participants_choose_before_the_first_training():
    ifca, assignment = started(choose="step", first="choose")
    clients = Clients([[0, 1]] * 4)
    chosen = ifca.on_participants(view_of(assignment, clients, round_=0, participants=[0]))
    assert chosen.members.tolist() == [[1], [0], [0], [0]]


def test_by_loss_the_lowest_one_wins_and_a_model_that_diverged_never_does():
    ifca, assignment = started(num_models=3, metric="loss")
    clients = Clients([[3, 1, 2], [np.nan, 2, 1], [1, np.nan, 9], [np.nan, np.nan, np.nan]])
    chosen = ifca.on_participants(view_of(assignment, clients, participants=[0, 1, 2, 3]))
    assert clients.requests[0][-1] == "loss"
    assert chosen.members.tolist() == [[1], [2], [0], [0]]


def test_ties_go_to_the_lowest_model():
    ifca, assignment = started(num_models=3)
    clients = Clients([[1, 4, 4], [4, 4, 4], [0, 0, 0], [0, 1, 0]])
    chosen = ifca.on_participants(view_of(assignment, clients, participants=[0, 1, 2, 3]))
    assert chosen.members.tolist() == [[1], [0], [0], [1]]


def test_who_is_offline_or_has_nothing_new_stays_where_it_was():
    ifca, assignment = started()
    view = view_of(assignment, Clients([[0, 1]] * 4), participants=[0, 1, 2, 3])
    moved = ifca.on_participants(view)
    clients = Clients([[1, 0], [1, 0], [0, 0], [1, 0]], counts=[10, 10, 0, 10], offline=[1])
    back = ifca.on_participants(view_of(moved, clients, round_=2, participants=[0, 1, 2, 3]))
    assert back.members.tolist() == [[0], [1], [1], [0]]


def test_it_returns_none_when_nobody_moves():
    ifca, assignment = started()
    view = view_of(assignment, Clients([[1, 0]] * 4), participants=ints(0, 1).tolist())
    assert ifca.on_participants(view) is None
