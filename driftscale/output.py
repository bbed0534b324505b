"""What `driftscale.run` shows: progress, if it is wanted, and notes; the results are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from driftscale.notebook import CellOutput, Display, NotebookProgress, notebook_display
from experiments.cli.output import note
from experiments.cli.progress import make_progress
from experiments.cli.reports import write_results_of
from experiments.results.pages.folder_page import write_table
from experiments.results.reading.json_files import Until
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import PlannedRun, Reached
from experiments.running.runner import Progress


class Silent:
    """Progress that shows only what went wrong.

    Args:
        show: Shows a line.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def drawing(self, run: PlannedRun) -> None:
        """Show nothing."""

    def begun(self, run: PlannedRun) -> None:
        """Show nothing."""

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Show nothing."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """Show nothing."""

    def done(self, run: PlannedRun, until: Until | None = None) -> None:
        """Show nothing."""

    def left(self, run: PlannedRun) -> None:
        """Show nothing."""

    def skipped(self, run: PlannedRun, until: Until | None = None) -> None:
        """Show nothing."""

    def failed(self, run: PlannedRun, reason: str) -> None:
        """Show the reason."""
        self._show(f"{run.title} failed: {reason}")

    def note(self, text: str) -> None:
        """Show the line."""
        self._show(text)


@contextmanager
def _silent(show: Callable[[str], None]) -> Iterator[Progress]:
    yield Silent(show)


class CallOutput:
    """The `Show` of a call from Python: writes reports, and prints no table.

    In a notebook, all that it shows is one output of the cell; elsewhere, it is on standard error.

    Args:
        with_progress: Whether to show progress, not only what went wrong.
        display: The display of the notebook; None elsewhere.
    """

    def __init__(self, with_progress: bool, display: Display | None) -> None:
        self._with_progress = with_progress
        self._cell = None if display is None else CellOutput(display)
        self._progress: NotebookProgress | None = None

    @classmethod
    def here(cls, with_progress: bool) -> CallOutput:
        """What shows a call in this process: the output of a notebook's cell, or else standard error."""
        return cls(with_progress, notebook_display())

    def progress(
        self, runs: Sequence[PlannedRun], earlier_s: Mapping[PlannedRun, float], at_once: int
    ) -> AbstractContextManager[Progress]:
        """Context with a bar in a notebook, bars on a terminal, else lines; silent without progress."""
        if not self._with_progress:
            return _silent(self.note)
        if self._cell is None:
            return make_progress(runs, earlier_s, at_once=at_once)
        self._progress = NotebookProgress(self._cell, runs, earlier_s, at_once)
        return self._progress

    def report_one(self, directory: RunDirectory) -> None:
        """Write the results of the run directory."""
        write_results_of(directory, tell=self.note)
        self._end(directory.path)

    def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None:
        """Write the table of the run directories into `folder`."""
        write_table(folder, directories, name)
        self._end(folder)

    def report_finished(self, directory: RunDirectory) -> None:
        """Write the results of the run directory, one of several."""
        write_results_of(directory, shared_plotly=True, tell=self.note)

    def note(self, text: str) -> None:
        """Show the line."""
        if self._cell is None:
            note(text)
        else:
            self._cell.note(text)

    def _end(self, path: Path) -> None:
        """In a notebook, replace the bar by the number of runs, the wall time, and where the results are."""
        if self._cell is not None and self._progress is not None:
            self._cell.end(f"{self._progress.line}; {path}")
