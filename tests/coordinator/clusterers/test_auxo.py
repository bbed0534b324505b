from math import sqrt

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers.affinities import Affinities, centred
from coordinator.clusterers.auxo import Auxo, AuxoSettings
from coordinator.view import RunFacts
from emulator.errors import ConfigurationError
from emulator.messages import ArrayUpdates
from emulator.seeding import RandomStreams
from tests.fakes import FakeExecutor, Population, a_view


class Game:
    """Rounds of a clusterer of `num_clients`, whose updates are given; all numbers of an update are compared.

    `round` sends the updates of a round: {row of the model: {client: update}}.
    """

    def __init__(self, num_clients: int, seed: int = 0, **settings) -> None:
        self.seed = seed
        self.auxo = Auxo(AuxoSettings(**{"gradient_share": 1.0, "explore": 0.0, **settings}))
        self.num_clients = num_clients
        self.models = np.array([[1.0, 2.0]])
        self.number = 0
        first = self.auxo.on_data(a_view(num_clients=num_clients))
        assert first is not None
        self.assignment: Assignment = first

    def view(self, **facts):
        return a_view(
            num_clients=self.num_clients,
            assignment=self.assignment,
            models=self.models,
            model_ids=range(10, 10 + len(self.models)),
            round_=self.number,
            seed=self.seed,
            **facts,
        )

    def round(self, sent: dict[int, dict[int, tuple[float, ...]]], **facts) -> Assignment | None:
        tasks = sorted(
            (client, row, delta) for row, updates in sent.items() for client, delta in updates.items()
        )
        client, row, delta = zip(*tasks, strict=True)
        ones = np.ones(len(tasks), dtype=np.int64)
        updates = ArrayUpdates(np.array(client), 10 + np.array(row), ones, ones, np.float32(delta))
        made = self.auxo.on_updates(self.view(updates=updates, **facts))
        self.number += 1
        if made is not None:
            self.models = made.mixing @ self.models
            self.assignment = made
        return made

    @property
    def affinities(self) -> Affinities:
        return self.auxo._affinities

    @property
    def members(self) -> list[int]:
        return self.assignment.members[:, 0].tolist()

    def sub_affinities(self, row: int) -> list[tuple[float, float]]:
        half, lean = self.affinities.affinity[:, row] / 2, self.affinities.lean[:, row]
        return list(zip((half + lean).tolist(), (half - lean).tolist(), strict=True))


EAST, WEST = (5.0, 2.0), (-3.0, 2.0)
NORTH, SOUTH = (0.0, 1.0), (0.0, -1.0)
TWO_AND_THREE = {0: (7.0, 2.0), 1: (7.0, 2.0), 2: WEST, 3: WEST, 4: WEST}
"""Updates with a mean of (1, 2): less that, 6 east for clients 0 and 1, and 4 west for the others."""

SEED = 4
"""With it, client 6 goes to the first of two clusters in round 2."""


