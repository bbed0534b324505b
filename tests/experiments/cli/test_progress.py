"""Progress of a command: bars on a terminal of a given size, and plain lines elsewhere."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Sequence

import pytest
from rich.console import Console

from experiments.cli.progress import BarProgress, LineProgress, names_of
from experiments.running.plan import PlannedRun, Reached

GLOBAL, FIELDING, STATIC = (PlannedRun("x", arm, 1, 4) for arm in ("global", "fielding", "static"))
FIRST = Reached(1, closed_s=10.0, accuracy=None)

LEFT = re.compile(r"; (\d+% of all)(?:, (about .+|less than 1 s) left)?$")


def a_console(width: int = 120, height: int = 25, screen: io.StringIO | None = None) -> Console:
    return Console(
        width=width, height=height, file=screen or io.StringIO(), force_terminal=True, color_system=None
    )


def shown(progress: BarProgress) -> list[str]:
    """The lines shown on the terminal."""
    lines = progress._bars.console.render_lines(progress._bars.get_renderable())
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def bars_of(lines: Sequence[str]) -> list[str]:
    """The arm of each bar, without the first bar, which is that of all runs."""
    return [line.split(",")[0] for line in lines[1:]]


def test_bars_show_the_pairs_the_rounds_the_virtual_clock_and_the_accuracy() -> None:
    screen = io.StringIO()
    runs = [GLOBAL, FIELDING, STATIC]
    with BarProgress(runs, {GLOBAL: 8.0}, a_console(screen=screen), 1) as progress:
        progress.skipped(GLOBAL)
        progress.drawing(FIELDING)
        assert "drawing clients, seed 1" in shown(progress)[1]
        progress.begun(FIELDING)
        progress.round_done(FIELDING, Reached(1, closed_s=7200.0, accuracy=0.625))
        progress.round_done(FIELDING, Reached(2, closed_s=9000.0, accuracy=0.625))
        overall, bar = shown(progress)
        progress.done(FIELDING)
        progress.begun(STATIC)
        progress.left(STATIC)
        progress.failed(STATIC, "nobody was [bold]online")
    assert overall.startswith("arms x seeds")
    assert "1/3" in overall
    assert "25% of all, about 4" in overall  # two of the eight rounds that are left to do
    assert bar.startswith("fielding, seed 1")
    assert "2/4" in bar
    assert "virtual 2.50 h, accuracy 62.5%" in bar
    ended = screen.getvalue()
    assert "3/3" in ended
    assert "static, seed 1 failed: nobody was [bold]online" in ended


def test_every_run_at_work_has_a_bar_until_it_is_done_or_left() -> None:
    with BarProgress([GLOBAL, FIELDING, STATIC], {}, a_console(), 3) as progress:
        for run in (GLOBAL, FIELDING, STATIC):
            progress.begun(run)
        progress.round_done(FIELDING, Reached(3, 30.0, None))
        lines = shown(progress)
        assert bars_of(lines) == ["global", "fielding", "static"]
        assert [re.findall(r"\d/\d", line) for line in lines] == [["0/3"], ["0/4"], ["3/4"], ["0/4"]]
        progress.done(GLOBAL)
        progress.left(FIELDING)
        lines = shown(progress)
        assert bars_of(lines) == ["static"]
        assert "1/3" in lines[0]


def test_a_run_that_was_lost_and_begins_again_is_counted_once() -> None:
    with BarProgress([GLOBAL, STATIC], {}, a_console(), 2) as progress:
        progress.left(GLOBAL)  # with its worker, before it had begun
        progress.begun(GLOBAL)
        progress.round_done(GLOBAL, Reached(3, 30.0, 0.5))
        progress.left(GLOBAL)
        progress.drawing(GLOBAL)
        progress.begun(GLOBAL)
        progress.resumed(GLOBAL, 2)
        lines = shown(progress)
        assert "2/4" in lines[-1]
        progress.done(GLOBAL)
        overall = shown(progress)[0]
        assert "1/2" in overall
        assert "50% of all" in overall


@pytest.mark.slow
@pytest.mark.parametrize(("height", "bars"), [(22, 20), (21, 20), (20, 18), (10, 8), (2, 0)])
def test_there_are_as_many_bars_as_the_terminal_has_room_for(height: int, bars: int) -> None:
    runs = [PlannedRun("x", "global", seed, 4) for seed in range(20)]
    with BarProgress(runs, {}, a_console(height=height), 20) as progress:
        for run in runs:
            progress.begun(run)
        lines = shown(progress)
    assert lines[0].startswith("arms x seeds")
    assert sum(line.startswith("global, seed ") for line in lines) == bars
    assert len(lines) <= height
    if 0 < bars < 20:
        assert lines[-1].strip() == f"and {20 - bars} more at work"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_bar_is_one_line_with_its_name_rounds_and_accuracy_at_any_usual_width(width: int) -> None:
    runs = [PlannedRun(name, "fielding", 0, 200) for name in ("digits-online", "other")]
    with BarProgress(runs, {}, a_console(width), 2) as progress:
        for run in runs:
            progress.begun(run)
            progress.round_done(run, Reached(50, 9e6, 0.5))
        lines = shown(progress)
    assert len(lines) == 1 + 2
    assert [line[: line.index(", seed 0")] for line in lines[1:]] == [
        "digits-online: fielding",
        "other: fielding",
    ]
    assert all("50/200" in line and "accuracy 50.0%" in line for line in lines[1:])


def test_lines_show_a_few_rounds_of_each_run_of_any_length(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [PlannedRun("x", "global", 0, 250), PlannedRun("x", "static", 0, 250)]
    with LineProgress(runs, {}, 1) as progress:
        progress.begun(runs[0])
        for number in range(1, 251):
            progress.round_done(runs[0], Reached(number, 10.0 * number, 0.5))
        progress.done(runs[0])
        progress.failed(runs[1], "nobody was online")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[1] for line in lines[:4]] == [
        f" seed 0: round {number}/250" for number in (63, 126, 189, 250)
    ]
    assert all(", accuracy 50.0%; " in line for line in lines[:4])
    shares = [line.split("; ")[1].split(",")[0] for line in lines[:5]]
    assert shares == ["12% of all", "25% of all", "37% of all", "50% of all", "50% of all"]
    assert all(line.endswith(" s left") for line in lines[:5])
    assert lines[4].startswith("[1/2] global, seed 0: done in ")
    assert lines[5] == "[2/2] static, seed 0: FAILED: nobody was online"


def test_lines_of_parallel_runs_are_as_few_when_rounds_are_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [PlannedRun("x", arm, 0, 100) for arm in ("global", "static")]
    with LineProgress(runs, {}, 2) as progress:
        for run in runs:
            progress.begun(run)
        for number in (24, 60, 61, 74, 90):  # not one of the rounds 25, 50, 75, 100
            for run in runs:
                progress.round_done(run, Reached(number, 10.0, None))
        for run in runs:
            progress.done(run)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(", virtual")[0].split(" in ")[0] for line in lines] == [
        "global, seed 0: round 60/100",
        "static, seed 0: round 60/100",
        "global, seed 0: round 90/100",
        "static, seed 0: round 90/100",
        "[1/2] global, seed 0: done",
        "[2/2] static, seed 0: done",
    ]
    matches = [LEFT.search(line) for line in lines]
    assert [match and match.group(1) for match in matches] == [
        f"{share}% of all" for share in (42, 60, 82, 90, 95, 100)
    ]


def test_lines_report_where_a_lost_run_resumes_and_when_it_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with LineProgress([GLOBAL, STATIC], {}, 2) as progress:
        progress.begun(GLOBAL)
        progress.round_done(GLOBAL, Reached(3, 30.0, None))
        progress.left(GLOBAL)
        progress.begun(GLOBAL)
        progress.resumed(GLOBAL, 2)
        progress.done(GLOBAL)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("global, seed 1: round 3/4, ")
    assert lines[1] == "global, seed 1: resuming from round 2"
    assert lines[2].startswith("[1/2] global, seed 1: done in ")
    assert "; 50% of all, " in lines[2]
    assert len(lines) == 3


class Gone(io.StringIO):
    """A terminal that was closed, or a pipe without a reader."""

    def write(self, text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_bars_on_a_terminal_that_is_gone_stop_no_run() -> None:
    with BarProgress([GLOBAL], {}, a_console(screen=Gone()), 1) as bars:
        bars.begun(GLOBAL)
        bars.resumed(GLOBAL, 1)
        bars.note("something went wrong")
        bars.round_done(GLOBAL, Reached(2, 20.0, None))
        bars._bars.refresh()
        bars.done(GLOBAL)


def test_lines_that_nobody_reads_stop_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as gone, LineProgress([GLOBAL], {}, 1) as progress:
        gone.setattr("sys.stderr", Gone())
        progress.begun(GLOBAL)
        progress.round_done(GLOBAL, FIRST)
        progress.done(GLOBAL)
        progress.note("something went wrong")


def test_cells_of_one_sweep_are_shown_without_its_name_and_long_names_without_their_middle() -> None:
    def shown_names(*experiments: str) -> list[str]:
        runs = [PlannedRun(name, "global", 0, 4) for name in experiments]
        return [name.removesuffix(": global, seed 0") for name in names_of(runs).values()]

    assert shown_names("digits,a=1,b=2", "digits,a=1,b=3") == ["a=1,b=2", "a=1,b=3"]
    assert shown_names("digits,a=1", "other,a=1", "plain") == ["digits,a=1", "other,a=1", "plain"]
    assert shown_names("digits,a=1") == ["global, seed 0"]
    long = [f"digits,start={number},{'x' * 60},end={number}" for number in (1, 2)]
    assert shown_names(*long) == [
        f"start={number},xxxxxxxxxxxx…xxxxxxxxxxxxx,end={number}" for number in (1, 2)
    ]
