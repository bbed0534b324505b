"""What is made of a run directory once runs are finished: summary, table of rounds, report."""

from __future__ import annotations

from experiments.results.report import write_report
from experiments.results.rounds_table import write_rounds_table
from experiments.results.run_directory import RunDirectory
from experiments.results.summary import Summary, write_summary


def write_results(directory: RunDirectory) -> Summary:
    """Write `summary.json`, `rounds.parquet` and, once the reference arm has a finished run, `report.html`.

    InputError without a finished run, ForeignFileError before anything is written.
    """
    directory.refuse_foreign()
    runs = directory.finished_runs()
    summary = write_summary(directory, runs)
    write_rounds_table(directory.rounds_path, runs)
    if summary.accuracy:
        write_report(directory, runs, summary)
    return summary
