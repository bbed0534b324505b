import pytest

from experiments.formats import (
    bytes_scale,
    count_scale,
    factor_scale,
    percent_scale,
    points_scale,
    show_estimate,
    time_scale,
)


@pytest.mark.parametrize(
    ("pick_scale", "value", "shown"),
    [
        (time_scale, 0.0, "0.00 s"),
        (time_scale, 119.0, "119 s"),
        (time_scale, 120.0, "2.00 min"),
        (time_scale, 7_200.0, "2.00 h"),
        (time_scale, 864_000.0, "10.0 d"),
        (bytes_scale, 999.0, "999 B"),
        (bytes_scale, 2.5e12, "2.50 TB"),
        (percent_scale, 0.7134, "71.3 %"),
        (points_scale, -0.01, "+0.0 pp"),
        (points_scale, -2.0, "-2.0 pp"),
        (factor_scale, 123.4, "123x"),
        (count_scale, 0.6, "0.6"),
    ],
)
def test_a_number_reads_as_people_write_it(pick_scale, value, shown):
    assert pick_scale(value)(value) == shown


def test_an_interval_has_the_unit_of_its_mean():
    estimate = {"mean": 7_200.0, "ci95": [3_600.0, 10_800.0]}
    assert show_estimate(estimate, time_scale(7_200.0)) == ("2.00 h", "[1.00, 3.00]")


def test_one_seed_shows_no_interval_and_nothing_measured_says_so():
    assert show_estimate({"mean": 1.0, "ci95": None}, factor_scale(1.0)) == ("1.00x", "")
    assert show_estimate({"mean": None, "ci95": None}, factor_scale(1.0)) == ("n/a", "")
