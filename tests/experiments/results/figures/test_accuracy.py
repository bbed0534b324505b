from dataclasses import replace

import pytest

from experiments.results.drawing.style import MOST_EVENTS
from experiments.results.figures.accuracy import accuracy_figure, mass_events_s
from tests.experiments.results.drawn import a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_run

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


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


def test_one_seed_is_one_line():
    summary = a_summary([a_run("global", 0, [0.5])])
    assert len(traces(accuracy_figure(drawn_arms(summary), summary.horizon, []).validated(), "scatter")) == 1


def a_moving_run(seed, steps, rounds_per_step=2, rounds=6):
    """A run of ten-second rounds in which two of three clients have an onset at each of `steps`."""
    run = a_run("global", seed, [0.5] * rounds)
    records = [replace(record, step=record.round // rounds_per_step) for record in run.records]
    onsets = {"steps": steps, "counts": [2] * len(steps), "clients": [[0, 2]] * len(steps)}
    return replace(run, header={"num_clients": 3, "onsets": onsets}, records=records)


def test_a_mass_event_opens_with_the_first_round_of_its_data_step():
    assert mass_events_s(a_moving_run(0, [1, 2])) == {1: 20.0, 2: 40.0}
    assert mass_events_s(a_moving_run(0, [1, 9])) == {1: 20.0}  # the run ends before data step 9
    few = a_moving_run(0, [1])
    few.header["num_clients"] = 5
    assert mass_events_s(few) == {}
    assert mass_events_s(a_run("global", 0, [0.5])) == {}


def test_of_nominal_rounds_a_mass_event_is_at_the_first_opening_in_it_or_after_it():
    run = a_moving_run(0, [1, 2])  # rounds of 10 s, two of them a data step
    assert mass_events_s(run, [2], 10.0) == {2: 40.0}
    assert mass_events_s(run, [1], 20.0) == {2: 40.0}
    without_a_step = replace(run, records=[record for record in run.records if record.step != 1])
    assert mass_events_s(without_a_step) == {1: 40.0, 2: 40.0}  # both took effect there


CONFIGURED = [([1], [2]), ([2], [2]), ([3], [1]), ([0], [1, 2]), ([2, 4], [])]


@pytest.mark.parametrize(("configured", "others"), CONFIGURED)
def test_a_mass_event_of_the_configuration_is_no_other_one(configured, others):
    assert list(mass_events_s(a_moving_run(0, [1, 2]), configured)) == others


def test_mass_events_of_the_logs_are_marked_beside_those_of_the_configuration():
    runs = [a_moving_run(0, [1, 2]), a_moving_run(1, [2])]
    summary = a_summary(runs, event_rounds=[1])
    figure = accuracy_figure(drawn_arms(summary), summary.horizon, []).validated()
    bands = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert bands == [(10, 10), (40, 40)]  # of seed 0, data step 1 is that of round 1; both have data step 2


def test_many_mass_events_are_not_marked():
    run = a_moving_run(0, list(range(1, MOST_EVENTS + 2)), rounds_per_step=1, rounds=MOST_EVENTS + 2)
    summary = a_summary([run])
    figure = accuracy_figure(drawn_arms(summary), summary.horizon, []).validated()
    assert not any(shape.type == "rect" for shape in figure.layout.shapes)
