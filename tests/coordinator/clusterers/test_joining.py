"""Where each clusterer puts clients that join, and what it forgets of those that leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.clusterers import CLUSTERERS, Clusterer
from coordinator.clusterers.accuracy_drift import AccuracyDriftSettings
from coordinator.clusterers.draft import Draft
from coordinator.clusterers.feddrift import FedDrift, FedDriftSettings
from coordinator.clusterers.feddrift_c import FedDriftC
from coordinator.clusterers.feddrift_eager import FedDriftEager
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.clusterers.ifca import Ifca, IfcaSettings
from coordinator.clusterers.oracle import Oracle
from coordinator.clusterers.partition import PartitionSettings, centers_of, partition_among
from coordinator.clusterers.single import Single
from coordinator.clusterers.static import Static, StaticSettings
from coordinator.triggers import Moved, ReclusteringTrigger
from coordinator.view import ScoreResponse
from emulator.arrays import Bools, Ints
from emulator.messages import Scores, Trigger
from emulator.plugins import NoSettings
from experiments.contracts.clusterers import _turnovers
from experiments.contracts.ports import NUM_LABELS, LabelStream
from experiments.contracts.rounds import Rounds
from tests.contracts.registries import REQUIRED
from tests.fakes import NOTHING, a_view, ints, one_hot

NAN = float("nan")


def assigned(members: list[int], lanes: list[int] | None = None) -> Assignment:
    """Models in force, as many as members need."""
    return Assignment.moved(
        np.array(members), max(members) + 1, lanes=None if lanes is None else np.array(lanes)
    )


def rows(assignment: Assignment | None) -> list[int]:
    assert assignment is not None
    return assignment.members[:, 0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("turnover", _turnovers(), ids=["mixed", "replaced", "deserted"])
@pytest.mark.parametrize("name", CLUSTERERS.names())
def test_all_clients_that_hold_data_have_a_model_and_no_others(name: str, turnover: Bools) -> None:
    part = CLUSTERERS.find(name)
    steps, clients = turnover.shape
    labels = np.eye(NUM_LABELS)[np.add.outer(np.arange(steps), np.arange(clients)) % 3]
    stream = LabelStream(labels, turnover=turnover)
    rounds = Rounds(stream, clusterer=part(part.Settings(**REQUIRED.get(("clusterers", name), {}))))
    for _ in range(steps):
        rounds.play()
        assignment = rounds.federation._membership.in_force
        assert ((assignment.members >= 0).any(axis=1) == stream.holding).all()
        assert ((assignment.lane_of_client >= 0) == stream.holding).all()


# -- the default: the largest cluster ----------------------------------------------------------------------


def joined(clusterer: Clusterer, members: list[list[int]], *clients: int, lanes: list[int] | None = None):
    """The assignment of `clusterer` after `clients` joined those with these `members`."""
    table = np.array(members)
    models = table.max() + 1 if table.max() >= 0 else 3
    assignment = Assignment.moved(table, int(models), lanes=None if lanes is None else np.array(lanes))
    view = a_view(
        num_clients=len(table), assignment=assignment, model_ids=list(range(models)), joined=list(clients)
    )
    made = clusterer.on_joined(view)
    assert made is not None
    assert not made.changes_models
    return made.members.tolist(), made.lane_of_client.tolist()


def test_by_default_a_client_joins_the_largest_cluster_the_lowest_of_equals() -> None:
    single = Single(NOTHING)
    assert joined(single, [[0], [1], [1], [-1]], 3)[0] == [[0], [1], [1], [1]]
    assert joined(single, [[1], [0], [-1], [-1]], 2, 3)[0] == [[1], [0], [0], [0]]


def test_a_client_that_joins_an_ensemble_has_all_its_models_and_its_lane() -> None:
    members, lanes = joined(Single(NOTHING), [[0, 1], [-1, -1], [0, 1]], 1, lanes=[1, -1, 1])
    assert (members[1], lanes[1]) == ([0, 1], 1)


def test_where_nobody_else_has_a_model_those_that_join_have_the_first_ones() -> None:
    assert joined(Single(NOTHING), [[-1], [-1]], 0, 1) == ([[0], [0]], [0, 0])
    assert joined(Single(NOTHING), [[-1, -1]], 0, lanes=[-1]) == ([[0, 1]], [0])


# -- by reports --------------------------------------------------------------------------------------------


def test_a_partition_is_of_the_clients_that_hold_data() -> None:
    reports, holding = one_hot(0, 1, 0, 1, of=2), np.array([True, True, False, True])
    reports[2] = NAN
    clustering = partition_among(reports, holding, PartitionSettings(), np.random.default_rng(0), "l1")
    assert clustering.members.tolist() == [0, 1, -1, 1]
    assert clustering.fitted.kmeans_clients == 3
    assert clustering.centers.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("distance", ["l1", "cosine", "euclidean"])
def test_clients_of_no_cluster_have_no_part_in_centres(distance) -> None:
    reports = np.array([[1.0, 0.0], [NAN, NAN], [0.0, 1.0]])
    centers = centers_of(reports, ints(0, -1, 1), np.zeros((2, 2)), distance)
    assert centers.tolist() == [[1, 0], [0, 1]]


def static() -> Static:
    """A static clustering of three clients: 0 and 1 have the first label, 2 the second."""
    clusterer = Static(StaticSettings())
    clusterer.on_data(a_view(one_hot(0, 0, 1, 0, of=2), absent=[3]))
    return clusterer


def test_static_puts_a_client_that_joins_to_the_nearest_centre_of_its_clustering() -> None:
    view = a_view([[1, 0], [1, 0], [0, 1], [0.3, 0.7]], assignment=assigned([0, 0, 1, -1]), joined=[3])
    view = a_view(view.reports, assignment=view.assignment, model_ids=[0, 1], joined=[3])
    assert rows(static().on_joined(view)) == [0, 0, 1, 1]


def test_static_cannot_compare_reports_at_models_that_have_changed_since() -> None:
    view = a_view(
        [[1, 0], [1, 0], [0, 1], [0.3, 0.7]],
        assignment=assigned([0, 0, 1, -1]),
        model_ids=[0, 1],
        joined=[3],
        rebased=True,
    )
    assert rows(static().on_joined(view)) == [0, 0, 1, 0]  # the largest cluster


def test_static_at_a_later_round_clusters_those_that_hold_data_then() -> None:
    clusterer = Static(StaticSettings(at_round=2))
    clusterer.on_data(a_view(one_hot(0, 0, 1, 1, of=2)))
    view = a_view(
        one_hot(0, 0, 1, 1, of=2), round_=2, assignment=assigned([0, 0, 0, -1]), changed=[0], absent=[3]
    )
    made = clusterer.on_data(view)
    assert rows(made) == [0, 0, 1, -1]
    assert made is not None
    assert made.mixing.tolist() == [[1], [1]]


def fielding(members_of: list[int], **settings) -> Fielding:
    """Fielding after its first clustering of one-hot reports of these labels; -1: holds no data."""
    clusterer = Fielding(FieldingSettings(**settings))
    absent = [client for client, label in enumerate(members_of) if label < 0]
    clusterer.on_data(a_view(one_hot(*members_of, of=3), absent=absent))
    return clusterer


def test_a_joined_client_moves_to_fieldings_nearest_centre_and_adds_to_its_shift() -> None:
    clusterer = fielding([0, 0, 1, -1])
    triggers: list[Trigger] = []
    view = a_view(
        [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0.4, 0.6, 0]],
        assignment=assigned([0, 0, 1, 0]),  # where `on_joined` has put it
        joined=[3],
        triggers=triggers,
    )
    assert rows(clusterer.on_data(view)) == [0, 0, 1, 1]
    # The centre (0, 1, 0) moves to (0.2, 0.8, 0); the centres are then 1.6 apart, and 0.4 is below a third.
    assert [(t.shift, t.fired) for t in triggers] == [(pytest.approx(0.4), False)]


def test_a_centre_is_at_once_the_mean_of_those_who_stayed_and_that_is_no_shift() -> None:
    clusterer = Fielding(FieldingSettings())
    reports = np.array([[1.0, 0.0], [0.8, 0.2], [0.0, 1.0], [0.1, 0.9]])
    clusterer.on_data(a_view(reports))
    reports[1] = NAN
    left = a_view(reports, assignment=assigned([0, -1, 1, 1]), absent=[1], left=[1])
    assert clusterer.on_data(left) is None
    triggers: list[Trigger] = []
    again = a_view(reports, drifted=[3], assignment=assigned([0, -1, 1, 1]), absent=[1], triggers=triggers)
    assert clusterer.on_data(again) is None
    assert [t.shift for t in triggers] == [0.0]


def test_a_trigger_sees_only_clients_that_hold_data() -> None:
    seen: list[Moved] = []

    class Seeing(ReclusteringTrigger):
        Settings = NoSettings

        def evaluate(self, moved: Moved) -> Trigger:
            seen.append(moved)
            return Trigger(0.0, None, None, 2, False)

    clusterer = fielding([0, 1, 1])
    clusterer._trigger = Seeing(NOTHING)
    reports = one_hot(0, 1, 1, of=3)
    reports[1] = NAN
    clusterer.on_data(a_view(reports, drifted=[2], assignment=assigned([0, -1, 1]), absent=[1], triggers=[]))
    assert seen[0].members.tolist() == [0, 1]
    assert seen[0].reports.tolist() == one_hot(0, 1, of=3).tolist()


def test_a_client_without_a_model_before_has_no_part_in_a_mean_at_every_drift() -> None:
    clusterer = fielding([0, 0, 1, -1], average="every_drift")
    # Client 1 moves to the second cluster, in which client 3 joins.
    view = a_view(
        one_hot(0, 1, 1, 1, of=3), drifted=[1], joined=[3], assignment=assigned([0, 0, 1, 0]), triggers=[]
    )
    made = clusterer.on_data(view)
    assert rows(made) == [0, 1, 1, 1]
    assert made is not None
    assert made.mixing.tolist() == [[1, 0], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("average", "mixing"),
    [
        # The joined client has moved to the model of the first cluster, and counts with it; or with none.
        ("reclustering", [[1, 0], [0, 1], [1, 0]]),
        ("every_drift", [[1, 0], [0, 1], [0.5, 0.5]]),
    ],
)
def test_a_cluster_of_joined_clients_alone_starts_from_models_that_exist(average, mixing) -> None:
    clusterer = fielding([0, 1, -1], average=average, trigger={"threshold": 0}, min_clusters=3)
    view = a_view(one_hot(0, 1, 2, of=3), joined=[2], assignment=assigned([0, 1, 0]), triggers=[])
    made = clusterer.on_data(view)
    assert rows(made) == [0, 1, 2]
    assert made is not None
    assert made.reclustered
    assert made.mixing.tolist() == mixing


# -- by scores ---------------------------------------------------------------------------------------------


def scoring(correct: list[list[float]], clients: Ints) -> Callable[..., ScoreResponse]:
    scores = Scores(counts=np.full(len(clients), 10), correct=10 * np.array(correct))
    return lambda asked, *request, **more: ScoreResponse(clients, scores)


def test_a_client_that_joins_chooses_and_cannot_drift_by_what_it_was_before_it_left() -> None:
    eager = FedDriftEager(AccuracyDriftSettings(delta=0.1))
    first = eager.on_data(a_view(num_clients=2))
    assert first is not None
    everyone = {"assignment": first, "claimed": [20], "model_ids": [0]}
    assert (
        eager.on_data(
            a_view(
                num_clients=2, changed=[0, 1], step=1, score=scoring([[0.9], [0.9]], ints(0, 1)), **everyone
            )
        )
        is None
    )
    gone = {"num_clients": 2, "step": 2, "absent": [1], "left": [1], "changed": [0]}
    without = {**everyone, "assignment": assigned([0, -1])}
    assert eager.on_data(a_view(score=scoring([[0.9]], ints(0)), **gone, **without)) is None
    # It returns with an accuracy of 0.2, which is no fall from 0.9.
    back = a_view(
        num_clients=2,
        step=3,
        joined=[1],
        changed=[0, 1],
        score=scoring([[0.9], [0.2]], ints(0, 1)),
        **everyone,
    )
    assert eager.on_data(back) is None


@pytest.mark.parametrize("part", [FedDrift, FedDriftC])
def test_feddrift_forgets_the_isolation_of_a_client_that_left(part) -> None:
    clusterer = part(FedDriftSettings())
    clusterer._accuracy_before = np.array([0.9, 0.2, 0.3])
    clusterer._isolated, clusterer._given_up = {1: 0.9, 2: 0.8}, ints(1)
    clusterer._forget(ints(1))
    assert clusterer._isolated == {2: 0.8}
    assert clusterer._given_up.tolist() == []
    np.testing.assert_array_equal(clusterer._accuracy_before, [0.9, NAN, 0.3])


def test_a_given_up_model_stays_while_a_client_that_joined_is_in_it() -> None:
    clusterer = FedDriftC(FedDriftSettings())
    best = type("Best", (), {"clients": ints(1), "rows": ints(0)})
    for members, kept in (([0, 1, -1], [0]), ([0, 1, 1], [0, 1])):
        clusterer._given_up = ints(1)
        draft = Draft(np.array(members), last_used=ints(0, 0))
        clusterer._move(draft, best)  # type: ignore[arg-type]
        assert draft.rows.tolist() == kept
        assert clusterer._given_up.tolist() == []


def test_a_draft_leaves_clients_without_a_model_where_they_are() -> None:
    draft = Draft(ints(0, -1, 1), last_used=ints(0, 0))
    assert draft.used.tolist() == [True, True]
    draft.merge(ints(0, 1), np.array([0.5, 0.5]))
    assert rows(draft.assignment(lambda number: np.zeros(1, dtype=np.float32))) == [0, -1, 0]


def test_an_ifca_client_that_joins_chooses_when_its_data_change_or_when_it_takes_part() -> None:
    assignment = assigned([0, 1, 1, 1], lanes=[0, 0, 0, 0])
    facts = {"num_clients": 4, "assignment": assignment, "model_ids": [0, 1], "round_": 3}
    by_step = Ifca(IfcaSettings(choose="step"))
    view = a_view(joined=[3], changed=[3], score=scoring([[0.9, 0.1]], ints(3)), **facts)
    assert rows(by_step.on_data(view)) == [0, 1, 1, 0]
    by_round = Ifca(IfcaSettings())
    assert by_round.on_data(a_view(joined=[3], changed=[3], **facts)) is None
    taking_part = a_view(participants=[3], score=scoring([[0.9, 0.1]], ints(3)), **facts)
    assert rows(by_round.on_participants(taking_part)) == [0, 1, 1, 0]


# -- by the truth ------------------------------------------------------------------------------------------


def test_the_oracle_makes_no_model_for_a_concept_that_only_absent_clients_have() -> None:
    oracle = Oracle(NOTHING)
    first = oracle.on_data(a_view(num_clients=3, concepts=[4, 7, 4], absent=[1]))
    assert first is not None
    assert (first.num_models, rows(first)) == (1, [0, -1, 0])
    joins = a_view(
        num_clients=3, concepts=[4, 7, 4], assignment=assigned([0, 0, 0]), model_ids=[0], joined=[1]
    )
    second = oracle.on_data(joins)
    assert second is not None
    assert (second.num_models, rows(second)) == (2, [0, 1, 0])