def test_affinities_through_a_split_by_hand() -> None:
    game = Game(7, seed=SEED, split_rounds=[3], min_participants=3)
    # Round 0: all participants take sides; client 6 never takes part before the split.
    assert game.round({0: TWO_AND_THREE}) is None
    east, west, neither = (1.5, -0.5), (-0.5, 1.5), (0.5, 0.5)
    assert game.sub_affinities(0) == [east, east, west, west, west, neither, neither]
    assert game.affinities.times[:, 0].tolist() == [1, 1, 1, 1, 1, 0, 0]

    # Round 1: less their mean (1, 2), client 1 sent (8, 0), 2 to 4 sent (-4, 0), and 5 sent (4, 0). Only
    # client 5 has no side, and in direction it is one with client 1.
    assert game.round({0: {1: (9.0, 2.0), 2: WEST, 3: WEST, 4: WEST, 5: EAST}}) is None
    assert game.sub_affinities(0) == [east, east, west, west, west, east, neither]
    assert game.affinities.times[:, 0].tolist() == [1, 1, 1, 1, 1, 1, 0]

    # Round 2: the split. Whoever leans to a half has 1 more there, and its times; client 6 goes anywhere.
    made = game.round({0: TWO_AND_THREE})
    assert made is not None
    assert game.affinities.affinity.tolist() == [[2, 1], [2, 1], [1, 2], [1, 2], [1, 2], [2, 1], [1, 1]]
    assert game.affinities.times.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 0], [0, 0]]
    assert game.sub_affinities(0) == [(1, 1), (1, 1), neither, neither, neither, (1, 1), neither]
    assert made.mixing.tolist() == [[1], [1]]
    assert game.models.tolist() == [[1, 2], [1, 2]]
    assert made.successor.tolist() == [0]
    assert RandomStreams(SEED).generator("decisions", 2, 0).random((7, 2))[6, 1] < 0.5
    assert game.members == [0, 0, 1, 1, 1, 0, 0]

    # Round 3: multiples of (3, 4) / 5 with a mean of 0: 7.5, -2.5, 2.5 and -7.5. Known are clients 0, 1 and
    # 5, with an affinity of 2; their centre is at 2.5, so the distances are 5, 5, 0 and 10: their mean is 5,
    # their deviation 5 / sqrt(2). R0 = 5 x 3 / 4 known = 3.75. The child has too few updates.
    unit = np.array([0.6, 0.8])
    sent = {client: tuple(length * unit) for client, length in ((0, 7.5), (1, -2.5), (5, 2.5), (6, -7.5))}
    assert game.round({0: sent, 1: {2: WEST, 3: WEST}}) is not None
    near, far = 3.75 * (sqrt(2) - 1), 3.75 * (2 * sqrt(2) - 3)
    assert far < 0
    expected = [2 + near, 2 + near, 1, 1, 1, 5.75, 1 + far]
    assert game.affinities.affinity[:, 0].tolist() == pytest.approx(expected, rel=1e-12)
    assert game.affinities.affinity[:, 1].tolist() == [1, 1, 2, 2, 2, 1, 1]
    # The first sides of this cluster: 0 and 5 in one direction, 1 in the other, 6 not known.
    assert game.affinities.lean[:, 0].tolist() == [1, -1, 0, 0, 0, 1, 0]
    assert game.sub_affinities(0)[1] == pytest.approx((near / 2, 2 + near / 2), rel=1e-12)
    assert game.affinities.times[:, 0].tolist() == [3, 3, 0, 0, 0, 3, 1]
    assert game.affinities.rounds.tolist() == [4, 3]
    # Client 6 prefers the cluster that it was not in: 1 is more than 0.36.
    assert game.members == [0, 0, 1, 1, 1, 0, 1]


def test_sides_are_taken_until_one_round_after_the_last_split() -> None:
    game = Game(6, split_rounds=[2], min_participants=5)
    game.affinities.rounds[0] = 2
    without_five = {client: TWO_AND_THREE[client] for client in range(5)}
    game.round({0: without_five})
    assert game.affinities.lean.ravel().tolist() == [1, 1, -1, -1, -1, 0]
    game.round({0: {**without_five, 5: (7.0, 2.0)}})
    assert game.affinities.lean.ravel().tolist() == [1, 1, -1, -1, -1, 0]  # the fourth round


def test_first_sides_after_the_last_split_would_change_no_affinity_and_no_decision() -> None:
    """FedScale's code gives them to a cluster that has none."""
    # Clients 0 to 3 pull east and lean to cluster 0, the others to its child; one more round can give sides.
    pulls = {client: (1.0 + client, 0.5 * (-1) ** client) for client in range(4)}
    pulls |= {client: (-1.0 - client, 0.5 * (-1) ** client) for client in range(4, 8)}
    strangers, members = ({client: pulls[client] for client in ids} for ids in ((4, 5, 6), (0, 1, 2, 3)))
    games = [Game(8, split_rounds=[1], min_participants=3) for _ in range(2)]
    for game in games:
        game.round({0: pulls})
        game.round({0: strangers})  # nobody known in cluster 0, and so no sides
        assert not game.affinities.has_sides[0]
    ours, theirs = (game.affinities for game in games)
    theirs.take_sides(0, np.arange(4), centred(np.float32(list(members.values()))), np.random.default_rng(0))
    assert theirs.has_sides[0]
    for number in range(6):
        sent = {0: {**members, number % 8: (2.0 - number, 1.0)}, 1: strangers}
        for game in games:
            game.round(sent)
    assert not ours.has_sides[0]
    assert (theirs.times > ours.times).any()
    assert ours.affinity.tolist() == theirs.affinity.tolist()
    assert (ours.times > 0).tolist() == (theirs.times > 0).tolist()
    assert games[0].members == games[1].members


