import pytest

from experiments.results.drawing.style import MOST_EVENTS
from experiments.results.figures.accuracy import accuracy_figure
from tests.experiments.results.drawn import a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_moving_run, a_run

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
