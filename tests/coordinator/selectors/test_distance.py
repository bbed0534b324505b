from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from coordinator.assignment import Assignment
from coordinator.candidates import Candidates
from coordinator.clusterers.fielding import Fielding, FieldingSettings
from coordinator.clusterers.static import Static, StaticSettings
from coordinator.distances import DISTANCES, DistanceName
from coordinator.representations.gradient import Gradient, GradientSettings
from coordinator.selectors.distance import Distance, DistanceSettings
from emulator.errors import RunError
from tests.fakes import FakeExecutor, FakeStream, Population, a_view

DEFAULT = Distance(DistanceSettings())


def selected(
    reports: Any,
    wanted: Sequence[int],
    lanes: Sequence[int] | None = None,
    offline: Sequence[int] = (),
    selector: Distance = DEFAULT,
    **view: Any,
) -> list[int]:
    """The selected clients; all are of lane 0, unless `lanes` has the lane of each, -1 for none."""
    lane_of_client = np.array(lanes or [0] * len(reports))
    assignment = Assignment.fresh(
        np.maximum(lane_of_client, 0), len(wanted), np.zeros(1, dtype=np.float32), lanes=lane_of_client
    )
    candidates = Candidates(
        [np.flatnonzero(lane_of_client == lane) for lane in range(len(wanted))],
        lambda ids: ~np.isin(ids, offline),
    )
    return selector.select(
        candidates, np.array(wanted), a_view(reports, assignment=assignment, **view)
    ).tolist()


def on_a_line(*shares: float) -> list[list[float]]:
    """Reports of two labels, with the share of the second one."""
    return [[1 - share, share] for share in shares]


def test_the_nearest_to_the_mean_report_of_a_lane_are_selected() -> None:
    # The mean is 0.4; the distances are 0.4, 0.3, 0.1, 0.2 and 0.6.
    reports = on_a_line(0.0, 0.1, 0.3, 0.6, 1.0)
    assert [selected(reports, [count]) for count in (1, 2, 3)] == [[2], [2, 3], [1, 2, 3]]


def test_clients_offline_are_part_of_the_centre_and_not_selected() -> None:
    # Without client 4 the centre would be 0.25, and client 1 nearer than client 3.
    reports = on_a_line(0.0, 0.1, 0.3, 0.6, 1.0)
    assert selected(reports, [1], offline=[2, 4]) == [3]


def test_each_lane_has_its_centre_and_clients_of_no_lane_are_part_of_none() -> None:
    # Lane 0: clients 0, 1 and 2 with centre 0.2; lane 1: clients 4, 5 and 6 with centre 0.9.
    reports = on_a_line(0.0, 0.1, 0.5, 1.0, 0.8, 0.95, 0.95)
    assert selected(reports, [1, 2], lanes=[0, 0, 0, -1, 1, 1, 1]) == [1, 5, 6]


def test_a_client_without_data_has_no_report_and_matters_to_nobody() -> None:
    reports = [*on_a_line(0.0, 0.1, 0.5), [np.nan, np.nan]]
    assert selected(reports, [1], lanes=[0, 0, 0, -1], absent=[3]) == [1]


def test_lanes_that_are_empty_or_small_give_what_they_have() -> None:
    assert selected(on_a_line(0.1, 0.2, 0.3), [9, 2, 0], lanes=[0, 0, 2]) == [0, 1]
    assert selected(on_a_line(0.1, 0.2, 0.3), [0]) == []


@pytest.mark.parametrize(("distance", "nearest"), [("l1", 1), ("euclidean", 2)])
def test_a_distance_of_its_own_overrides_that_of_the_reports(distance: DistanceName, nearest: int) -> None:
    # From the mean (0, 0, 0) the distances are, in l1 and Euclidean: 1.3 and 1.3; 1.0 and 1.0; 1.2 and 0.69.
    reports = [[1.3, 0, 0], [-1.0, 0, 0], [0.4, 0.4, 0.4], [-0.7, -0.4, -0.4]]
    both = {"selector": Distance(DistanceSettings(distance=distance)), "offline": [3]}
    assert selected(reports, [1], distance="squared_euclidean", **both) == [nearest]
    assert selected(reports, [1], distance=distance, offline=[3]) == [nearest]


