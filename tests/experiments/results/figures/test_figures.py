import dataclasses
import math

import numpy as np
import pytest

from experiments.results.drawing.arms import REFERENCE_COLOUR, Arm
from experiments.results.drawing.style import MAX_POINTS, NO_CLUSTER_COLOUR, spread
from experiments.results.figures.accuracy import accuracy_figure
from experiments.results.figures.below import below_figure
from experiments.results.figures.client_distance import client_distance, client_distance_figure
from experiments.results.figures.clusters import clustered_run, is_thinned, membership_figure
from experiments.results.figures.outcomes import outcomes_figure
from experiments.results.figures.speedups import speedup_figure
from experiments.results.reading.run_directory import FinishedRun
from experiments.results.statistics.intervals import mean_estimate
from experiments.results.statistics.medians import Bounds, median_estimate
from experiments.results.tables.summary import summarise
from experiments.results.tables.table import Row
from experiments.results.tables.targets import TargetTable, target_table
from tests.experiments.synthetic_runs import TIMING, a_record, a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def a_summary(runs, **settings):
    return summarise(runs, **{"name": "x", "window": 1, "reference_arm": runs[0].arm, **settings})


def drawn_arms(summary):
    return [Arm(arm.arm, arm.runs, arm.curves, position) for position, arm in enumerate(summary.compared)]


def a_clustered_run(memberships, **changes):
    """A run with a round for each entry of `memberships`; None leaves memberships unchanged."""
    records = [
        a_record(number, members=None if members is None else np.array(members), clusters=[0, 1], **changes)
        for number, members in enumerate(memberships)
    ]
    return FinishedRun("fielding", 0, {}, records, TIMING)


def traces(figure, kind):
    return [trace for trace in figure.data if trace.type == kind]


def test_accuracy_is_a_thick_line_for_the_mean_and_a_thin_one_for_each_seed():
    summary = a_summary([a_run("global", 0, [0.25, 0.5]), a_run("global", 1, [0.75, 1.0])])
    first, second, mean = traces(
        accuracy_figure(drawn_arms(summary), summary.horizon, []).validated(), "scatter"
    )
    assert mean.x.tolist() == [10, 20]
    assert first.y.tolist() == [25, 50]
    assert second.y.tolist() == [75, 100]
    assert mean.y.tolist() == [50, 75]
    assert first.line.width < mean.line.width
    assert [trace.showlegend for trace in (first, second, mean)] == [False, False, None]


def test_start_horizon_events_and_targets_are_marked():
    summary = a_summary(
        [a_run("global", 0, [0.25, 0.5, 0.5, 0.5]), a_run("fielding", 0, [None, 0.5, 0.5, 0.5])],
        horizon_s=35.0,
        event_rounds=[2],
    )
    figure = accuracy_figure(drawn_arms(summary), summary.horizon, [0.4]).validated()
    assert {note.text for note in figure.layout.annotations} == {
        *("start", "horizon", "mass event", "target<br>40.0 %")
    }
    spans = [(shape.x0, shape.x1, shape.y0) for shape in figure.layout.shapes]
    assert spans == [(20, 20, 0), (20, 20, 0), (35, 35, 0), (0, 1, 40)]


def target_tables(summary, *targets):
    return [target_table(target, summary.comparison) for target in targets]


def test_time_below_is_drawn_against_every_target_in_the_band_of_its_interval():
    seeds = [[0.25, 0.5, 0.5], [0.25, 0.25, 0.5], [0.25, 0.25, 0.25]]
    summary = a_summary([a_run("global", seed, accuracy) for seed, accuracy in enumerate(seeds)])
    figure = below_figure(drawn_arms(summary), target_tables(summary, 0.2, 0.5), summary.horizon).validated()
    low, high, median = traces(figure, "scatter")
    assert list(median.x) == [20, 50]
    assert list(median.y) == [10, 30]
    assert list(low.y) == [10, 20]
    assert list(high.y) == [10, 30]


def test_speed_ups_that_are_only_bounded_point_where_they_may_lie():
    runs = [a_run("global", seed, [0.25, 0.5, 0.5, 0.75]) for seed in range(3)]
    runs += [a_run("fielding", seed, [0.25, 0.75, 0.75, 0.8]) for seed in range(3)]
    runs += [a_run("slow", seed, [0.25, 0.25, 0.25, 0.5]) for seed in range(3)]
    summary = a_summary(runs)
    figure = speedup_figure(drawn_arms(summary), target_tables(summary, 0.5, 0.75, 0.8)).validated()
    lines = {trace.name: list(trace.y) for trace in traces(figure, "scatter") if trace.name}
    assert lines == {"fielding": [1.0, 2.0, None], "slow": [0.5, None, None]}
    marks = [
        (trace.marker.symbol, list(trace.x), list(trace.y))
        for trace in traces(figure, "scatter")
        if trace.mode == "markers"
    ]
    assert marks == [("triangle-up", [80], [1.0]), ("triangle-down", [75], [1.0])]


