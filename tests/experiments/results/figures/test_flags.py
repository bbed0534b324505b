from dataclasses import replace

import pytest

import driftscale
from emulator.errors import InputError
from experiments.results.drawing.arms import Arm
from experiments.results.figures.flags import flags_figure, operating_figure
from experiments.results.pages.report_page import write_results
from experiments.results.reading.not_recorded import NotRecordedError
from experiments.results.reading.run_directory import ReportedRun
from experiments.results.statistics.detection.curves import Curve, Point
from experiments.results.statistics.intervals import amount_estimate
from tests.experiments.synthetic_runs import a_detecting_run, a_directory, store

pytestmark = pytest.mark.usefixtures("figures_as_drawn")

DRIFTS = [(3, 0, "sudden", 0, 1), (3, 1, "sudden", 0, 1)]


def a_run(decided, flagged, steps=range(10)) -> ReportedRun:
    run = a_detecting_run("global", 0, decided, flagged, DRIFTS, steps=steps)
    return replace(run, header={**run.header, "num_clients": 4})


def an_arm(run, name="global", position=0) -> Arm:
    return Arm(name, [replace(run, arm=name)], [], position)


def test_flags_are_shares_of_decisions_over_bars_of_drifts():
    run = a_run({2: [0, 1], 4: [0, 1, 2, 3]}, {4: [1]})
    bars, line = flags_figure([an_arm(run)]).validated().data
    assert bars.y.tolist() == [0, 0, 0, 50, 0, 0, 0, 0, 0, 0]
    assert (line.name, line.x.tolist(), line.y.tolist()) == ("watch", [2, 4], [0, 25])


def test_points_of_long_runs_are_of_several_rounds():
    run = a_run({round_: [0, 1] for round_ in range(301)}, {0: [0, 1]}, steps=[0] * 301)
    bars, line = flags_figure([an_arm(run)]).validated().data
    assert (len(line.x), line.x[:2].tolist(), line.y[:2].tolist()) == (
        101,
        [1, 4],
        [pytest.approx(100 / 3), 0],
    )
    assert line.x[-1] == 300  # of one round
    assert bars.width == 3


def test_one_arm_is_shown_at_a_time():
    run = a_run({2: [0]}, {})
    figure = flags_figure([an_arm(run), an_arm(run, "other", 1)]).validated()
    assert [trace.visible for trace in figure.data] == [True, True, False, False]
    assert len(figure.layout.updatemenus[0].buttons) == 2


@pytest.mark.slow
def test_the_figure_is_on_the_page_if_a_detector_made_decisions(tmp_path):
    for name, decided in (("quiet", {}), ("asked", {2: [0]})):
        table = {"positive": "changed", "first_round": 0, "tolerance": 3}
        directory = a_directory(tmp_path / name, ["global"], [0], report={"window": 1}, detection=table)
        store(directory, a_run(decided, {}))
        write_results(directory)
        assert ("Who is flagged, and who drifts" in directory.report_path.read_text()) == bool(decided)


def test_a_notebook_is_told_how_to_record_decisions(tmp_path):
    directory = a_directory(tmp_path, ["global"], [0], report={"window": 1})
    store(directory, a_run({}, {}))
    with pytest.raises(NotRecordedError, match=r"no decisions of detectors; with a table \[detection\]"):
        driftscale.load(tmp_path).plot_flags()


def at(threshold, alarms, found, delay):
    """A point of a curve, of one seed."""
    names = ("false_alarms_per_1000", "recall_all", "delay_rounds_mean")
    figures = zip(names, (alarms, found, delay), strict=True)
    return Point((threshold,), {name: amount_estimate([value]) for name, value in figures})


def test_a_curve_joins_thresholds_by_their_false_alarms():
    curves = [
        Curve("global", "ddm", [at(3.0, 0.0, 0.0, None), at(2.0, 1.5, 0.5, 20.0)]),
        Curve("global", "eddm", [at(0.5, 0.5, 0.2, 40.0), at(0.9, 6.0, 0.8, 10.0)]),
    ]
    figure = operating_figure(curves).validated()
    assert [trace.name for trace in figure.data] == ["ddm (global)", "eddm (global)"] * 2
    found, _, delays, _ = figure.data
    assert (list(found.x), list(found.y), list(found.text)) == ([0.0, 1.5], [0.0, 0.5], ["3", "2"])
    assert (list(delays.x), list(delays.y)) == ([0.0, 1.5], [None, 20.0])  # nothing found, no delay
    assert [trace.visible for trace in figure.data] == [True, True, False, False]
    assert figure.layout.xaxis.range[1] == 4.0


def test_a_notebook_is_told_why_there_are_no_operating_points(tmp_path):
    table = {"positive": "changed", "first_round": 0, "tolerance": 3}
    directory = a_directory(tmp_path, ["global"], [0], report={"window": 1}, detection=table)
    store(directory, a_run({2: [0]}, {}))
    with pytest.raises(InputError, match="cannot be drawn: no detector was played at several thresholds"):
        driftscale.load(tmp_path).plot_operating_points()
