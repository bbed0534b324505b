"""Assembles `report.html`: the tables and figures of each question, in the order of their lists.

`write_results` writes everything that is made from finished runs. Nothing here knows a table or a figure by
name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from markupsafe import Markup

from emulator.errors import InputError
from emulator.storage.bounded import read_text
from emulator.storage.checkpoints import write_durably
from experiments.results.drawing.arms import arm_colour
from experiments.results.drawing.plot import Plot
from experiments.results.drawing.plotly_js import PLOTLY_FILE, plotly_js
from experiments.results.figures import all_figures
from experiments.results.frames.rounds_table import write_rounds_table
from experiments.results.pages import opening, what_was_run
from experiments.results.pages.scripted_page import page_with_nonce
from experiments.results.pages.sentences import MOST_LINES, notation, sentences
from experiments.results.reading.recorded import MOST_EXPERIMENT_BYTES
from experiments.results.reading.run_directory import ReportedRun, RunDirectory
from experiments.results.statistics.summary import Summary
from experiments.results.tables import notes, tables_by_name
from experiments.results.tables.report import Report
from experiments.results.tables.round_lengths import OF_STEPS
from experiments.results.tables.summary import summarise_directory, write_summary
from experiments.results.tables.table import OnPage, QuestionId
from experiments.results.wording import told

QUESTIONS: Mapping[QuestionId, str] = {
    "pays": "Does it pay?",
    "for-whom": "For whom?",
    "why": "Why?",
    "repeat": "Can I trust and repeat it?",
}
"""The titles of the questions, in the order of the page."""

HOW_TO_LOG_CLIENTS = (
    "Not recorded: round.log_client_accuracy = true, in the configuration or by --set, logs the accuracy of "
    "each client, and this section then shows deciles, the worst tenth, and who is worse off."
)

CLIENTS = "Accuracy of clients", "for-whom-tables"
ROUNDS = "Rounds, and what they waited for", "why-tables"
GROUPS = {"clients": CLIENTS, "rounds": ROUNDS}
"""(title, id) of each section of several tables."""

ABSENCES = {CLIENTS: HOW_TO_LOG_CLIENTS, ROUNDS: f"Not shown: of all arms, {OF_STEPS}."}
"""The remark that such a section has without any table."""


def page_sections(report: Report, first: str = "") -> dict[tuple[str, bool], dict[tuple[str, str], OnPage]]:
    """By question and by whether they come after its figures, the sections in the order of the page.

    A section is what its tables show, by its title and id. Sections of several tables come before those of
    one. The table `first`, with which the page opens, is in none; a section that it leaves empty is left out.
    """
    found: dict[tuple[str, bool], dict[tuple[str, str], list[OnPage]]] = {
        (question, after): {} for question in QUESTIONS for after in (False, True)
    }
    found["for-whom", False][CLIENTS] = []
    found["why", False][ROUNDS] = []
    opened = {
        GROUPS.get(table.place.group)
        for called, table in tables_by_name().items()
        if called == first and table.place is not None
    }
    for called, table in tables_by_name().items():
        place, shown = table.place, None if called == first else table.shown_on_page(report)
        if place is not None and shown is not None:
            name = GROUPS.get(place.group, (table.title, place.id))
            found[place.question, place.after_figures].setdefault(name, []).append(shown)
    tell = partial(told, report.summary.words)
    return {
        where: {
            tell(name): tell(_joined(parts, ABSENCES.get(name, "")))
            for name, parts in sections.items()
            if parts or name not in opened
        }
        for where, sections in found.items()
    }


def _joined(parts: Sequence[OnPage], absence: str) -> OnPage:
    """What the tables of a section show: one that has a template, or several; without any, `absence`."""
    if len(parts) == 1:
        return parts[0]
    return OnPage(
        tables=[table for part in parts for table in part.tables],
        sentences=[sentence for part in parts for sentence in part.sentences],
        remarks=[remark for part in parts for remark in part.remarks] if parts else [absence],
        lead=next((part.lead for part in parts if part.lead), ""),
    )


def plots(report: Report) -> dict[str, list[Plot]]:
    """By question, the figures that show something."""
    found: dict[str, list[Plot]] = {question: [] for question in QUESTIONS}
    for figure in all_figures().values():
        found[figure.question] += figure.plots(report)
    return found


def write_results(directory: RunDirectory, *, shared_plotly: bool = False) -> Summary:
    """Write `summary.json`, `rounds.parquet` and, once the reference arm has a finished run, `report.html`.

    Returns the summary. Raises InputError if no run is finished, and ForeignFileError, before anything is
    written, if a file or folder of the run directory is of another kind, such as a link. `shared_plotly`: see
    `write_report`.
    """
    directory.refuse_foreign()
    if directory.results is not None:
        directory.results.mkdir(exist_ok=True)
    runs = directory.reported_runs()
    summary = write_summary(directory, runs)
    write_rounds_table(directory.rounds_path, runs)
    if summary.rows:
        write_report(directory, runs, summary, shared_plotly=shared_plotly)
    return summary


def write_report(
    directory: RunDirectory,
    runs: Sequence[ReportedRun] | None = None,
    summary: Summary | None = None,
    *,
    shared_plotly: bool = False,
) -> Path:
    """Write `report.html` and return its path. The same files give the same bytes.

    Args:
        directory: The run directory.
        runs: Its finished runs; by default they are read here.
        summary: Their summary; by default it is made here.
        shared_plotly: Whether the page loads plotly.js from the folder above, where `write_plotly` writes it.
            By default the page contains it, and stands alone.

    Raises:
        InputError: The reference arm has no finished run.
    """
    runs = directory.reported_runs() if runs is None else runs
    summary = summarise_directory(directory, runs) if summary is None else summary
    if not summary.rows:
        raise InputError(f"{directory.path}: the reference arm {summary.reference_arm!r} has no finished run")
    report = Report(directory, runs, summary)
    settings = report.experiment["report"]
    tell = partial(told, summary.words)
    first = tell(opening.opening(report))
    sections = page_sections(report, first.named_table)
    drawn = plots(report)
    folded = {name: [plot for plot in found if plot is not first.plot] for name, found in drawn.items()}
    missing = what_was_run.missing_runs(
        directory, {(run.arm, run.seed) for arm in report.arms for run in arm.runs}
    )
    stated = sentences(summary, settings)
    page = page_with_nonce(
        "report_page.html",
        name=summary.name,
        told=tell,
        lead=what_was_run.lead(report.experiment, runs),
        missing=missing,
        opening=first,
        warnings=[notes.as_warning(text) for text in summary.warnings()],
        heard=summary.offline_clients_heard,
        most_stated=MOST_LINES,
        questions=QUESTIONS,
        sections=sections,
        plots=folded,
        num_plots=sum(map(len, drawn.values())),
        colours={name: arm_colour(position) for position, name in enumerate(report.order)},
        sentences=stated,
        headline_notes=[notation(stated), *notes.headline_notes(summary)],
        headline_cautions=[notes.heard_note(summary.offline_clients_heard)],
        facts=[*what_was_run.drift_of_runs(runs), *what_was_run.settings_of_run(directory)],
        hashes=what_was_run.hashes_of_inputs(directory),
        experiment_text=read_text(directory.experiment_path, MOST_EXPERIMENT_BYTES),
        plotly_js=None if shared_plotly else Markup(plotly_js()),
        plotly_file=PLOTLY_FILE,
    )
    write_durably(directory.report_path, page)
    return directory.report_path
