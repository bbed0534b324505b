import dataclasses

import numpy as np
import pytest

from experiments.results.figures.client_distance import client_distance, client_distance_figure
from experiments.results.figures.clusters import membership_figure
from tests.experiments.results.drawn import a_clustered_run, a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_record, a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def test_global_reclusterings_are_marked_in_both_pictures():
    completed = [0, 1]
    run = a_clustered_run([[0, 1], None, [1, 0]], completed=completed)
    run.records[2] = a_record(
        2, members=np.array([1, 0]), clusters=[0, 1], reclustered=True, completed=completed
    )
    heterogeneity = client_distance_figure(drawn_arms(a_summary([run]))).validated()
    (marks,) = [trace for trace in traces(heterogeneity, "scatter") if trace.mode == "markers"]
    assert marks.x.tolist() == [2]
    assert [shape.x0 for shape in membership_figure(run).validated().layout.shapes] == [1.5]


def test_the_axis_of_distances_names_the_measure_as_text():
    run = a_run("global", 0, [0.5])
    figure = client_distance_figure(drawn_arms(a_summary([run]))).validated()
    assert figure.layout.yaxis.title.text == "mean client distance (L1 distance of label shares)"
    header = {"client_distance": {"kind": "embedding", "distance": "squared_euclidean"}}
    run = dataclasses.replace(run, header=header)
    assert client_distance(run) == ("squared Euclidean distance of mean embeddings by the reference model")
    header = {"client_distance": {"kind": "<b>mine", "distance": "cosine"}}
    figure = client_distance_figure(
        drawn_arms(a_summary([dataclasses.replace(run, header=header)]))
    ).validated()
    assert figure.layout.yaxis.title.text == "mean client distance (cosine distance of &lt;b&gt;mine)"


def test_distances_that_were_never_measured_draw_no_line():
    run = a_run("global", 0, [0.5], mean_client_distance=None, unclustered_distance=None)
    assert not client_distance_figure(drawn_arms(a_summary([run]))).validated().data
