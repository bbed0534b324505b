"""The one output of a call in a notebook: a bar while runs are played, and one line when they have ended.

It needs no library but IPython, which the kernel of a notebook has: a bar of HTML is shown once, and updated
in place.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from typing import Any, Protocol
from uuid import uuid4

from emulator.errors import printable
from experiments.cli.progress import names_of, outlook, where
from experiments.results.reading.json_files import Until
from experiments.results.statistics.scales import time_scale
from experiments.running.plan import PlannedRun, Reached
from experiments.running.time_left import TimeLeft

UPDATE_EVERY_S = 0.2
"""Minimum wall seconds between two updates of a bar."""

MOST_LINES = 50
"""Most lines of notes that are shown; the last one then says how many are not."""


class Display(Protocol):
    """Shows an output in a cell, and replaces it: IPython's `display` and `update_display`."""

    def __call__(self, data: Mapping[str, str], *, display_id: str, is_update: bool) -> None:
        """Show `data`, by MIME type, as the output `display_id`; `is_update`: in place of what it shows."""


def notebook_display() -> Display | None:
    """The display of the notebook that runs this process; None if none does, as in a terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None

    def show(data: Mapping[str, str], *, display_id: str, is_update: bool) -> None:
        from IPython import display

        untyped: Any = display.display
        untyped(data, raw=True, display_id=display_id, update=is_update)

    return show


class CellOutput:
    """An output of a notebook's cell: a status, a bar or none, and lines of notes.

    It is shown at the first call that changes it, and updated in place at the following ones.

    Args:
        display: Shows it.
        clock: Wall seconds.
    """

    def __init__(self, display: Display, clock: Callable[[], float] = time.perf_counter) -> None:
        self._display = display
        self._clock = clock
        self._id = uuid4().hex
        self._shown_s: float | None = None
        self._status = ""
        self._fraction: float | None = None
        self._notes: list[str] = []

    @property
    def is_due(self) -> bool:
        """Whether `UPDATE_EVERY_S` have passed since it was last shown."""
        return self._shown_s is None or self._clock() - self._shown_s >= UPDATE_EVERY_S

    def status(self, text: str, fraction: float) -> None:
        """Show `text` beside a bar that is filled to `fraction`, 0 to 1."""
        self._status, self._fraction = text, fraction
        self._show()

    def end(self, text: str) -> None:
        """Show `text` in place of the status and its bar."""
        self._status, self._fraction = text, None
        self._show()

    def note(self, text: str) -> None:
        """Add a line below the status, at once."""
        self._notes.append(printable(text))
        if len(self._notes) <= MOST_LINES:
            self._show()

    def _show(self) -> None:
        lines = self._notes[:MOST_LINES]
        if len(self._notes) > MOST_LINES:
            lines.append(f"and {len(self._notes) - MOST_LINES} more lines")
        data = {"text/plain": "\n".join(filter(None, [self._status, *lines])), "text/html": self._html(lines)}
        self._display(data, display_id=self._id, is_update=self._shown_s is not None)
        self._shown_s = self._clock()

    def _html(self, lines: Sequence[str]) -> str:
        bar = ""
        if self._fraction is not None:
            share = f"{100 * self._fraction:.0f}"
            bar = f'<progress max="100" value="{share}" aria-label="rounds done">{share}%</progress> '
        status = [f"<div>{bar}{escape(self._status)}</div>"] if self._status else []
        return "".join([*status, *(f"<div>{escape(line)}</div>" for line in lines)])


class NotebookProgress(AbstractContextManager["NotebookProgress"]):
    """Progress in a notebook: one bar for all runs, with the run that was heard of last.

    It receives reports as `experiments.running.runner.Progress` states. At its end, the number of runs and
    the wall time replace the bar.

    Args:
        cell: The output.
        runs: All runs of the command.
        earlier_s: Wall seconds of those that were finished before.
        at_once: How many runs may be at work at the same time.
        clock: Wall seconds.
    """

    def __init__(
        self,
        cell: CellOutput,
        runs: Sequence[PlannedRun],
        earlier_s: Mapping[PlannedRun, float],
        at_once: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cell = cell
        self._left = TimeLeft(runs, earlier_s, at_once, clock)
        self._names = names_of(runs)
        self._num_runs = sum(len(run.arms) for run in runs)
        self._ended: Counter[str] = Counter()
        self._clock = clock
        self._begun_s = clock()
        self._wall_s: float | None = None

    @property
    def line(self) -> str:
        """How many runs were done so far, and in what wall time; once it has ended, until then."""
        wall_s = self._clock() - self._begun_s if self._wall_s is None else self._wall_s
        is_stopped = self._wall_s is not None and self._ended.total() < self._num_runs
        ends = {how: count for how, count in self._ended.items() if count}
        if is_stopped or not ends:
            ends = {"done": self._ended["done"]} | ends
        texts = {"done": f"in {time_scale(wall_s)(wall_s)}", "kept": "finished earlier", "failed": "failed"}
        texts |= {how: how for how in ends if how.startswith("stopped")}
        (first, count), *others = [(how, ends[how]) for how in texts if how in ends]
        total = f" of {len(self._names)}" if is_stopped else ""
        nouns = "run" if count == 1 and not total else "runs"
        parts = [
            f"{count}{total} {nouns} {texts[first]}",
            *(f"{number} {texts[how]}" for how, number in others),
        ]
        return f"{'stopped: ' if is_stopped else ''}{', '.join(parts)}"

    def __enter__(self) -> NotebookProgress:
        self._show("")
        return self

    def __exit__(self, *error: object) -> None:
        self._wall_s = self._clock() - self._begun_s
        self._cell.end(self.line)

    def drawing(self, run: PlannedRun) -> None:
        """Show that the clients of the seed are drawn."""
        self._show(f"drawing clients, seed {run.seed}")

    def begun(self, run: PlannedRun) -> None:
        """Show that the run has begun."""
        self._left.begun(run)
        self._show(self._names[run])

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Show from which round the run resumes."""
        self._left.resumed(run, rounds)
        self._show(f"{self._names[run]}: resuming from round {rounds}")

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """Show how far the run has come."""
        self._left.round_done(run, reached.rounds)
        self._show(f"{self._names[run]}: round {reached.rounds}/{run.rounds}, {where(reached)}")

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        """Count the run as done, or as stopped."""
        self._left.done(run)
        self._end(run, "done" if until is None else f"stopped at {until}")

    def left(self, run: PlannedRun) -> None:
        """Show nothing: the caller reports why the run is no longer at work."""

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None:
        """Count the run as finished, or stopped, earlier."""
        self._left.drop(run)
        self._end(run, "kept" if until is None else f"stopped at {until}")

    def failed(self, run: PlannedRun, reason: str) -> None:
        """Add a line with the reason."""
        self._left.drop(run)
        self._cell.note(f"{self._names[run]} failed: {reason}")
        self._end(run, "failed")

    def note(self, text: str) -> None:
        """Add the line."""
        self._cell.note(text)

    def _end(self, run: PlannedRun, how: str) -> None:
        self._ended[how] += len(run.arms)
        self._show(self._names[run])

    def _show(self, what: str) -> None:
        if not self._cell.is_due:
            return
        runs = f"{self._ended.total()}/{self._num_runs} runs, {outlook(self._left)}"
        self._cell.status("; ".join(filter(None, [runs, what])), self._left.fraction)
