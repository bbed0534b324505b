from dataclasses import replace

import pytest

from experiments.results.drawing.style import MOST_EVENTS
from experiments.results.figures.accuracy import FIGURE, PERSONAL, accuracy_figure
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.results.drawn import a_summary, drawn_arms, traces
from tests.experiments.synthetic_runs import a_directory, a_moving_run, a_run, store

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


def a_personal_run(seed, served, personal):
    run = a_run("ditto", seed, served)
    records = [
        replace(record, personal_accuracy=value) for record, value in zip(run.records, personal, strict=True)
    ]
    return replace(run, records=records)


def a_report(path, runs, window=1):
    arms = list(dict.fromkeys(run.arm for run in runs))
    directory = a_directory(path, arms, sorted({run.seed for run in runs}), report={"window": window})
    for run in runs:
        store(directory, run)
    stored = directory.reported_runs()
    return Report(directory, stored, summarise_directory(directory, stored))


def test_the_personal_accuracy_of_an_arm_is_a_line_beside_the_dotted_one_of_its_accuracy(tmp_path):
    runs = [
        *(a_run("global", seed, [0.25, 0.5, 0.5]) for seed in (0, 1)),
        a_personal_run(0, [0.25, 0.5, 0.5], [0.5, None, 1.0]),
        a_personal_run(1, [0.75, 0.5, 0.5], [0.25, None, 0.5]),
    ]
    [plot] = PERSONAL.plots(a_report(tmp_path, runs))
    plain, personal, served = traces(plot.figure.validated(), "scatter")
    assert [line.name for line in (plain, personal, served)] == [
        *("global, served", "ditto, personal", "ditto, served")
    ]
    assert plain.line.dash == "solid"
    assert (personal.x.tolist(), personal.y.tolist()) == ([10, 30], [37.5, 75])
    assert (served.x.tolist(), served.y.tolist()) == ([10, 20, 30], [50, 50, 50])
    assert personal.line.color == served.line.color
    assert (personal.line.dash, served.line.dash) == ("solid", "dot")
    assert "means over 2 seeds" in plot.caption
    assert "what each scored client would use itself" in plot.caption


def test_of_arms_with_unequal_numbers_of_seeds_the_caption_has_the_fewest_and_the_most(tmp_path):
    runs = [a_run("global", seed, [0.25, 0.5]) for seed in range(3)] + [a_run("fielding", 0, [0.25, 0.5])]
    [plot] = FIGURE.plots(a_report(tmp_path / "unequal", runs))
    assert "Thick lines are means over 1 to 3 seeds, " in plot.caption
    [plot] = FIGURE.plots(a_report(tmp_path / "equal", runs[:3]))
    assert "Thick lines are means over 3 seeds, " in plot.caption


def test_personal_accuracy_is_smoothed_as_the_report_smooths_accuracy(tmp_path):
    [plot] = PERSONAL.plots(a_report(tmp_path, [a_personal_run(0, [0.5] * 3, [0.0, 1.0, 1.0])], window=2))
    personal, _ = traces(plot.figure.validated(), "scatter")
    assert personal.y.tolist() == [0, 50, 100]


def test_without_a_personal_accuracy_there_is_no_figure(tmp_path):
    assert PERSONAL.plots(a_report(tmp_path, [a_run("global", 0, [0.5])])) == []
    assert PERSONAL.absence == "no arm has a personal accuracy"
