from dataclasses import replace

import pytest

from experiments.results.figures.personal import FIGURE
from experiments.results.tables.report import Report
from experiments.results.tables.summary import summarise_directory
from tests.experiments.results.drawn import traces
from tests.experiments.synthetic_runs import a_directory, a_run, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


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
    [plot] = FIGURE.plots(a_report(tmp_path, runs))
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


def test_personal_accuracy_is_smoothed_as_the_report_smooths_accuracy(tmp_path):
    [plot] = FIGURE.plots(a_report(tmp_path, [a_personal_run(0, [0.5] * 3, [0.0, 1.0, 1.0])], window=2))
    personal, _ = traces(plot.figure.validated(), "scatter")
    assert personal.y.tolist() == [0, 50, 100]


def test_without_a_personal_accuracy_there_is_no_figure(tmp_path):
    assert FIGURE.plots(a_report(tmp_path, [a_run("global", 0, [0.5])])) == []
    assert FIGURE.absence == "no arm has a personal accuracy"
