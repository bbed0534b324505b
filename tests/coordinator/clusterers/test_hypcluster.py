import numpy as np
import pytest

from coordinator.clusterers.hypcluster import HypCluster, HypClusterSettings
from coordinator.view import RunFacts, ScoreResponse
from emulator.errors import ConfigurationError
from emulator.messages import Scores
from tests.fakes import FakeExecutor, Population, a_view


def losses(table, counts=None, offline=()):
    """Clients that respond with their row of `table` (N, M), and the requests that they get."""
    requests = []

    def score(clients, models, samples, metrics=frozenset(), limit=None):
        requests.append((clients.tolist(), models.tolist(), samples, sorted(metrics), limit))
        online = clients[~np.isin(clients, offline)]
        sizes = np.full(len(table), 10) if counts is None else np.array(counts)
        return ScoreResponse(online, Scores(sizes[online], loss=np.array(table, dtype=float)[online]))

    return score, requests


def view_of(assignment, score, round_=0, participants=()):
    return a_view(
        num_clients=len(assignment.members),
        assignment=assignment,
        model_ids=range(assignment.num_models),
        round_=round_,
        score=score,
        participants=participants,
    )


def started(num_models=3):
    clusterer = HypCluster(HypClusterSettings(num_models=num_models))
    return clusterer, clusterer.on_data(a_view(num_clients=4))


def test_every_model_has_an_initialisation_of_its_own_and_all_clients_are_in_one_lane():
    _, assignment = started()
    assert (assignment.mixing @ assignment.extra).tolist() == [[0, 0], [1, 1], [2, 2]]
    assert assignment.members.tolist() == [[0]] * 4
    assert assignment.lane_of_client.tolist() == [0] * 4


def test_from_the_first_round_on_participants_choose_the_lowest_loss_on_all_samples_they_hold():
    clusterer, assignment = started()
    score, requests = losses([[3, 1, 2], [1, 1, 2], [5, 5, 4], [9, 9, 0]])
    chosen = clusterer.on_participants(view_of(assignment, score, participants=[0, 1, 2]))
    assert requests == [([0, 1, 2], [0, 1, 2], "held", ["loss"], None)]
    # Ties go to the lowest model; client 3, which would change too, does not take part.
    assert chosen.members.tolist() == [[1], [0], [2], [0]]
    assert chosen.lane_of_client.tolist() == [0] * 4
    assert not chosen.changes_models


def test_who_is_offline_or_holds_nothing_stays_and_a_model_that_diverged_is_not_chosen():
    clusterer, assignment = started()
    score, _ = losses([[3, 1, 2], [3, 1, 2], [3, np.nan, 2], [0, 1, 2]], counts=[10, 0, 10, 10], offline=[0])
    chosen = clusterer.on_participants(view_of(assignment, score, 4, participants=[0, 1, 2, 3]))
    assert chosen.members.tolist() == [[0], [0], [2], [0]]


def test_new_data_change_nothing_and_are_not_looked_for():
    clusterer, assignment = started()
    assert clusterer.on_data(view_of(assignment, None)) is None
    assert not clusterer.watches_data
    assert not clusterer.needs_reports


class Losing(FakeExecutor):
    """Scores a model by its distance from the target of each sample's client."""

    def score(self, models, samples, metrics):
        correct = super().score(models, samples, metrics).correct
        return Scores(samples.counts(), loss=samples.counts()[:, None] - correct)


def test_in_a_run_clients_part_by_the_models_nearest_to_them():
    # Models start at 0 and 1, and move half of the way to the mean target of those who choose them.
    executor = Losing([-0.2, 0.0, 1.2, 1.0])
    played = Population(executor, clusterer=HypCluster(HypClusterSettings()), rounds=2).play()
    waves = [dict(zip(wave.client.tolist(), wave.model.tolist(), strict=True)) for wave in executor.waves]
    assert waves == [{0: 0, 1: 0, 2: 1, 3: 1}] * 2
    # Two models down to each client: that it trains one of them costs no further download.
    assert played.records[0].control_bytes == 4 * (2 * 4 + 2 * 2 * 4)
    assert np.allclose(played.models, [[-0.075], [1.075]])


def test_more_models_than_clients_are_refused():
    clusterer = HypCluster(HypClusterSettings(num_models=5))
    clusterer.check_run(RunFacts(num_clients=5, rounds=1, participants=1))
    with pytest.raises(
        ConfigurationError, match=r"^clusterer\.num_models = 5: must be at most 4, the number"
    ):
        clusterer.check_run(RunFacts(num_clients=4, rounds=1, participants=1))
