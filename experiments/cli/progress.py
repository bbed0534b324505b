"""How far a run has come: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from emulator.runlog import RoundRecord
from experiments.report.formats import time_scale

PLAIN_LINES_PER_RUN = 4
STATUS_WIDTH = len("virtual 99.9 days, accuracy 99.9%")


class BarProgress(AbstractContextManager["BarProgress"]):
    """Two bars on a terminal: (arm, seed) pairs, and the rounds of the one at hand."""

    def __init__(self, pairs: int, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}", table_column=Column(no_wrap=True, min_width=STATUS_WIDTH)),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._name_width = 0
        self._pairs = self._bars.add_task("arms x seeds", total=pairs, status="")
        self._rounds: TaskID | None = None
        self._accuracy = ""

    def __enter__(self) -> BarProgress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    @contextmanager
    def run(self, arm: str, seed: int, rounds: int) -> Iterator[None]:
        name = f"{arm}, seed {seed}"
        self._name_width = max(self._name_width, len(name))  # so that the bars do not jump
        self._rounds = self._bars.add_task(f"{name:<{self._name_width}}", total=rounds, status="")
        self._accuracy = ""
        try:
            yield
            self._bars.advance(self._pairs)
        finally:
            self._bars.remove_task(self._rounds)

    def round_done(self, record: RoundRecord) -> None:
        assert self._rounds is not None
        if record.accuracy is not None:
            self._accuracy = f", accuracy {record.accuracy:.1%}"
        clock = time_scale(record.closed_s)(record.closed_s)
        self._bars.update(self._rounds, advance=1, status=f"virtual {clock}{self._accuracy}")

    def skipped(self, arm: str, seed: int) -> None:
        self._bars.advance(self._pairs)

    def failed(self, arm: str, seed: int, reason: str) -> None:
        self._bars.console.print(f"{arm}, seed {seed} failed: {reason}", style="red", markup=False)
        self._bars.advance(self._pairs)


class LineProgress(AbstractContextManager["LineProgress"]):
    """A line when a run starts to look like something, and one when it is done."""

    def __init__(self, pairs: int) -> None:
        self._pairs = pairs
        self._done = 0
        self._rounds = 0
        self._name = ""
        self._accuracy = ""

    def __exit__(self, *error: object) -> None:
        return None

    @contextmanager
    def run(self, arm: str, seed: int, rounds: int) -> Iterator[None]:
        self._name, self._rounds, self._accuracy = f"{arm}, seed {seed}", rounds, ""
        start = time.perf_counter()
        yield
        self._done += 1
        _say(f"[{self._done}/{self._pairs}] {self._name}: done in {time.perf_counter() - start:.1f} s")

    def round_done(self, record: RoundRecord) -> None:
        if record.accuracy is not None:
            self._accuracy = f", accuracy {record.accuracy:.1%}"
        done = record.round + 1
        every = max(1, -(-self._rounds // PLAIN_LINES_PER_RUN))
        if done % every == 0 or done == self._rounds:
            clock = time_scale(record.closed_s)(record.closed_s)
            _say(f"{self._name}: round {done}/{self._rounds}, virtual {clock}{self._accuracy}")

    def skipped(self, arm: str, seed: int) -> None:
        self._done += 1
        _say(f"[{self._done}/{self._pairs}] {arm}, seed {seed}: finished earlier, kept")

    def failed(self, arm: str, seed: int, reason: str) -> None:
        self._done += 1
        _say(f"[{self._done}/{self._pairs}] {arm}, seed {seed}: FAILED: {reason}")


def make_progress(pairs: int, *, quiet: bool = False) -> BarProgress | LineProgress:
    """Bars on a terminal, else lines; on stderr when stdout is for a program (`quiet`)."""
    console = Console(stderr=True)
    return BarProgress(pairs, console) if console.is_terminal and not quiet else LineProgress(pairs)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