def test_cosine_compares_directions_alone() -> None:
    # Client 0 has the direction of the mean of the unit rows (1, 0), (0, 1) and (1, 1) / sqrt(2).
    assert selected([[900.0, 0.0], [0.0, 1.0], [0.01, 0.01]], [1], distance="cosine") == [2]


def test_equal_distances_are_in_random_order_also_where_rounding_differs() -> None:
    # In exact arithmetic all are at 11 / 15 from the mean report.
    reports = [[0.1, 0.2, 0.7], [0.2, 0.7, 0.1], [0.7, 0.1, 0.2]]
    apart = DISTANCES["l1"](np.array(reports), np.mean(reports, axis=0, keepdims=True))[:, 0]
    assert len(set(apart)) > 1
    assert np.allclose(apart, 11 / 15)
    chosen = [selected(reports, [1], round_=round_) for round_ in range(40)]
    assert {client for clients in chosen for client in clients} == {0, 1, 2}
    assert chosen == [selected(reports, [1], round_=round_) for round_ in range(40)]
    assert len({tuple(selected([[0.5, 0.5]] * 3, [1], round_=round_)) for round_ in range(40)}) == 3


def test_a_client_of_a_lane_without_a_report_ends_the_run_in_one_line() -> None:
    with pytest.raises(
        RunError, match=r"^round 4: client 1 has no report .* like 2 of the clients .*reports"
    ):
        selected([[0.5, 0.5], [np.nan, np.nan], [np.nan, 0.5]], [1], round_=4)


def test_with_one_global_model_clients_report_for_the_selector_and_it_follows_their_drift() -> None:
    # Four clients of one label and one of another: centre 0.2. Then client 0 is the odd one out.
    start, later = np.eye(2)[[0, 0, 0, 0, 1]], np.eye(2)[[1, 0, 0, 0, 0]]
    population = Population(
        FakeExecutor([0.0] * 5),
        stream=FakeStream([start, later], rounds_per_step=2),
        selector=DEFAULT,
        participants=4,
        rounds=4,
    )
    records = population.play().records
    assert [record.participants for record in records] == [[0, 1, 2, 3]] * 2 + [[1, 2, 3, 4]] * 2
    assert records[0].control_bytes == 5 * 2 * 4
    assert records[2].control_bytes - records[1].control_bytes == 2 * 2 * 4  # clients 0 and 4 drifted


def test_in_clusters_of_its_own_choice_it_selects_from_each() -> None:
    histograms = np.array([[[0.9, 0.1], [1.0, 0.0], [0.8, 0.2], [0.1, 0.9], [0.0, 1.0], [0.2, 0.8]]])
    population = Population(
        FakeExecutor([0.0] * 6),
        stream=FakeStream(histograms),
        clusterer=Fielding(FieldingSettings(max_clusters=2)),
        selector=DEFAULT,
        participants=2,
    )
    assert population.play().records[0].participants == [0, 3]


def test_clients_report_for_it_before_the_round_in_which_they_are_clustered() -> None:
    # At the model 0 the gradients are 0, -0.4 and -1, of which -0.4 is nearest the mean. The model goes
    # down, and the gradients up, as clients register.
    population = Population(
        FakeExecutor([0.0, 0.4, 1.0]),
        clusterer=Static(StaticSettings(at_round=2)),
        representation=Gradient(GradientSettings(at="global")),
        selector=DEFAULT,
        participants=1,
        rounds=2,
    )
    records = population.play().records
    assert [record.participants for record in records] == [[1], [1]]
    assert [record.control_bytes for record in records] == [3 * (4 + 4)] * 2
