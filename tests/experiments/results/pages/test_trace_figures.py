from __future__ import annotations

import numpy as np
import pytest

from experiments.results.drawing.style import MAX_POINTS
from experiments.results.pages.trace_figures import (
    MOST_CLIENTS,
    MOST_DRAWN_LABELS,
    OTHER_COLOUR,
    area_edges,
    distance_figure,
    drawn_labels,
    mean_of_stretches,
    sampled_clients,
    shares_figure,
)
from traces.inspection.over_time import ClientShares

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

NAN = float("nan")
TWO = ClientShares(3, np.array([0, 1, 4]), np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]))


def test_labels_are_drawn_in_the_order_of_their_shares_with_their_names() -> None:
    labels = drawn_labels([TWO], ["a<b>"])
    assert [(name, of_area.tolist()) for name, _, of_area in labels] == [("a<b>", [0]), ("1", [1])]
    assert len({colour for _, colour, _ in labels}) == 2
    absent = ClientShares(0, np.array([0]), np.array([[0.0, 1.0, 0.0]]))
    assert [of_area.tolist() for _, _, of_area in drawn_labels([absent], [])] == [[1]]


def test_the_rarest_of_many_labels_share_an_area_so_that_shares_add_up() -> None:
    size = MOST_DRAWN_LABELS + 5
    shares = np.arange(1.0, size + 1)[None] / np.arange(1, size + 1).sum()
    client = ClientShares(0, np.array([2]), shares)
    labels = drawn_labels([client], [])
    assert len(labels) == MOST_DRAWN_LABELS
    assert labels[-1][:2] == ("6 other labels", OTHER_COLOUR)
    assert sorted(np.concatenate([of_area for _, _, of_area in labels]).tolist()) == list(range(size))
    figure = shares_figure(client, labels, first_step=0, num_windows=3, x_title="x").validated()
    assert sum(trace.y[0] for trace in figure.data) == pytest.approx(100, abs=0.1)


def test_areas_are_as_wide_as_their_windows_and_blank_between_them() -> None:
    figure = shares_figure(
        TWO, drawn_labels([TWO], []), first_step=-1, num_windows=6, x_title="x"
    ).validated()
    by_name = {trace.name: trace for trace in figure.data}
    for trace in figure.data:
        assert trace.line.shape == "hv"
        assert trace.stackgroup == "labels"
        assert list(trace.x) == [-1, 0, 1, 3, 4]
    assert list(by_name["0"].y) == [25, 100, 0, 50, 0]
    assert list(by_name["1"].y) == [75, 0, 0, 50, 0]
    assert list(figure.layout.xaxis.range) == [-1, 5]


def test_edges_of_nothing_are_none() -> None:
    edges, which = area_edges(np.zeros(0, dtype=np.int64))
    assert (edges.tolist(), which.tolist()) == ([], [])
    nothing = ClientShares(0, np.zeros(0, dtype=np.int64), np.zeros((0, 2)))
    figure = shares_figure(
        nothing, drawn_labels([TWO], []), first_step=0, num_windows=6, x_title="x"
    ).validated()
    assert [list(trace.y) for trace in figure.data] == [[], []]


def test_of_many_windows_stretches_are_drawn_with_their_means() -> None:
    windows = np.array([0, 1, 2, 3 * MAX_POINTS - 1])
    client = ClientShares(0, windows, np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]))
    figure = shares_figure(
        client, drawn_labels([client], []), first_step=0, num_windows=3 * MAX_POINTS, x_title="x"
    ).validated()
    by_name = {trace.name: trace for trace in figure.data}
    assert list(by_name["0"].x) == [0, 3, 3 * MAX_POINTS - 3, 3 * MAX_POINTS]
    assert list(by_name["0"].y) == [50, 0, 0, 0]
    assert list(by_name["1"].y) == [50, 0, 100, 0]


def test_the_map_has_a_row_for_each_client_and_blanks() -> None:
    distances = np.array([[0.0, NAN, 1.2345], [NAN, 0.0, 2.0]])
    figure = distance_figure(distances, ["a<i>", "b"], first_step=-1, x_title="x", one="client").validated()
    [drawn] = figure.data
    assert [list(row) for row in drawn.z] == [[0, None, 1.234], [None, 0, 2]]
    assert list(drawn.x) == [-1, 0, 1]
    assert (drawn.zmin, drawn.zmax) == (0, 2)
    assert list(figure.layout.yaxis.ticktext) == ["a&lt;i&gt;", "b"]
    assert drawn.customdata[0][0] == "a&lt;i&gt;"


def test_the_map_of_many_windows_has_means_of_stretches() -> None:
    distances = np.full((1, 2 * MAX_POINTS), NAN)
    distances[0, :3] = [0, 1, 2]
    [drawn] = distance_figure(distances, ["a"], first_step=0, x_title="x", one="client").validated().data
    assert len(drawn.x) == MAX_POINTS
    assert list(drawn.z[0][:3]) == [0.5, 2, None]
    assert mean_of_stretches(distances, 1) == pytest.approx(distances, nan_ok=True)


def test_of_many_clients_the_same_ones_are_drawn_every_time() -> None:
    few = np.array([2, 5])
    assert sampled_clients(few) is few
    many = np.arange(3 * MOST_CLIENTS)
    drawn = sampled_clients(many)
    assert len(np.unique(drawn)) == MOST_CLIENTS
    assert (np.diff(drawn) > 0).all()
    assert drawn.tolist() == sampled_clients(many).tolist()
