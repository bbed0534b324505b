"""What `driftscale run` shows: progress while runs are played, then tables or JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir

from emulator.errors import EmulatorError, RunError
from executor.gloo import Job
from experiments.cli.output import OutputFormat, note
from experiments.cli.progress import BarProgress, LineProgress, make_progress
from experiments.cli.reports import report_one, report_table, write_results_of
from experiments.cli.signals import EXIT_CODE, stop_on_signals
from experiments.locating import locator
from experiments.playing.command import RunCommand
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.plan import PlannedRun
from experiments.running.replicas import follow, joined


@dataclass(frozen=True)
class Printed:
    """The `Show` of the command line: progress on standard error, results on standard output.

    `explain`: print all tables, with notes.
    """

    output: OutputFormat
    explain: bool = False

    def progress(
        self, runs: Sequence[PlannedRun], earlier_s: Mapping[PlannedRun, float], at_once: int
    ) -> BarProgress | LineProgress:
        return make_progress(runs, earlier_s, quiet=self.output is OutputFormat.JSON, at_once=at_once)

    def report_one(self, directory: RunDirectory) -> None:
        report_one(directory.path, self.output, explain=self.explain)

    def report_table(self, folder: Path, directories: Sequence[RunDirectory], name: str) -> None:
        report_table(folder, directories, name, self.output, explain=self.explain)

    def report_finished(self, directory: RunDirectory) -> None:
        write_results_of(directory, shared_plotly=True)

    def note(self, text: str) -> None:
        note(text)


def follow_first(job: Job, command: RunCommand) -> None:
    """Play the runs that rank 0 announces, and exit as rank 0 does.

    Prints no error, since rank 0 does, unless another rank is lost.
    """
    with stop_on_signals(job.rank) as stop, joined(job, stop) as ranks:
        try:
            with ranks.telling(ends=True):
                follow(ranks, locator(command.data, command.config), Path(gettempdir()))
        except BaseException as error:
            if ranks.is_alone:
                raise
            code = EXIT_CODE if isinstance(error, KeyboardInterrupt) else RunError.exit_code
            os._exit(error.exit_code if isinstance(error, EmulatorError) else code)
