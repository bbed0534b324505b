"""A call in a notebook: one output with a bar, which ends as one line, and nothing on standard error."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import driftscale
from driftscale.notebook import MOST_LINES, CellOutput, NotebookProgress, notebook_display
from experiments.running.plan import PlannedRun, Reached
from experiments.running.runner import FailedRunsError
from tests.experiments.small import SMALL

GLOBAL, FIELDING = (PlannedRun("x", arm, 1, 4) for arm in ("global", "fielding"))


@dataclass
class Cell:
    """The outputs of a cell: what `display` was called with, and the time of a clock that is set by hand."""

    shown: list[tuple[Mapping[str, str], str, bool]] = field(default_factory=list)
    now_s: float = 0.0

    def __call__(self, data: Mapping[str, str], *, display_id: str, is_update: bool) -> None:
        self.shown.append((data, display_id, is_update))

    @property
    def text(self) -> str:
        return self.shown[-1][0]["text/plain"]

    @property
    def html(self) -> str:
        return self.shown[-1][0]["text/html"]

    def progress(self, *runs: PlannedRun) -> NotebookProgress:
        output = CellOutput(self, lambda: self.now_s)
        return NotebookProgress(output, runs, {}, 1, lambda: self.now_s)


# -- the bar ------------------------------------------------------------------------------------------------


def test_it_is_one_output_that_is_updated_and_ends_as_one_line() -> None:
    cell = Cell()
    with cell.progress(GLOBAL, FIELDING) as progress:
        for run in (GLOBAL, FIELDING):
            progress.drawing(run)
            progress.begun(run)
            for number in range(1, 5):
                cell.now_s += 1.0
                progress.round_done(run, Reached(number, 3600.0 * number, 0.5))
                texts = cell.text, cell.html
            progress.done(run)
    assert len({display_id for _, display_id, _ in cell.shown}) == 1
    assert [is_update for _, _, is_update in cell.shown] == [False] + [True] * (len(cell.shown) - 1)
    assert texts[0] == "1/2 runs, 100% of all; fielding, seed 1: round 4/4, virtual 4.00 h, accuracy 50.0%"
    assert texts[1] == (
        '<div><progress max="100" value="100" aria-label="rounds done">100%</progress> '
        "1/2 runs, 100% of all; fielding, seed 1: round 4/4, virtual 4.00 h, accuracy 50.0%</div>"
    )
    assert cell.shown[4][0]["text/plain"].startswith("0/2 runs, 50% of all, about 4.00 s left; global, ")
    assert (cell.text, cell.html) == ("2 runs in 8.00 s", "<div>2 runs in 8.00 s</div>")


def test_it_is_updated_at_most_five_times_a_second() -> None:
    cell, run = Cell(), PlannedRun("x", "global", 0, 1000)
    with cell.progress(run) as progress:
        progress.begun(run)
        for number in range(1, 1001):
            cell.now_s += 0.01
            progress.round_done(run, Reached(number, 10.0 * number, None))
        progress.done(run)
    assert 48 <= len(cell.shown) <= 52


def test_failures_and_notes_stay_below_the_line_each_once() -> None:
    cell = Cell()
    with cell.progress(GLOBAL, FIELDING) as progress:
        progress.note("the manifest is <missing>")
        assert "the manifest is &lt;missing&gt;" in cell.html
        progress.failed(GLOBAL, "nobody was\x1b[2J online")
        progress.skipped(FIELDING)
    assert cell.text.splitlines() == [
        "1 run finished earlier, 1 failed",
        "the manifest is <missing>",
        "global, seed 1 failed: nobody was\\x1b[2J online",
    ]
    assert cell.html.count("<div>") == 3


def test_of_very_many_notes_the_first_are_shown_with_the_number_of_the_others() -> None:
    cell = Cell()
    with cell.progress(GLOBAL) as progress:
        for number in range(MOST_LINES + 950):
            progress.note(f"note {number}")
    assert len(cell.shown) < MOST_LINES + 5
    assert cell.text.splitlines()[-2:] == [f"note {MOST_LINES - 1}", "and 950 more lines"]


@pytest.mark.parametrize(
    ("ended", "line"),
    [
        (["done", "done"], "2 runs in 2.00 s"),
        (["skipped", "skipped"], "2 runs finished earlier"),
        (["skipped", "done"], "1 run in 2.00 s, 1 finished earlier"),
        (["done"], "stopped: 1 of 2 runs in 2.00 s"),
        ([], "stopped: 0 of 2 runs in 2.00 s"),
    ],
)
def test_the_line_says_how_the_runs_ended(ended: list[str], line: str) -> None:
    cell = Cell()
    with cell.progress(GLOBAL, FIELDING) as progress:
        cell.now_s = 2.0
        for run, how in zip((GLOBAL, FIELDING), ended, strict=False):
            progress.begun(run)
            getattr(progress, how)(run)
    assert cell.text == line


# -- in a kernel --------------------------------------------------------------------------------------------


class ZMQInteractiveShell:
    """The shell of a kernel, by whose name rich knows a notebook too."""

    kernel = object()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The calls of IPython's `display` in a kernel that is made up; the present folder is empty."""
    calls: list[dict[str, Any]] = []
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell = ZMQInteractiveShell()
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    display.display = lambda data, **options: calls.append({"data": data, **options})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a kernel does
    monkeypatch.chdir(tmp_path)
    return calls