def test_a_cluster_with_few_updates_stays_as_it_is() -> None:
    game = Game(6, split_rounds=[1], min_participants=5)
    assert game.round({0: {client: TWO_AND_THREE[client] for client in range(4)}}) is None
    assert game.affinities.rounds.tolist() == [0]
    assert not game.affinities.lean.any()


def test_updates_without_samples_do_not_count() -> None:
    game = Game(5, split_rounds=[1])
    delta = np.array(list(TWO_AND_THREE.values()), dtype=np.float32)
    ones = np.ones(5, dtype=np.int64)
    updates = ArrayUpdates(np.arange(5), 10 * ones, np.array([5, 5, 5, 5, 0]), ones, delta)
    assert game.auxo.on_updates(game.view(updates=updates)) is None
    assert game.affinities.rounds.tolist() == [0]


def test_only_the_end_of_an_update_is_compared() -> None:
    # A tenth of two numbers is less than one, so one is compared.
    game = Game(5, split_rounds=[1], gradient_share=0.1)
    made = game.round({0: {0: (99, 1), 1: (-99, 1), 2: (99, -1), 3: (-99, -1), 4: (0, -1)}})
    assert made is not None
    assert game.members == [0, 0, 1, 1, 1]


def test_two_clusters_can_be_split_in_one_round() -> None:
    game = Game(12, split_rounds=[1, 2])
    game.round({0: {client: EAST if client < 6 else WEST for client in range(12)}})
    assert game.members == [0] * 6 + [1] * 6
    # All are equally far from the centre: their reward is 0, and they keep the sides of this round.
    thirds = {client: NORTH if client % 6 < 3 else SOUTH for client in range(12)}
    made = game.round(
        {row: {client: thirds[client] for client in range(6 * row, 6 * row + 6)} for row in (0, 1)}
    )
    assert made is not None
    assert made.mixing.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert made.successor.tolist() == [0, 1]
    assert game.members == [0, 0, 0, 2, 2, 2, 1, 1, 1, 3, 3, 3]
    # Each child has the clustering rounds of its parent.
    assert game.affinities.rounds.tolist() == [2, 2, 2, 2]


def test_with_fewer_than_two_known_participants_a_cluster_is_not_even_split() -> None:
    game = Game(10, split_rounds=[1, 2])
    game.round({0: {client: EAST if client < 5 else WEST for client in range(10)}})
    strangers = {client: TWO_AND_THREE[client - 5] for client in range(5, 10)}
    assert game.round({0: strangers}) is None
    assert game.affinities.rounds.tolist() == [2, 1]


def test_without_a_split_only_participants_are_moved() -> None:
    game = Game(10, split_rounds=[1, 2])
    game.round({0: {client: EAST if client < 5 else WEST for client in range(10)}})
    # Clients 3 and 9 now prefer the other cluster; 3 takes part, 9 does not.
    game.affinities.affinity[[3, 9]] = [[1, 60], [60, 1]]
    game.affinities.rounds[:] = 5
    game.round({0: dict.fromkeys(range(5), EAST)})
    assert game.members == [0, 0, 0, 1, 0, 1, 1, 1, 1, 1]


def ten_clients(**settings) -> Game:
    """Ten clients, none of them with a side yet, after 70 clustering rounds."""
    game = Game(10, split_rounds="automatic", **settings)
    game.affinities.rounds[0] = 70
    return game


