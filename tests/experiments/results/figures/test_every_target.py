import dataclasses
import math

import pytest

from experiments.results.figures.every_target import below_figure, speedup_figure
from experiments.results.statistics.comparisons import Comparison
from experiments.results.statistics.intervals import mean_estimate
from experiments.results.statistics.medians import Bounds, median_estimate
from experiments.results.statistics.targets import TargetTable, target_table
from tests.experiments.results.drawn import a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


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
    rows = [
        Comparison(arm, [], [], False, figures={"time_below_s": unknown, "speedup": median})
        for arm in ("global", "fielding")
    ]
    summary = a_summary([a_run("global", 0, [0.5]), a_run("fielding", 0, [0.5])])
    figure = speedup_figure(drawn_arms(summary), [dataclasses.replace(table, rows=rows)]).validated()
    assert any(list(trace.x) == [50, 50] and list(trace.y) == [1.0, 2.0] for trace in figure.data)


def test_two_seeds_are_dots_and_no_band():
    summary = a_summary([a_run("global", 0, [0.25, 0.5, 0.5]), a_run("global", 1, [0.25, 0.25, 0.5])])
    figure = below_figure(drawn_arms(summary), target_tables(summary, 0.5), summary.horizon).validated()
    dots, median = traces(figure, "scatter")
    assert list(dots.y) == [20, 30]
    assert list(median.y) == [25]
