"""A quantity is declared once: key, estimate and cells follow from its name, its unit and its doc."""

import pytest

from experiments.results.statistics.comparisons import Compared, Comparison, Run
from experiments.results.statistics.horizon import common_horizon
from experiments.results.statistics.scales import index_scale
from experiments.results.statistics.time_to_accuracy import accuracy_curve
from experiments.results.tables import all_quantities
from experiments.results.tables.quantities import (
    POINTS,
    SECONDS,
    SHARE,
    any_measured,
    gain,
    is_ever_above_0,
    means,
    quantity,
)
from tests.experiments.synthetic_runs import a_run


def an_arm(name="fielding", finals=(0.1, 0.5, 0.9), reference=None):
    logs = [a_run(name, seed, [final]) for seed, final in enumerate(finals)]
    curves = [accuracy_curve(log, 1) for log in logs]
    horizon = common_horizon(logs, curves)
    runs = [Run.of(log, curve, horizon) for log, curve in zip(logs, curves, strict=True)]
    return Comparison(name, runs, reference or runs, is_reference=reference is None)


def measured(of, arm):
    return of.measure(arm, Compared([arm], arm.measured[0].horizon))


def last(run):
    """Accuracy at the end."""
    return float(run.log.records[-1].accuracy)


def test_a_function_of_a_run_becomes_a_quantity_of_its_name_and_doc():
    of = quantity(SHARE, "final")(last)
    assert (of.key, of.heading, of.unit) == ("last", "final", SHARE)
    assert (of.meaning, of.missing) == ("accuracy at the end", "")
    assert of(an_arm().measured[1]) == 0.5
    assert measured(of, an_arm()).per_seed == [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("unit", "ends", "shown"),
    [
        (SHARE, (0.0, 1.0), "50.0 %"),
        (POINTS, (pytest.approx(-0.4936, abs=1e-4), pytest.approx(1.4936, abs=1e-4)), "+0.5 pp"),
        (SECONDS, (0.0, pytest.approx(1.4936, abs=1e-4)), "0.50 s"),
        ("visits", (0.0, pytest.approx(1.4936, abs=1e-4)), "0.5"),
    ],
)
def test_its_unit_says_where_its_interval_is_cut_and_how_it_is_written(unit, ends, shown):
    # Mean 0.5, standard deviation 0.4: half the interval is t(0.975, 2) x 0.4 / sqrt(3) = 0.9936.
    arm = an_arm()
    of = quantity(unit, "final")(last)
    arm.figures["last"] = measured(of, arm)
    assert arm["last"].ci95 == ends
    assert of.cells([arm])[0].figure == shown


def test_another_estimator_scale_meaning_and_note_take_the_place_of_its_own():
    of = means("what remains", "if nothing does")(quantity("index", "left", index_scale)(last))
    assert (of.meaning, of.missing) == ("what remains", "if nothing does")
    arm = an_arm()
    assert of.estimates([measured(of, arm)])[0].figure == "0.50"
    of_many = of.noted("A note.", only_if=any_measured)
    assert (of_many.note, of_many.key, of_many.heading) == ("A note.", "last", "left")
    assert of.headed("right").heading == "right"


def test_a_gain_is_paired_by_seed_and_there_is_none_of_the_reference_arm():
    reference = an_arm("global", (0.0, 0.25, 0.5))
    arm = an_arm("fielding", (0.1, 0.5, 0.9), reference.measured)
    of = gain(quantity(SHARE)(last), "gain_pp", "gain")
    assert measured(of, reference) is None
    assert measured(of, arm).per_seed == pytest.approx([10.0, 25.0, 40.0])
    assert measured(gain(last, "gain_s", scale=2.0, unit=SECONDS), arm).per_seed == pytest.approx(
        [0.2, 0.5, 0.8]
    )


def test_a_column_of_numbers_that_are_all_0_says_nothing():
    numbers = quantity("visits")(lambda run: 0.0)
    nothing = measured(numbers, an_arm())
    assert not is_ever_above_0([nothing])
    assert any_measured([nothing])


def test_every_quantity_with_a_heading_says_what_it_means():
    assert [of.key for of in all_quantities().values() if of.heading and not of.meaning] == []
