"""Differences over time, of runs whose differences are known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from experiments.results.drawing.arms import Arm
from experiments.results.drawing.style import MAX_POINTS
from experiments.results.figures.difference import (
    MOST_BASES,
    can_be_compared,
    difference_caption,
    difference_curve,
    difference_figure,
)
from experiments.results.statistics.intervals import mean_estimate, pointwise_estimates
from experiments.results.tables.summary import summarise
from tests.experiments.synthetic_runs import a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

ACCURACIES = {
    "global": {0: [0.5, 0.5, 0.5], 1: [0.5, 0.5, 0.5], 2: [0.5, 0.5, 0.5]},
    "fielding": {0: [0.5, 0.75, 0.52], 1: [0.5, 0.75, 0.54], 2: [0.5, 0.75, 0.56]},
}
"""At 10, 20 and 30 s, fielding is 0, then 25, then 2, 4 and 6 percentage points above global."""

HALF = 4.302653 * 2 / math.sqrt(3)
"""Half the 95 % interval of the mean of 2, 4 and 6: t(0.975, 2) = 4.302653, standard deviation 2."""


def compared(accuracies, **settings):
    """(arms, horizon) of runs with these accuracies, by arm and seed."""
    runs = [a_run(arm, seed, values) for arm, seeds in accuracies.items() for seed, values in seeds.items()]
    summary = summarise(runs, **{"name": "x", "window": 1, "reference_arm": runs[0].arm, **settings})
    arms = [Arm(arm.arm, arm.runs, arm.curves, position) for position, arm in enumerate(summary.rows)]
    return arms, summary.horizon


def lines(figure):
    """(name, is shown, y) of each line, without the bands."""
    return [(trace.name, trace.visible, trace.y.tolist()) for trace in figure.data if trace.fill != "toself"]


def test_a_difference_is_the_mean_over_seeds_in_its_t_interval():
    (reference, fielding), horizon = compared(ACCURACIES)
    times_s, mean_pp, half_pp = difference_curve(fielding, reference, horizon)
    assert times_s.tolist() == [10, 20, 30]
    assert mean_pp == pytest.approx([0, 25, 4])
    assert half_pp == pytest.approx([0, 0, HALF], abs=1e-5)
    assert difference_curve(replace(fielding, has_trigger=True), reference, horizon)[2] is None


def test_an_evaluation_holds_until_the_next_one_and_the_last_one_until_the_horizon():
    accuracies = {"global": {0: [0.5, 0.5, 0.5, 0.5]}, "fielding": {0: [0.5, None, 0.75, 1.0]}}
    (reference, fielding), horizon = compared(accuracies, horizon_s=35.0)
    times_s, mean_pp, half_pp = difference_curve(fielding, reference, horizon)
    assert times_s.tolist() == [10, 20, 30, 35]
    assert mean_pp.tolist() == [0, 0, 25, 25]
    assert half_pp is None


def test_only_seeds_that_both_arms_have_are_paired():
    accuracies = {
        "global": {0: [0.25] * 2, 1: [0.5] * 2},
        "static": {1: [0.75] * 2},
        "fielding": {0: [0.5] * 2, 1: [1.0] * 2},
        "late": {0: [0.5] * 2},
    }
    (_, static, fielding, late), horizon = compared(accuracies)
    _, mean_pp, _ = difference_curve(fielding, static, horizon)
    assert mean_pp.tolist() == [25, 25]
    assert difference_curve(late, static, horizon) is None


def test_pointwise_estimates_are_those_of_each_point():
    values = np.array([[0.5, 1.0], [0.75, 3.0], [0.25, 8.0], [0.5, 2.0]])
    means, halves = pointwise_estimates(values)
    for point in range(2):
        estimate = mean_estimate(values[:, point].tolist())
        assert means[point] == estimate.mean
        assert (means[point] - halves[point], means[point] + halves[point]) == estimate.ci95
    assert pointwise_estimates(values[:2])[1] is None


def test_the_band_of_the_figure_runs_along_its_lower_edge_and_back_along_its_upper_one():
    arms, horizon = compared(ACCURACIES)
    band, line = difference_figure(arms, horizon, []).validated().data
    assert band.fill == "toself"
    assert band.x.tolist() == [10, 20, 30, 30, 20, 10]
    assert band.y.tolist() == pytest.approx([0, 25, 4 - HALF, 4 + HALF, 25, 0], abs=1e-4)
    assert (line.name, line.y.tolist()) == ("fielding", pytest.approx([0, 25, 4]))


def test_the_list_of_bases_shows_the_lines_of_one_base():
    accuracies = {"global": {0: [0.25] * 2}, "static": {0: [0.5] * 2}, "fielding": {0: [1.0] * 2}}
    figure = difference_figure(*compared(accuracies), []).validated()
    assert lines(figure) == [
        ("static", True, [25, 25]),
        ("fielding", True, [75, 75]),
        ("global", False, [-25, -25]),
        ("fielding", False, [50, 50]),
        ("global", False, [-75, -75]),
        ("static", False, [-50, -50]),
    ]
    (menu,) = figure.layout.updatemenus
    shown = {button.label: button.args[0]["visible"] for button in menu.buttons}
    assert shown == {
        "base: global": [True, True, False, False, False, False],
        "base: static": [False, False, True, True, False, False],
        "base: fielding": [False, False, False, False, True, True],
    }


@pytest.mark.parametrize("count", [2, MOST_BASES + 1])
def test_of_two_arms_and_of_many_the_reference_is_the_only_base(count):
    arms, horizon = compared({f"arm {number}": {0: [0.5, 0.5]} for number in range(count)})
    figure = difference_figure(arms, horizon, []).validated()
    assert [name for name, _, _ in lines(figure)] == [f"arm {number}" for number in range(1, count)]
    assert not figure.layout.updatemenus
    assert "another base" not in difference_caption(arms, 1)


def test_the_caption_has_bands_only_if_two_arms_share_three_seeds():
    by_seed = {seed: [0.5, 0.5] for seed in range(5)}
    few, _ = compared({"global": by_seed, "fielding": {0: [0.5, 0.5], 1: [0.5, 0.5]}})
    assert "with under 3 seeds there are no bands" in difference_caption(few, 1)
    enough, _ = compared({"global": by_seed, "fielding": {0: [0.5, 0.5], 1: [0.5, 0.5], 4: [0.5, 0.5]}})
    assert "bands are 95 % intervals" in difference_caption(enough, 1)


def test_events_up_to_the_horizon_are_marked_and_zero_is_in_the_figure():
    figure = difference_figure(
        *compared(ACCURACIES, horizon_s=25.0), [(10.0, 12.0), (26.0, 30.0)]
    ).validated()
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [(10, 12)]
    assert (figure.layout.yaxis.rangemode, figure.layout.yaxis.zeroline) == ("tozero", True)


def test_a_long_difference_is_thinned():
    count = 2 * MAX_POINTS
    (reference, fielding), horizon = compared({"global": {0: [0.5] * count}, "fielding": {0: [0.75] * count}})
    times_s, _, _ = difference_curve(fielding, reference, horizon)
    assert len(times_s) == MAX_POINTS
    assert (times_s[0], times_s[-1]) == (10.0, 10.0 * count)


def test_without_a_stretch_of_time_there_is_nothing_to_compare():
    (reference, fielding), horizon = compared(ACCURACIES)
    assert can_be_compared([reference, fielding], horizon)
    assert not can_be_compared([reference], horizon)
    empty = replace(horizon, start_s=30.0, horizon_s=30.0)
    assert not can_be_compared([reference, fielding], empty)
    assert difference_curve(fielding, reference, empty) is None
