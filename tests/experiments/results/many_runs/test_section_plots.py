"""The figures of a folder's page, of runs whose gains are known."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.results.many_runs.directories import MeasuredDirectory, reduced
from experiments.results.many_runs.section_plots import section_plots
from experiments.results.many_runs.sections import compare, sections
from experiments.results.pages.folder_page import MOST_OPEN_ROWS, render_table
from experiments.results.reading.json_files import Command, Manifest, SweepCell
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.statistics.published import COMPARED
from tests.experiments.results.many_runs.test_sections import HALF, ONE, OTHER, WORLD, constant
from tests.experiments.synthetic_runs import a_run

STARTED = "2026-01-31T12:00:00Z"

pytestmark = pytest.mark.usefixtures("figures_as_drawn")


def a_measured_run(arm, seed, accuracies, events_s):
    return replace(reduced(a_run(arm, seed, accuracies), None, 1), events_s=events_s)


def a_directory(name, accuracies, *, swept=None, events_s=(), command=None, **changes):
    """A run directory in memory, of runs that are evaluated in each round, with keys of a configuration."""
    experiment = {
        "report": {"window": 1},
        "trace": {},
        "arm": [{"name": arm} for arm in accuracies],
        **changes,
    }
    runs = [
        a_measured_run(arm, seed, values, events_s)
        for arm, by_seed in accuracies.items()
        for seed, values in by_seed.items()
    ]
    manifest = Manifest(
        sha256={str(seed): WORLD for seed in range(3)},
        sweep=None if swept is None else SweepCell(of="sweep", keys=swept),
        **({} if command is None else {"commands": [Command(arguments=command.split(), started=STARTED)]}),
    )
    return MeasuredDirectory(name, RunDirectory(Path(name)), experiment, manifest, runs)


def a_sweep(arms=("global", "fielding"), shares=(5, 10), hears=("online", "everyone")):
    """The cells of a sweep: in each, fielding is 2, 4 and 6 pp above global in seeds 0, 1 and 2."""
    return [
        a_directory(
            f"{share} {hear}",
            {arm: OTHER if arm == "fielding" else ONE for arm in arms},
            swept={"round.participants": share, "round.hear": hear},
            round={"participants": share, "hear": hear},
            command="driftscale run map.toml",
        )
        for share, hear in itertools.product(shares, hears)
    ]


def shown(figure):
    """The traces that are shown at first."""
    return [trace for trace in figure.data if trace.visible is not False]


def test_a_sweep_is_drawn_as_the_accuracy_of_all_arms_first():
    """Global has 50, 60 and 70 % in its seeds: 4.302653 * 10 / sqrt(3) = 24.84."""
    (section,) = sections(a_sweep())
    plot, _ = section_plots(section, "s").plots
    assert (plot.id, plot.title) == ("s-accuracy", "Mean accuracy against participants")
    drawn = plot.figure.validated()
    lines = {(line.name, line.xaxis): line for line in drawn.data}
    assert list(lines) == [("global", "x"), ("global", "x2"), ("fielding", "x"), ("fielding", "x2")]
    assert list(lines["global", "x2"].y) == pytest.approx([60, 60])
    assert list(lines["fielding", "x"].y) == pytest.approx([64, 64])
    assert lines["global", "x"].error_y.array.tolist() == pytest.approx([24.84, 24.84], abs=0.01)
    assert [line.showlegend for line in drawn.data] == [True, False, True, False]
    assert (drawn.layout.yaxis.title.text, drawn.layout.yaxis.rangemode) == ("mean accuracy (%)", "normal")
    assert "bars 95 % intervals" in plot.caption


def test_a_sweep_of_one_arm_has_no_gain():
    (section,) = sections(a_sweep(("global",)))
    (plot,) = section_plots(section, "s").plots
    assert plot.id == "s-accuracy"
    assert {line.name for line in plot.figure.validated().data} == {"global"}


def test_gains_follow_with_their_intervals_in_a_panel_for_each_combination():
    (section,) = sections(a_sweep())
    _, plot = section_plots(section, "s").plots
    assert (plot.id, plot.title) == ("s-gain", "Gain against participants")
    first, second = shown(plot.figure.validated())
    assert (first.xaxis, first.yaxis, second.xaxis, second.yaxis) == ("x", "y", "x2", "y2")
    assert list(first.y) == pytest.approx([4, 4])
    assert first.error_y.array.tolist() == pytest.approx([HALF, HALF], abs=1e-4)
    assert np.round(first.x).tolist() == [0, 1]
    assert [first.name, first.showlegend, second.showlegend] == ["fielding", True, False]
    layout = plot.figure.validated().layout
    assert [note.text for note in layout.annotations] == ["hear everyone", "hear online"]
    assert layout.xaxis.ticktext == ("5", "10")
    assert (layout.xaxis.domain[1] < layout.xaxis2.domain[0], layout.yaxis2.matches) == (True, "y")


def test_an_arm_without_the_key_is_drawn_at_every_value():
    def cell(threshold):
        own = {"kind": "fielding", "representation": "label", "threshold": threshold}
        return a_directory(
            str(threshold),
            {"global": ONE, "static": constant(0.6, 0.7, 0.8), "fielding": OTHER},
            swept={"arm.fielding.clusterer.threshold": threshold},
            arm=[{"name": "global"}, {"name": "static"}, {"name": "fielding", "clusterer": own}],
        )

    (section,) = sections([cell(0.5), cell(0.1)])
    assert [row.arm for row in section.rows].count("static") == 1  # one row, of runs that both cells share
    _, plot = section_plots(section, "s").plots
    static, fielding = shown(plot.figure.validated())
    assert (static.name, list(static.y)) == ("static", pytest.approx([10, 10]))
    assert (fielding.name, list(fielding.customdata)) == ("fielding", ["0.1", "0.5"])


def test_the_list_of_bases_has_each_arm_and_a_gain_is_paired_by_seed():
    (section,) = sections(a_sweep(("global", "static", "fielding"), hears=("online",)))
    _, plot = section_plots(section, "s").plots
    (menu,) = plot.figure.validated().layout.updatemenus
    assert [button.label for button in menu.buttons] == ["base: global", "base: static", "base: fielding"]
    visible = menu.buttons[2].args[0]["visible"]
    of_fielding = [
        trace for trace, is_shown in zip(plot.figure.validated().data, visible, strict=True) if is_shown
    ]
    assert {trace.name: trace.y[0] for trace in of_fielding} == {
        "global": pytest.approx(-4),
        "static": pytest.approx(-4),
    }
    assert of_fielding[0].error_y.array[0] == pytest.approx(HALF, abs=1e-4)


def test_two_seeds_have_points_and_no_bars():
    cells = [
        a_directory(
            str(value),
            {"global": constant(0.5, 0.6), "fielding": constant(0.6, 0.8)},
            swept={"round.participants": value},
            round={"participants": value},
        )
        for value in (5, 10)
    ]
    accuracy, plot = section_plots(sections(cells)[0], "s").plots
    (line,) = plot.figure.validated().data
    assert list(line.y) == pytest.approx([15, 15])
    assert all(drawn.error_y.array is None for drawn in (line, *accuracy.figure.validated().data))
    assert "under 3 seeds there are no bars" in plot.caption
    assert "under 3 seeds there are no bars" in accuracy.caption


def test_the_caption_has_bars_only_if_an_arm_shares_three_seeds_with_the_reference_arm():
    accuracies = {"global": constant(0.5, 0.5, 0.5), "fielding": constant(0.6, 0.6)}
    cells = [
        a_directory(
            str(value),
            accuracies,
            swept={"round.participants": value},
            round={"participants": value},
        )
        for value in (5, 10)
    ]
    accuracy, gain = section_plots(sections(cells)[0], "s").plots
    assert "under 3 seeds there are no bars" in gain.caption
    assert "bars 95 % intervals" in accuracy.caption


def test_more_panels_than_fit_are_a_sentence():
    (section,) = sections(a_sweep(hears=[str(number) for number in range(49)]))
    drawn = section_plots(section, "s")
    assert drawn.plots == []
    assert drawn.absence == "No figure is drawn: hear has 49 values, and at most 48 panels are drawn."


def test_a_directory_is_drawn_as_accuracy_and_as_difference_from_its_reference_arm():
    (section,) = sections([a_directory("a", {"global": ONE, "fielding": OTHER})])
    accuracy, difference = section_plots(section, "s").plots
    lines = {trace.name: trace.y.tolist() for trace in accuracy.figure.validated().data}
    assert lines == {"global": pytest.approx([60] * 3), "fielding": pytest.approx([64] * 3)}
    (line,) = [trace for trace in difference.figure.validated().data if trace.name]
    assert (line.name, line.y.tolist()) == ("fielding", pytest.approx([4] * 3))
    assert not difference.figure.validated().layout.updatemenus
    assert [accuracy.id, difference.id] == ["s-0-accuracy", "s-0-difference"]


def test_events_of_a_directory_are_marked_in_both_figures():
    directory = a_directory("a", {"global": ONE, "fielding": OTHER}, events_s=(20.0,))
    for plot in section_plots(sections([directory])[0], "s").plots:
        assert (plot.figure.validated().layout.shapes[0].x0, plot.figure.validated().layout.shapes[0].x1) == (
            20,
            20,
        )


def test_directories_without_a_sweep_are_drawn_one_by_one_unless_they_are_many():
    pair = [
        a_directory(str(number), {"global": ONE, "fielding": OTHER}, round={"participants": number})
        for number in range(2)
    ]
    section = compare(pair)
    titles = [plot.title for plot in section_plots(section, "s").plots]
    assert titles == [
        *("Accuracy over virtual time: 0", "Difference from global: 0"),
        *("Accuracy over virtual time: 1", "Difference from global: 1"),
    ]
    many = replace(section, members=section.members * 7)
    absence = section_plots(many, "s").absence
    assert absence is not None
    assert "has 14 run directories, and those of at most 12 are drawn" in absence


@pytest.fixture(scope="module")
def page():
    """Two renderings of the page of a sweep of 24 cells."""
    cells = a_sweep(shares=range(1, 13))
    none = {figure: {} for figure in (*COMPARED, "models_sent", "relative_models_sent")}
    experiment = {
        "steps": None,
        "scored_steps": None,
        "marked_seeds": [],
        "finished": 6,
        "failed": 0,
        "planned": 6,
    }
    columns = [{**experiment, "name": cell.name, "report": "x/report.html"} for cell in cells]
    table = {"name": "folder", "experiments": columns, "arms": [], "figures": none, "agreement": none}
    return [render_table(table, sections(cells)) for _ in range(2)]


def test_the_same_runs_give_the_same_bytes(page):
    assert page[0] == page[1]


def test_every_script_of_the_page_carries_its_nonce_and_only_plotly_is_loaded(page):
    [nonce] = re.findall(r"script-src 'nonce-([0-9a-f]{64})';", page[0])
    assert page[0].count("<script") == page[0].count(f'<script nonce="{nonce}"') == 6
    assert re.findall(r' src="([^"]*)"', page[0]) == ["plotly.min.js"]
    assert '<body data-plots="2">' in page[0]


def test_a_section_names_the_command_once_and_folds_a_long_table_up(page):
    assert page[0].count("<code>driftscale run map.toml</code>") == 1
    assert "<details>\n    <summary>48 rows</summary>" in page[0]
    assert MOST_OPEN_ROWS < 48
    assert "Reports of the run directories (24)" in page[0]
    assert "<h2>Contents</h2>" not in page[0]
