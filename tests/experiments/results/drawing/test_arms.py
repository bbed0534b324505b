import numpy as np
import pytest

from experiments.results.drawing.arms import REFERENCE_COLOUR, TIED, Arm, add_line
from experiments.results.drawing.plain_figure import PlainFigure
from experiments.results.drawing.style import EVENT_COLOUR, spread

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def test_seeds_of_different_speed_share_a_grid_where_all_of_them_run():
    grid, mean, _, _ = spread(
        [(np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 4.0])), (np.array([2.0, 4.0]), np.array([1.0, 3.0]))]
    )
    assert grid.tolist() == [2.0, 3.0, 4.0]
    assert mean.tolist() == [0.5, 1.5, 2.5]


def arms_at(positions, **changes):
    return [Arm(f"arm {position}", [], [], position, **changes) for position in positions]


def test_no_two_of_twelve_arms_have_one_colour_and_none_has_that_of_the_mass_event():
    colours = [arm.colour for arm in arms_at(range(12))]
    assert colours[0] == REFERENCE_COLOUR
    assert len(set(colours)) == 12
    assert EVENT_COLOUR not in colours


def test_no_two_arms_have_one_pair_of_dash_and_symbol_so_that_they_differ_without_colours():
    arms = arms_at(range(32))
    assert len({(arm.line["dash"], arm.symbol) for arm in arms}) == 32
    assert {arm.line["dash"] for arm in arms[:8]} == {"solid"}


def test_an_arm_that_ties_is_drawn_narrow_and_dashed_over_the_earlier_one_and_stays_in_the_legend():
    figure = PlainFigure()
    earlier, [later] = arms_at([1]), arms_at([2], ties=True)
    for arm in (*earlier, later):
        add_line(figure, arm, [0, 1], [0.5, 0.5])
    lines = [trace["line"] for trace in figure.data]
    assert [line["dash"] for line in lines] == ["solid", TIED["dash"]]
    assert lines[1]["width"] < lines[0]["width"]
    assert [trace["name"] for trace in figure.data] == ["arm 1", "arm 2"]
    assert lines[0]["color"] != lines[1]["color"]


def test_a_line_has_a_few_of_its_arms_symbols():
    figure = PlainFigure()
    [arm] = arms_at([4])
    add_line(figure, arm, np.arange(400), np.arange(400))
    [trace] = figure.validated().data
    assert (trace.mode, trace.marker.symbol, trace.marker.maxdisplayed) == ("lines+markers", arm.symbol, 8)
