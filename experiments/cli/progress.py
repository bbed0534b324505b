"""How far a command has come: bars on a terminal, plain lines elsewhere.

Nobody may be looking any more: a terminal that is gone stops no run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from emulator.runlog import RoundRecord
from experiments.cli.streams import Notes
from experiments.formats import time_scale
from experiments.planned_run import PlannedRun
from experiments.time_left import TimeLeft

PLAIN_LINES_PER_RUN = 4
STATUS_WIDTH = len("virtual 99.9 days, accuracy 99.9%")

Earlier = Mapping[PlannedRun, float]
"""Wall seconds of the runs that were finished before."""


class BarProgress(AbstractContextManager["BarProgress"]):
    """Two bars on a terminal: all runs, with the time that is left, and the rounds of the one at hand."""

    def __init__(self, runs: Sequence[PlannedRun], earlier_s: Earlier, console: Console) -> None:
        console.file = cast(IO[str], Notes(console.file))
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, min_width=STATUS_WIDTH)),
            TimeElapsedColumn(),
            console=console,
        )
        self._left = TimeLeft(runs, earlier_s)
        self._names = _names(runs)
        self._name_width = 0
        self._pairs = self._bars.add_task("arms x seeds", total=len(runs), status="")
        self._rounds: TaskID | None = None
        self._accuracy = ""

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def drawing(self, run: PlannedRun) -> None:
        """The clients of this run's seed are drawn, which takes a while where they are many."""
        self._bars.update(self._pairs, status=f"drawing clients, seed {run.seed}")

    @contextmanager
    def run(self, run: PlannedRun) -> Iterator[None]:
        name = self._names[run]
        self._name_width = max(self._name_width, len(name))  # so that the bars do not jump
        self._rounds = self._bars.add_task(f"{name:<{self._name_width}}", total=run.rounds, status="")
        self._accuracy = ""
        self._left.begin(run)
        try:
            yield
            self._bars.advance(self._pairs)
        finally:
            self._left.end()
            self._bars.remove_task(self._rounds)

    def going_on(self, run: PlannedRun, rounds: int) -> None:
        """The run goes on where an earlier command left it, after so many rounds."""
        assert self._rounds is not None
        self._left.skip(rounds)
        self._bars.update(self._rounds, completed=rounds)
        self._bars.console.print(f"{self._names[run]}: going on from round {rounds}", markup=False)

    def round_done(self, record: RoundRecord) -> None:
        assert self._rounds is not None
        if record.accuracy is not None:
            self._accuracy = f", accuracy {record.accuracy:.1%}"
        clock = time_scale(record.closed_s)(record.closed_s)
        self._left.round_done()
        self._bars.update(self._rounds, advance=1, status=f"virtual {clock}{self._accuracy}")
        self._bars.update(self._pairs, status=_outlook(self._left))

    def skipped(self, run: PlannedRun) -> None:
        self._bars.advance(self._pairs)

    def failed(self, run: PlannedRun, reason: str) -> None:
        self.note(f"{self._names[run]} failed: {reason}")
        self._bars.advance(self._pairs)

    def note(self, text: str) -> None:
        """A line above the bars, of something that went wrong."""
        self._bars.console.print(text, style="red", markup=False)


class LineProgress(AbstractContextManager["LineProgress"]):
    """A line when a run starts to look like something, and one when it is done."""

    def __init__(self, runs: Sequence[PlannedRun], earlier_s: Earlier) -> None:
        self._pairs = len(runs)
        self._left = TimeLeft(runs, earlier_s)
        self._names = _names(runs)
        self._done = 0
        self._rounds = 0
        self._name = ""
        self._accuracy = ""

    def __exit__(self, *error: object) -> None:
        return None

    def drawing(self, run: PlannedRun) -> None:
        """Says nothing: an error of the configuration, which may follow, is to stand alone."""

    @contextmanager
    def run(self, run: PlannedRun) -> Iterator[None]:
        self._name, self._rounds, self._accuracy = self._names[run], run.rounds, ""
        start = time.perf_counter()
        self._left.begin(run)
        try:
            yield
        finally:
            self._left.end()
        self._done += 1
        took = f"done in {time.perf_counter() - start:.1f} s"
        _say(f"[{self._done}/{self._pairs}] {self._name}: {took}; {_outlook(self._left)}")

    def going_on(self, run: PlannedRun, rounds: int) -> None:
        """The run goes on where an earlier command left it, after so many rounds."""
        self._left.skip(rounds)
        _say(f"{self._names[run]}: going on from round {rounds}")

    def round_done(self, record: RoundRecord) -> None:
        if record.accuracy is not None:
            self._accuracy = f", accuracy {record.accuracy:.1%}"
        self._left.round_done()
        done = record.round + 1
        every = max(1, -(-self._rounds // PLAIN_LINES_PER_RUN))
        if done % every == 0 or done == self._rounds:
            clock = time_scale(record.closed_s)(record.closed_s)
            at = f"round {done}/{self._rounds}, virtual {clock}{self._accuracy}"
            _say(f"{self._name}: {at}; {_outlook(self._left)}")

    def skipped(self, run: PlannedRun) -> None:
        self._done += 1
        _say(f"[{self._done}/{self._pairs}] {self._names[run]}: finished earlier, kept")

    def failed(self, run: PlannedRun, reason: str) -> None:
        self._done += 1
        _say(f"[{self._done}/{self._pairs}] {self._names[run]}: FAILED: {reason}")

    def note(self, text: str) -> None:
        """A line of something that went wrong."""
        _say(text)


def make_progress(
    runs: Sequence[PlannedRun], earlier_s: Earlier, *, quiet: bool = False
) -> BarProgress | LineProgress:
    """Bars on a terminal, else lines; on stderr when stdout is for a program (`quiet`)."""
    console = Console(stderr=True)
    if console.is_terminal and not quiet:
        return BarProgress(runs, earlier_s, console)
    return LineProgress(runs, earlier_s)


def _names(runs: Sequence[PlannedRun]) -> dict[PlannedRun, str]:
    """What each run is called: with its experiment where there are several."""
    several = len({run.experiment for run in runs}) > 1
    return {
        run: f"{run.experiment}: {run.arm}, seed {run.seed}" if several else f"{run.arm}, seed {run.seed}"
        for run in runs
    }


def _outlook(left: TimeLeft) -> str:
    """The share of all rounds that is done, and how long the others will take."""
    share, seconds = f"{int(100 * left.fraction)}% of all", left.seconds
    if not seconds:  # nothing is left, or nothing is known yet
        return share
    return f"{share}, {f'about {time_scale(seconds)(seconds)}' if seconds >= 1 else 'less than 1 s'} left"


def _say(text: str) -> None:
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
