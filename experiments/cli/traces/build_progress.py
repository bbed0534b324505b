"""Progress of a build on standard error: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, suppress
from typing import IO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from emulator.errors import printable
from experiments.cli.output import say
from experiments.cli.streams import Notes
from traces.building import Watch

PLAIN_EVERY_S = 10.0


class BuildProgress(AbstractContextManager["BuildProgress"]):
    """Context in which `watch` shows the progress of a build. A terminal that has closed stops no build."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        console.file = cast(IO[str], Notes(console.file))
        self._bars: Progress | None = None
        if console.is_terminal:
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=40),
                MofNCompleteColumn(),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=console,
            )
            self._task = self._bars.add_task("listing", total=None)
        self._printed_s = time.monotonic()

    def __enter__(self) -> BuildProgress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def watch(self) -> Watch:
        """What a builder reports to."""
        return Watch(progress=self._progress, note=self._note)

    def _progress(self, done: int, total: int) -> None:
        if self._bars is not None:
            self._bars.update(self._task, description="decoding", completed=done, total=total)
        elif time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._printed_s = time.monotonic()
            _print_line(f"{done:,} of {total:,}")

    def _note(self, text: str) -> None:
        if self._bars is not None:
            self._bars.console.print(printable(text), markup=False, highlight=False)
        else:
            _print_line(text)


def _print_line(text: str) -> None:
    with suppress(OSError):
        say(text, aside=True)
