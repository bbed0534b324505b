"""A table and a figure that are added by one file each, and a name in a list, are in every output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from driftscale.results import load
from emulator.errors import InputError
from experiments.results import figures, tables
from experiments.results.many_runs.directories import read_folder
from experiments.results.many_runs.sections import sections
from experiments.results.pages import write_results
from experiments.results.reading.run_directory import RunDirectory
from experiments.results.tables.accuracy import GAIN
from tests.experiments.cli.conftest import Driftscale
from tests.experiments.synthetic_runs import a_directory, a_record, a_run, store

TABLE = '''
"""The longest round of an arm."""

from experiments.results.statistics.comparisons import once
from experiments.results.tables.quantities import SECONDS, any_measured, gain, quantity
from experiments.results.tables.table import InTerminal, Place, Table


@once
def lengths_s(log):
    return [(record.closed_s, record.closed_s - record.opened_s) for record in log.records]


@quantity(SECONDS, "longest round", only_if=any_measured)
def longest_round_s(run):
    """How long the longest round took."""
    lengths = [length for closed_s, length in lengths_s(run.log) if closed_s <= run.horizon.horizon_s]
    return max(lengths, default=None)


DIFFERENCE = gain(longest_round_s, "longest_round_gain_s", "difference", 1.0, SECONDS).means(
    "that minus the one of the reference arm", "for the reference arm"
)

TABLE = Table(
    title="Longest rounds",
    place=Place("why", after_figures=True, id="longest"),
    quantities=(longest_round_s, DIFFERENCE),
    columns=(longest_round_s, DIFFERENCE),
    says_something=lambda summary: any_measured([row["longest_round_s"] for row in summary.rows]),
    note=lambda summary: "The longest round up to the horizon.",
    in_terminal=InTerminal("longest rounds", in_notebook=True),
    in_many_runs=(longest_round_s.noted("Longest round is that up to the horizon."),),
)
'''

FIGURE = '''
"""The number of rounds of each arm."""

from experiments.results.drawing.plot import Plot
from experiments.results.drawing.style import blank_figure
from experiments.results.figures.figure import Figure


def plots(report):
    figure = blank_figure(200, x_title="rounds", y_title="")
    rounds = [len(arm.runs[0].records) for arm in report.arms]
    figure.add_bar(x=rounds, y=[arm.label for arm in report.arms], name="rounds", orientation="h")
    plot = Plot("rounds-of-arms", "Rounds of each arm", "Of the first seed.", figure)
    return [plot] if len(rounds) > 1 else []


FIGURE = Figure("why", plots, "there is a single arm")
'''


@pytest.fixture
def _added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both lists with one name more, whose modules lie in a temporary folder."""
    caches = (tables.all_tables, tables.all_quantities, figures.all_figures)
    for package, name, content in ((tables, "longest_rounds", TABLE), (figures, "rounds_of_arms", FIGURE)):
        folder = tmp_path / "tree" / package.__name__.rpartition(".")[2]
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(content)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
        monkeypatch.setattr(package, "NAMES", (*package.NAMES, name))
        monkeypatch.setitem(sys.modules, f"{package.__name__}.{name}", None)
        monkeypatch.delitem(sys.modules, f"{package.__name__}.{name}")
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def a_folder(path: Path, arms: tuple[str, ...] = ("global", "fielding"), share: int = 20) -> Path:
    """Runs of three rounds of 10 s; the third round of fielding takes 25 s, in the second seed 30 s."""
    directory = a_directory(path, arms, range(2), report={"window": 1}, round={"participants": share})
    for arm in arms:
        for seed in range(2):
            run = a_run(arm, seed, [0.25, 0.5, 0.5])
            if arm == "fielding":
                run.records[2] = a_record(2, closed_s=45.0 + 5 * seed)
            store(directory, run)
    write_results(directory)
    return directory.path


@pytest.mark.usefixtures("_added")
def test_they_are_on_the_page_in_json_in_frames_in_files_and_in_a_notebook(
    tmp_path: Path, driftscale: Driftscale
) -> None:
    folder = a_folder(tmp_path / "runs")
    arms = json.loads((folder / "summary.json").read_text())["arms"]
    assert arms["fielding"]["longest_round_s"]["per_seed"] == [10.0, 10.0]  # the horizon is the end of global
    assert list(arms["global"])[-2:] == ["longest_round_s", "longest_round_gain_s"]
    assert arms["global"]["longest_round_gain_s"] is None

    page = (folder / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="longest">') :]
    assert section.index("Longest rounds") < section.index("longest round</th>") < section.index("10.0 s")
    assert "The longest round up to the horizon." in section
    assert page.index('id="rounds-of-arms"') < page.index('<section id="longest">')

    printed = driftscale("report", folder, "--explain").out
    assert "synthetic: longest rounds" in printed
    assert "The longest round up to the horizon." in printed

    results = load(folder)
    summary = results.summary
    assert summary[summary["figure"] == "longest_round_s"]["value"].tolist() == [10.0] * 4
    assert results.table["longest_round_s"].tolist() == [10.0, 10.0]
    assert "<caption>Longest rounds</caption>" in results._repr_html_()
    [bars] = results.plot_rounds_of_arms().data
    assert list(bars.x) == [3, 3]
    assert driftscale("export", folder, "--to", "csv").code == 0
    exported = pd.read_csv(folder / "export" / "summary.csv")
    assert (exported["figure"] == "longest_round_gain_s").sum() == 2


@pytest.mark.usefixtures("_added")
def test_they_are_in_tables_of_many_runs(tmp_path: Path, driftscale: Driftscale) -> None:
    one, other = a_folder(tmp_path / "a"), a_folder(tmp_path / "b", ("fielding",), 10)
    compared = driftscale("compare", one, other, "--explain")
    assert "longest round" in compared.out
    assert "Longest round is that up to the horizon." in compared.out
    rows = json.loads(driftscale("compare", one, other, "--format", "json").out)["sections"][0]["rows"]
    assert [row["longest_round_s"]["mean"] for row in rows] == [10.0, 10.0, 10.0]
    with pytest.raises(InputError, match="cannot be drawn: there is a single arm"):
        load(other).plot_rounds_of_arms()


def test_what_nobody_added_is_nowhere(tmp_path: Path) -> None:
    results = load(a_folder(tmp_path / "runs"))
    with pytest.raises(AttributeError, match="'Results' object has no attribute 'plot_rounds_of_arms'"):
        _ = results.plot_rounds_of_arms
    assert "longest_round_s" not in results.table.columns


def test_no_two_tables_measure_a_quantity_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    [accuracy] = [table for table in tables.all_tables() if GAIN in table.quantities]
    twice = (*tables.all_tables(), accuracy)
    monkeypatch.setattr(tables, "all_tables", lambda: twice)
    with pytest.raises(AssertionError, match="mean_accuracy: two tables measure it"):
        tables.all_quantities.__wrapped__()


@pytest.mark.parametrize("key", ["rounds", "virtual_time_s", "worst_tenth"])
def test_a_quantity_of_records_that_are_not_kept_fails_in_tables_of_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """It would be 0 or missing, and look like a number."""
    [first, *others] = tables.all_tables()
    wrong = replace(first, in_many_runs=(tables.all_quantities()[key],))
    monkeypatch.setattr("experiments.results.many_runs.directories.all_tables", lambda: (wrong, *others))
    directory = RunDirectory(a_folder(tmp_path / "runs"))
    with pytest.raises(AssertionError, match="tables of many runs keep no log"):
        sections(read_folder([directory]))
