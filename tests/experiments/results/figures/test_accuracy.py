import pytest

from experiments.results.figures.accuracy import accuracy_figure
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
