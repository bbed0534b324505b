"""The figure of the true drift, of headers made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.results.drawing.plot import Plot
from experiments.results.figures.drift import (
    FIGURE,
    MOST_CLIENTS,
    MOST_MARKS,
    concept_figure,
    onset_figure,
)
from experiments.results.reading.header_truth import KnownOnsets, known_onsets
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.results.drawn import traces
from tests.experiments.synthetic_runs import a_directory, a_run, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def known(header: dict[str, Any]) -> KnownOnsets:
    found = known_onsets(header)
    assert found is not None
    return found


def plots(folder: Path, header: dict[str, Any], seeds: int = 1) -> list[Plot]:
    """The plots of a report of runs with this header, of two rounds in each of three data steps."""
    directory = a_directory(folder / "run", ["global"], range(seeds))
    for seed in range(seeds):
        run = a_run("global", seed, [0.5] * 6)
        records = [replace(record, step=record.round // 2) for record in run.records]
        store(directory, replace(run, header={**header}, records=records))
    runs = directory.reported_runs()
    return FIGURE.plots(Report(directory, runs, summarise_directory(directory, runs)))


def test_concepts_are_rows_of_clients_sorted_by_their_sequences_with_onsets_at_the_borders() -> None:
    rows = [[7, 7, 7], [9, 7, 7], [9, 7, 8], [9, 9, 9]]
    figure = concept_figure(np.array(rows)[:-1], known({"concepts": rows})).validated()
    [heat], [marks] = traces(figure, "heatmap"), traces(figure, "scatter")
    assert (heat.x.tolist(), heat.y.tolist()) == ([0, 1, 2], [1, 2, 0])
    assert heat.z.tolist() == [[0, 0, 0], [0, 0, 1], [0, 2, 2]]
    assert heat.colorbar.ticktext == ("7", "8", "9")
    assert list(zip(marks.x.tolist(), marks.y.tolist(), strict=True)) == [(0.5, 0), (1.5, 2)]
    assert figure.layout.yaxis.type == "category"
    assert figure.layout.shapes == ()


def test_a_mass_event_is_a_line_at_the_beginning_of_its_data_step() -> None:
    rows = [[0, 0, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]]
    figure = concept_figure(np.array(rows)[:-1], known({"concepts": rows})).validated()
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(0.5, 0.5)]
    assert [note.text for note in figure.layout.annotations] == ["▼"]


def test_of_many_clients_some_are_drawn_and_of_many_onsets_none_is_marked() -> None:
    clients = 3 * MOST_CLIENTS
    rows = np.zeros((4, clients), dtype=np.int64)
    rows[1:] = 1
    figure = concept_figure(rows[:-1], known({"concepts": rows.tolist()})).validated()
    [heat], [marks] = traces(figure, "heatmap"), traces(figure, "scatter")
    assert heat.z.shape == (MOST_CLIENTS, 3)
    assert sorted(marks.y.tolist()) == sorted(heat.y.tolist())
    busy = np.arange(MOST_MARKS // MOST_CLIENTS + 3)[:, None] * np.ones((1, clients), dtype=np.int64)
    assert traces(concept_figure(busy[:-1], known({"concepts": busy.tolist()})).validated(), "scatter") == []


def test_without_concepts_rows_are_the_clients_with_an_onset_by_their_first() -> None:
    onsets = {"steps": [1, 2], "counts": [1, 3], "clients": [[6], [0, 6, 8]]}
    figure = onset_figure(known({"onsets": onsets}), num_clients=9, last_step=4).validated()
    [marks] = traces(figure, "scatter")
    assert list(zip(marks.y.tolist(), marks.x.tolist(), strict=True)) == [(6, 1), (6, 2), (0, 2), (8, 2)]
    assert figure.layout.xaxis.range == (-0.5, 4.5)


def test_where_only_numbers_of_onsets_are_known_their_share_of_the_clients_is_drawn() -> None:
    onsets = {"steps": [1, 3], "counts": [2, 5]}
    figure = onset_figure(known({"onsets": onsets}), num_clients=8, last_step=3).validated()
    [bars] = traces(figure, "bar")
    assert (bars.x.tolist(), bars.y.tolist()) == ([1, 3], [25.0, 62.5])
    assert [shape.x0 for shape in figure.layout.shapes] == [2.5]


def test_a_report_draws_one_seed_and_says_so(tmp_path: Path) -> None:
    rows = [[0, 0, 0, 0], [0, 0, 0, 3], [0, 0, 0, 3], [0, 0, 0, 3]]
    [plot] = plots(tmp_path, {"concepts": rows}, seeds=2)
    assert plot.title == "Which concept each client had: seed 0"
    assert "one of 2 seeds is drawn" in plot.caption
    assert "Black marks are onsets" in plot.caption
    assert "▼" not in plot.caption
    assert "1 onset of 1 of 4 clients; no mass event." in plot.caption
    assert plot.alternative.endswith("Horizontal axis: data step. 1 onset of 1 of 4 clients; no mass event.")


def test_a_report_of_onsets_without_concepts_says_who_moved(tmp_path: Path) -> None:
    onsets = {"steps": [2], "counts": [3], "clients": [[0, 1, 3]]}
    [plot] = plots(tmp_path, {"num_clients": 4, "onsets": onsets})
    assert plot.title == "Who began to receive other data, and when"
    assert "Clients without one have no row." in plot.caption
    assert "Dashed lines under ▼ are mass events" in plot.caption
    assert "drawn" not in plot.caption


def test_one_concept_with_tests_of_another_is_drawn_by_its_onsets(tmp_path: Path) -> None:
    tests = [[0] * 4, [0] * 4, [5, 0, 0, 0]]
    header = {"concepts": [[0] * 4] * 4, "test_then_train": False, "test_concepts": tests}
    [plot] = plots(tmp_path, header)
    assert plot.title == "Who began to receive other data, and when"
    assert "1 onset of 1 of 4 clients" in plot.caption


@pytest.mark.parametrize("header", [{}, {"num_clients": 4}, {"concepts": [[2] * 4] * 4}])
def test_a_report_without_drift_in_its_logs_has_no_figure(tmp_path: Path, header: dict[str, Any]) -> None:
    assert plots(tmp_path, header) == []