def last(kernel: list[dict[str, Any]]) -> str:
    text: str = kernel[-1]["data"]["text/plain"]
    return text


@pytest.mark.slow
def test_a_run_is_one_output_and_prints_nothing(
    kernel: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    results = driftscale.run(SMALL, {"round.rounds": 2})
    assert capfd.readouterr() == ("", "")
    assert {call["display_id"] for call in kernel} == {kernel[0]["display_id"]}
    assert [call["update"] for call in kernel[:2]] == [False, True]
    assert all(call["raw"] for call in kernel)
    assert re.fullmatch(r"2 runs in \S+ s; runs/small", last(kernel))
    before = len(kernel)
    shown = repr(results)
    assert "fielding has a mean accuracy of " in shown
    assert "\x1b" not in shown
    assert len(kernel) == before  # rich makes outputs of what it prints


@pytest.mark.slow
def test_a_sweep_is_one_output_too(kernel: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]) -> None:
    results = driftscale.run(SMALL, {"round.rounds": 2}, sweep={"round.participants": [2, 3]}, arms="global")
    assert capfd.readouterr() == ("", "")
    assert [call["update"] for call in kernel].count(False) == 1
    assert re.fullmatch(r"2 runs in \S+ s; runs/small-sweep", last(kernel))
    assert results._repr_html_().count("<table>") == 1


@pytest.mark.slow
def test_failures_are_in_the_output_and_the_error_is_raised(
    kernel: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    diverging = {"training.learning_rate": 1e38, "round.nonfinite_updates": "stop"}
    with pytest.raises(FailedRunsError):
        driftscale.run(SMALL, diverging, arms="global")
    assert capfd.readouterr() == ("", "")
    line, failure = last(kernel).splitlines()
    assert line == "1 run failed"
    assert failure.startswith("global, seed 0 failed: round 0: the update of client ")


@pytest.mark.slow
def test_without_progress_there_is_no_output_but_for_notes(kernel: list[dict[str, Any]]) -> None:
    driftscale.run(SMALL, {"round.rounds": 2}, arms="global", progress=False)
    assert kernel == []
    driftscale.run(SMALL, {"round.rounds": 2}, out="other", arms="fielding", progress=False)
    assert last(kernel).splitlines() == [
        "no report before the reference arm 'global' has a finished run: add it to the arms",
        "no report: other has no finished run of the reference arm 'global'",
    ]


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    for shell in (None, object()):  # imported by a library; at a terminal
        ipython.get_ipython = lambda shell=shell: shell  # type: ignore[attr-defined]
        assert notebook_display() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_display() is None
