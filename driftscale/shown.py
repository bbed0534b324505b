"""What `driftscale.run` shows: progress, if it is wanted, and notes; the results are returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from experiments.cli.progress import make_progress
from experiments.cli.reports import note, write_results_of
from experiments.results.many_runs.folder_table import build_sections
from experiments.results.pages.folder_page import write_table
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import PlannedRun, Reached
from experiments.running.runner import Progress


class Silent:
    """Progress that shows only what went wrong."""

    def drawing(self, run: PlannedRun) -> None:
        """Show nothing."""

    def begun(self, run: PlannedRun) -> None:
        """Show nothing."""

    def resumed(self, run: PlannedRun, rounds: int) -> None:
        """Show nothing."""

    def round_done(self, run: PlannedRun, reached: Reached) -> None:
        """Show nothing."""

    def done(self, run: PlannedRun) -> None:
        """Show nothing."""

    def left(self, run: PlannedRun) -> None:
        """Show nothing."""

    def skipped(self, run: PlannedRun) -> None:
        """Show nothing."""

    def failed(self, run: PlannedRun, reason: str) -> None:
        """Show the reason."""
        note(f"{run.arm}, seed {run.seed} failed: {reason}")

    def note(self, text: str) -> None:
        """Show the line."""
        note(text)


@contextmanager
def _silent() -> Iterator[Progress]:
    yield Silent()


class Shown:
    """The `Show` of a call from Python: writes reports, and prints no table.

    Args:
        with_progress: Whether to show progress on standard error, not only what went wrong.
    """

    def __init__(self, with_progress: bool) -> None:
        self._with_progress = with_progress

    def progress(
        self, runs: Sequence[PlannedRun], earlier_s: Mapping[PlannedRun, float], at_once: int
    ) -> AbstractContextManager[Progress]:
        """Context with bars on a terminal, else lines; silent if no progress is wanted."""
        if self._with_progress:
            return make_progress(runs, earlier_s, at_once=at_once)
        return _silent()

    def report_one(self, directory: RunDirectory) -> None:
        """Write the results of the run directory."""
        write_results_of(directory)

    def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None:
        """Write the table of the run directories into `folder`."""
        write_table(folder, directories, name, build_sections(directories))

    def report_finished(self, directory: RunDirectory) -> None:
        """Write the results of the run directory, one of several."""
        write_results_of(directory, shared_plotly=True)

    def note(self, text: str) -> None:
        """Print the line on standard error."""
        note(text)
