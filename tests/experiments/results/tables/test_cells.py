import math

import pytest

from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import UNKNOWN, Bounds, exactly, median_estimate
from experiments.results.statistics.scales import (
    bytes_scale,
    count_scale,
    factor_scale,
    percent_scale,
    points_scale,
    signed_time_scale,
    time_scale,
)
from experiments.results.tables.cells import Cell, show_bounds, show_estimate, show_median

INF = math.inf


@pytest.mark.parametrize(
    ("pick_scale", "value", "shown"),
    [
        (time_scale, 0.0, "0 s"),
        (time_scale, 119.0, "119 s"),
        (time_scale, 120.0, "2.00 min"),
        (time_scale, 7_200.0, "2.00 h"),
        (time_scale, 864_000.0, "10.0 d"),
        (signed_time_scale, 9_000.0, "+2.50 h"),
        (bytes_scale, 999.0, "999 B"),
        (bytes_scale, 2.5e12, "2.50 TB"),
        (percent_scale, 0.7134, "71.3 %"),
        (points_scale, -0.01, "+0.0 pp"),
        (points_scale, -2.0, "-2.0 pp"),
        (factor_scale, 123.4, "123x"),
        (factor_scale, 9.996, "10.0x"),
        (time_scale, 35_999.0, "10.0 h"),
        (count_scale, 0.6, "0.6"),
    ],
)
def test_a_number_reads_as_people_write_it(pick_scale, value, shown):
    assert pick_scale(value)(value) == shown


def test_an_interval_has_the_unit_of_its_mean():
    estimate = Estimate(7_200.0, (3_600.0, 10_800.0), [7_200.0] * 3)
    assert show_estimate(estimate, time_scale(7_200.0)) == Cell("2.00 h", "[1.00, 3.00]")


def test_two_seeds_are_dots_and_one_is_the_figure_itself():
    assert show_estimate(Estimate(2.0, None, [1.0, 3.0]), factor_scale(2.0)) == Cell("2.00x", "· 1.00 · 3.00")
    assert show_estimate(Estimate(1.0, None, [1.0]), factor_scale(1.0)) == Cell("1.00x")
    two = median_estimate([exactly(3_600.0), Bounds(7_200.0, INF)])
    assert show_median(two, time_scale(7_200.0)) == Cell(">= 1.50 h", "· 1.00 h · >= 2.00 h")


def test_a_figure_that_was_not_measured_is_shown_as_n_a():
    assert show_estimate(Estimate(None, None, [None, 0.5]), factor_scale(1.0)) == Cell("n/a")


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.3, 1.3, "1.30x"),
        (1.3, INF, ">= 1.30x"),
        (0.0, 1.3, "<= 1.30x"),
        (0.0, INF, "undetermined"),
        (0.8, 1.3, "0.80-1.30x"),
    ],
)
def test_a_median_is_written_with_the_sign_of_what_is_known_of_it(low, high, shown):
    assert show_bounds(Bounds(low, high), factor_scale(1.0)) == shown


def test_an_interval_may_be_open_and_one_that_tells_nothing_is_left_out():
    one_sided = median_estimate([exactly(2.0), Bounds(3.0, INF), exactly(1.0)])
    assert show_median(one_sided, factor_scale(2.0)) == Cell("2.00x", "[1.00, inf)")
    nothing = median_estimate([Bounds(0.0, INF)] * 3)
    assert show_median(nothing, factor_scale(1.0)) == Cell("undetermined")
    assert show_median(median_estimate([UNKNOWN] * 3), factor_scale(1.0)) == Cell("undetermined")