def test_an_automatic_split_needs_members_for_as_many_updates() -> None:
    # Ten members, and half of all clients sent an update: 5 are expected of the cluster.
    assert ten_clients(min_expected=6).round({0: TWO_AND_THREE}) is None
    game = ten_clients(min_expected=5)
    assert game.round({0: TWO_AND_THREE}) is not None
    assert game.members[:5] == [0, 0, 1, 1, 1]


def test_an_automatic_split_needs_members_on_both_sides() -> None:
    game = ten_clients(min_expected=0)
    assert game.round({0: dict.fromkeys(range(5), EAST)}) is None
    assert game.round({0: TWO_AND_THREE}) is not None


def test_clients_that_hold_no_data_are_not_moved_by_a_split() -> None:
    game = Game(7, split_rounds=[1])
    game.assignment = Assignment.moved(np.array([0, 0, 0, 0, 0, -1, -1]), 1)
    game.round({0: TWO_AND_THREE}, absent=[5, 6])
    assert game.members == [0, 0, 1, 1, 1, -1, -1]


def test_a_client_that_returns_begins_anew_in_the_largest_cluster() -> None:
    game = Game(5, split_rounds=[1])
    game.round({0: TWO_AND_THREE})
    game.affinities.lean[0] = 1
    game.assignment = Assignment.moved(np.array([-1, 0, 1, 1, 1]), 2)
    made = game.auxo.on_joined(game.view(joined=[0]))
    assert made is not None
    assert made.members[:, 0].tolist() == [1, 0, 1, 1, 1]
    assert game.affinities.affinity.tolist() == [[1, 1], [2, 1], [1, 2], [1, 2], [1, 2]]
    assert game.affinities.times.tolist() == [[0, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    assert not game.affinities.lean.any()


def test_splits_and_moves_are_in_the_log_of_a_run() -> None:
    targets = [1.0, 1.1, 0.9, 1.2, -1.0, -1.1, -0.9, -1.2]
    clusterer = Auxo(AuxoSettings(split_rounds=[2], min_participants=4, explore=0.0))
    played = Population(FakeExecutor(targets), clusterer=clusterer, rounds=3).play()
    assert [record.clusters for record in played.records] == [[0], [0, 1], [0, 1]]
    assert [record.moved for record in played.records] == [0, 4, 0]
    halves = played.records[1].members
    assert halves is not None
    assert halves.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    # The one model stayed at the mean of all, 0; then each moved half of the way to the mean of its clients.
    assert played.models == [[pytest.approx(1.05 / 2)], [pytest.approx(-1.05 / 2)]]


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [[], [1] * 10, "auto", 50])
def test_split_rounds_are_a_short_list_or_automatic(rounds) -> None:
    with pytest.raises(ValueError, match=r'must be a list of 1 to 9 rounds, .*, or "automatic"'):
        AuxoSettings(split_rounds=rounds)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, r"clusterer\.split_rounds = 100: must be below round\.rounds = 100"),
        (
            {"split_rounds": "automatic"},
            r"clusterer\.min_expected = 100: .* above round\.participants = 40, or",
        ),
        (
            {"split_rounds": [1], "min_participants": 41},
            r"clusterer\.min_participants = 41: .* above round\.participants = 40, or no cluster",
        ),
        (
            {"split_rounds": "automatic", "min_expected": 0, "min_participants": 41},
            r"clusterer\.min_participants = 41: .* above round\.participants = 40, or",
        ),
    ],
)
def test_a_run_in_which_no_cluster_can_be_split_is_refused(settings, problem) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Auxo(AuxoSettings(**settings)).check_run(RunFacts(num_clients=500, rounds=100, participants=40))


def test_a_run_that_reaches_the_last_split_is_not_refused() -> None:
    run = RunFacts(num_clients=500, rounds=101, participants=100)
    for settings in ({}, {"split_rounds": "automatic"}):
        Auxo(AuxoSettings(**settings)).check_run(run)