def test_what_a_logarithmic_axis_cannot_show_is_not_drawn_on_it():
    # All seeds of global hold it from 20 s; of fielding, from the first evaluation, from 20 s, and never.
    runs = [a_run("global", seed, [0.25, 0.5, 0.5, 0.5]) for seed in range(3)]
    runs += [
        a_run("fielding", seed, values)
        for seed, values in enumerate([[0.5] * 4, [0.25, 0.5, 0.5, 0.5], [0.25, 0.5, 0.5, 0.25]])
    ]
    summary = a_summary(runs)
    table = target_tables(summary, 0.5)
    assert table[0].rows[1]["speedup"].interval == Bounds(0.0, math.inf)
    drawn = traces(speedup_figure(drawn_arms(summary), table).validated(), "scatter")
    assert [list(trace.y) for trace in drawn] == [[1.0]]


def test_a_median_between_two_bounds_is_a_bar():
    table = TargetTable(0.5, mean_estimate([0.5]), [])
    median = median_estimate([Bounds(1.0, 2.0)] * 3, geometric=True)
    unknown = median_estimate([Bounds(0.0, math.inf)] * 3)
    rows = [Row(arm, {"time_below_s": unknown, "speedup": median}) for arm in ("global", "fielding")]
    summary = a_summary([a_run("global", 0, [0.5]), a_run("fielding", 0, [0.5])])
    figure = speedup_figure(drawn_arms(summary), [dataclasses.replace(table, rows=rows)]).validated()
    assert any(list(trace.x) == [50, 50] and list(trace.y) == [1.0, 2.0] for trace in figure.data)


def test_two_seeds_are_dots_and_no_band():
    summary = a_summary([a_run("global", 0, [0.25, 0.5, 0.5]), a_run("global", 1, [0.25, 0.25, 0.5])])
    figure = below_figure(drawn_arms(summary), target_tables(summary, 0.5), summary.horizon).validated()
    dots, median = traces(figure, "scatter")
    assert list(dots.y) == [20, 30]
    assert list(median.y) == [25]


def test_seeds_of_different_speed_share_a_grid_where_all_of_them_run():
    grid, mean, _, _ = spread(
        [(np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 4.0])), (np.array([2.0, 4.0]), np.array([1.0, 3.0]))]
    )
    assert grid.tolist() == [2.0, 3.0, 4.0]
    assert mean.tolist() == [0.5, 1.5, 2.5]


def test_one_seed_is_one_line():
    summary = a_summary([a_run("global", 0, [0.5])])
    assert len(traces(accuracy_figure(drawn_arms(summary), summary.horizon, []).validated(), "scatter")) == 1


def test_global_reclusterings_are_marked_in_both_pictures():
    run = a_clustered_run([[0, 1], None, [1, 0]])
    run.records[2] = a_record(2, members=np.array([1, 0]), clusters=[0, 1], reclustered=True)
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


def test_the_map_leaves_white_where_a_client_holds_no_data():
    (heat,) = traces(membership_figure(a_clustered_run([[-1, 3, 3], [3, 3, -1]])).validated(), "heatmap")
    assert list(heat.colorbar.ticktext) == ["none", "3"]
    assert heat.colorscale[0][1] == NO_CLUSTER_COLOUR


def test_the_map_sorts_clients_by_their_sequence_and_holds_memberships_until_they_change():
    figure = membership_figure(a_clustered_run([[7, 3, 7], None, [3, 3, 7]])).validated()
    (heat,) = traces(figure, "heatmap")
    assert list(heat.y) == ["client 1", "client 0", "client 2"]
    assert heat.z.tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert heat.colorbar.ticktext == ("3", "7")


def test_a_cluster_keeps_its_colour_whichever_others_there_are():
    def colours(labels):
        (heat,) = traces(membership_figure(a_clustered_run([labels])).validated(), "heatmap")
        return {
            label: heat.colorscale[2 * position][1] for position, label in enumerate(heat.colorbar.ticktext)
        }

    assert colours([0, 2, 5])["5"] == colours([5, 9, 9])["5"]


def test_the_map_of_many_clients_and_rounds_is_thinned():
    members = [client % 2 for client in range(3 * MAX_POINTS)]
    run = a_clustered_run([members] + [None] * (2 * MAX_POINTS))
    (heat,) = traces(membership_figure(run).validated(), "heatmap")
    assert heat.z.shape == (MAX_POINTS, MAX_POINTS)
    assert (heat.x[0], heat.x[-1]) == (0, 2 * MAX_POINTS)
    assert is_thinned(run)


def test_an_arm_of_one_cluster_has_no_map():
    (arm,) = drawn_arms(a_summary([a_run("global", 0, [0.5])]))
    assert clustered_run(arm) is None


def test_outcomes_are_means_per_round():
    run = a_run("global", 0, [0.5, 0.5])
    run.records[1] = a_record(1, completed=[0], dropped=[])
    bars = traces(outcomes_figure(drawn_arms(a_summary([run]))).validated(), "bar")
    assert {bar.name: list(bar.x) for bar in bars} == {
        "completed": [2.0],
        "abandoned": [1.5],
        "dropped out": [0.5],
    }


def test_every_arm_looks_different_and_the_reference_is_grey():
    arms = [Arm(f"arm {position}", [], [], position) for position in range(25)]
    assert arms[0].colour == REFERENCE_COLOUR
    assert len({(arm.line["color"], arm.line["dash"]) for arm in arms}) == 25
    assert len({(arm.colour, arm.symbol) for arm in arms}) == 25
