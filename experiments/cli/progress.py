"""Progress of a command: bars on a terminal, plain lines elsewhere.

Both receive reports as `experiments.running.runner.Progress` states. A terminal that has closed stops no run.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import IO, cast

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from emulator.errors import printable
from experiments.cli.output import say
from experiments.cli.streams import Notes
from experiments.results.reading.json_files import Until
from experiments.results.statistics.scales import time_scale
from experiments.running.plan import PlannedRun, Reached
from experiments.running.time_left import TimeLeft

PLAIN_LINES_PER_RUN = 4
FEW_RUNS = 1000
ESTIMATE_EVERY_S = 0.5
"""Minimum wall seconds between two estimates of the time left, with more than `FEW_RUNS` to look at."""

MOST_NAME_LETTERS = 40
"""Maximum length of the displayed name of an experiment; of a longer one, the middle is left out."""

STATUS_WIDTH = len("virtual 99.9 days, accuracy 99.9%")

Earlier = Mapping[PlannedRun, float]
"""Wall seconds of each run that was finished before this command."""


class Bars(Progress):
    """One bar for all runs, and below it one for each run at work.

    If the terminal has too few lines for all bars, the last line states how many are not shown.
    """

    def get_renderables(self) -> Iterable[RenderableType]:
        tasks = self.tasks
        room = self.console.size.height if tasks else 0  # rich calls this once before it has a console
        if len(tasks) <= room:
            yield self.make_tasks_table(tasks)
            return
        shown = max(1, room - 1)
        yield self.make_tasks_table(tasks[:shown])
        yield Text(f"and {len(tasks) - shown} more at work", no_wrap=True)


class BarProgress(AbstractContextManager["BarProgress"]):
    """Progress on a terminal: a bar for all runs, with the remaining time, and one for each run at work."""

    def __init__(
        self, runs: Sequence[PlannedRun], earlier_s: Earlier, console: Console, at_once: int
    ) -> None:
        console.file = cast(IO[str], Notes(console.file))
        most = max((run.rounds for run in runs), default=0)
        self._bars = Bars(  # on a narrow terminal the bar is cut first, then name and time
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=len(f"{most}/{most}"))),
            TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, min_width=STATUS_WIDTH)),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=len("0:00:00"))),
            console=console,
        )
        self._left = TimeLeft(runs, earlier_s, at_once)
        self._names = names_of(runs)
        self._name_width = 0
        self._pairs = self._bars.add_task("arms x seeds", total=_pairs_of(runs), status="")
        self._rounds: dict[PlannedRun, TaskID] = {}
        self._estimate_every_s = ESTIMATE_EVERY_S if len(runs) > FEW_RUNS else 0.0
        self._estimated_s = -ESTIMATE_EVERY_S

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def drawing(self, run: PlannedRun) -> None:
        self._show(run, f"drawing clients, seed {run.seed}")

    def begun(self, run: PlannedRun) -> None:
        self._left.begun(run)
        self._show(run, "")

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        self._left.resumed(run, rounds)
        self._bars.update(self._rounds[run], completed=rounds)
        self._bars.console.print(f"{self._names[run]}: resuming from round {rounds}", markup=False)

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        self._left.round_done(run, reached.rounds)
        self._bars.update(self._rounds[run], completed=reached.rounds, status=where(reached))
        if time.perf_counter() - self._estimated_s >= self._estimate_every_s:
            self._bars.update(self._pairs, status=outlook(self._left))
            self._estimated_s = time.perf_counter()

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        self._left.done(run)
        self._hide(run)
        if until is not None:
            self._bars.console.print(f"{self._names[run]}: stopped at {until}", markup=False)
        self._bars.update(self._pairs, advance=len(run.arms), status=outlook(self._left))

    def left(self, run: PlannedRun) -> None:
        self._hide(run)

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None:
        self._left.drop(run)
        self._bars.advance(self._pairs, len(run.arms))

    def failed(self, run: PlannedRun, reason: str) -> None:
        self.note(f"{self._names[run]} failed: {reason}")
        self._left.drop(run)
        self._bars.update(self._pairs, advance=len(run.arms), status=outlook(self._left))

    def note(self, text: str) -> None:
        self._bars.console.print(printable(text), style="red", markup=False)

    def _show(self, run: PlannedRun, status: str) -> None:
        """Set the bar of `run` to round 0, with `status`; add the bar if the run has none yet."""
        name = self._names[run]
        self._name_width = max(self._name_width, len(name))  # so that the bars do not jump sideways
        if run not in self._rounds:
            self._rounds[run] = self._bars.add_task(
                f"{name:<{self._name_width}}", total=run.rounds, status=""
            )
        self._bars.update(self._rounds[run], completed=0, status=status)

    def _hide(self, run: PlannedRun) -> None:
        """Remove the bar of `run`, if it has one: a run that was lost before it started has none."""
        if run in self._rounds:
            self._bars.remove_task(self._rounds.pop(run))


class LineProgress(AbstractContextManager["LineProgress"]):
    """Progress as plain lines: a few for each run while it is at work, and one when it ends."""

    def __init__(self, runs: Sequence[PlannedRun], earlier_s: Earlier, at_once: int) -> None:
        self._pairs = _pairs_of(runs)
        self._left = TimeLeft(runs, earlier_s, at_once)
        self._names = names_of(runs)
        self._done = 0
        self._reached: dict[PlannedRun, int] = {}
        self._begun_s: dict[PlannedRun, float] = {}

    def __exit__(self, *error: object) -> None:
        return None

    def drawing(self, run: PlannedRun) -> None:
        """Print nothing, so that an error of the configuration, which may follow, is the only line."""

    def begun(self, run: PlannedRun) -> None:
        self._left.begun(run)
        self._reached[run], self._begun_s[run] = 0, time.perf_counter()

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        self._left.resumed(run, rounds)
        self._reached[run] = rounds
        _print_line(f"{self._names[run]}: resuming from round {rounds}")

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        self._left.round_done(run, reached.rounds)
        before, self._reached[run] = self._reached[run], reached.rounds
        every = max(1, -(-run.rounds // PLAIN_LINES_PER_RUN))
        if reached.rounds // every > before // every or reached.rounds == run.rounds:
            at = f"round {reached.rounds}/{run.rounds}, {where(reached)}"
            _print_line(f"{self._names[run]}: {at}; {outlook(self._left)}")

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        self._left.done(run)
        how = "done" if until is None else f"stopped at {until}"
        self._end(run, f"{how} in {time.perf_counter() - self._begun_s[run]:.1f} s; {outlook(self._left)}")

    def left(self, run: PlannedRun) -> None:
        """Print nothing: the caller reports why the run is no longer at work."""

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None:
        self._left.drop(run)
        self._end(run, f"{'finished' if until is None else f'stopped at {until}'} earlier, kept")

    def failed(self, run: PlannedRun, reason: str) -> None:
        self._left.drop(run)
        self._end(run, f"FAILED: {reason}")

    def note(self, text: str) -> None:
        _print_line(text)

    def _end(self, run: PlannedRun, how: str) -> None:
        self._done += len(run.arms)
        _print_line(f"[{self._done}/{self._pairs}] {self._names[run]}: {how}")


def make_progress(
    runs: Sequence[PlannedRun], earlier_s: Earlier, *, quiet: bool = False, at_once: int = 1
) -> BarProgress | LineProgress:
    """Bars if standard error is a terminal and `quiet` is false, else plain lines; both on standard error.

    Args:
        runs: All runs of the command.
        earlier_s: Wall seconds of those that were finished before.
        quiet: Standard output is read by a program.
        at_once: How many runs may be at work at the same time.
    """
    console = Console(stderr=True)
    if console.is_terminal and not quiet:
        return BarProgress(runs, earlier_s, console, at_once)
    return LineProgress(runs, earlier_s, at_once)


def names_of(runs: Sequence[PlannedRun]) -> dict[PlannedRun, str]:
    """The displayed name of each run; it includes the experiment if there are several."""
    experiments = _short_names({run.experiment for run in runs})
    return {
        run: f"{experiments[run.experiment]}: {run.title}" if len(experiments) > 1 else run.title
        for run in runs
    }


def _pairs_of(runs: Sequence[PlannedRun]) -> int:
    """The number of arms x seeds of the runs."""
    return sum(len(run.arms) for run in runs)


def _short_names(names: Collection[str]) -> dict[str, str]:
    """The displayed name of each experiment: the cells of one sweep without the name of its configuration."""
    bases = {name.partition(",")[0] for name in names}
    short = {name: name.partition(",")[2] or name for name in names} if len(bases) == 1 else {}
    half = MOST_NAME_LETTERS // 2
    return {
        name: text if len(text) <= MOST_NAME_LETTERS else f"{text[:half]}…{text[1 - half :]}"
        for name, text in ((name, short.get(name, name)) for name in names)
    }


def where(reached: Reached) -> str:
    """Text with the virtual time, and with the accuracy if it is known."""
    clock = f"virtual {time_scale(reached.closed_s)(reached.closed_s)}"
    return clock if reached.accuracy is None else f"{clock}, {reached.word} {reached.accuracy:.1%}"


def outlook(left: TimeLeft) -> str:
    """Text with the share of the command's rounds that are done, and the wall time left for the others."""
    share, seconds = f"{int(100 * left.fraction)}% of all", left.seconds
    if not seconds:  # no round is left, or no round has been timed yet
        return share
    return f"{share}, {f'about {time_scale(seconds)(seconds)}' if seconds >= 1 else 'less than 1 s'} left"


def _print_line(text: str) -> None:
    with suppress(OSError):
        say(text, aside=True)
