"""Accuracy without and with drift cells, of all finished runs, where the trace knows its concepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from experiments.results.statistics.marked_seeds import marked_by_drift
from experiments.results.statistics.published import COMPARED, agreement, beside_published, spread
from experiments.results.statistics.whole_runs import Finished
from experiments.results.tables.cells import Cell
from experiments.results.tables.published_cells import (
    OUTSIDE,
    agreement_sentence,
    compared,
    models,
    scored_steps,
    unmarked,
)
from experiments.results.tables.quantities import SHARE, Quantity
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Place, Table, TextTable

HEADINGS = ("omitting drift", "including drift")
"""Those of the figures `COMPARED`."""

NOTE = (
    "Mean ± sample standard deviation (n \N{MINUS SIGN} 1) over seeds. Test-then-train: at the end of each "
    "data step every client is scored on its samples of the next step; a cell is one client at one step. If "
    "those samples are of another concept than the samples that the client trained on, no method can be "
    "prepared: the first figure leaves such drift cells out, the second includes them. Models sent are whole "
    "models, down and up, for training and for scoring; in brackets relative to "
)


UNKNOWN_CONCEPTS = "if the trace does not know its concepts"
OF_WHOLE_RUNS = (
    Quantity("accuracy_omitting_drift", None, SHARE).means(
        "accuracy of the whole run without drift cells: clients whose test samples are of another concept "
        "than their newest training samples",
        UNKNOWN_CONCEPTS,
    ),
    Quantity("accuracy_including_drift", None, SHARE).means(
        "accuracy of the whole run over all cells of clients and data steps", UNKNOWN_CONCEPTS
    ),
    Quantity("models_sent", None, "models").means("models transferred in the whole run, either way"),
    Quantity("relative_models_sent", None, "factor").means("the same over that of the reference arm"),
)
"""The figures of whole runs (statistics/whole_runs.py), in the order of frames."""

Cells = dict[str, dict[str, Mapping[str, Any] | None]]
"""For each of the figures `COMPARED` and each arm, what `beside_published` has."""


def _on_page(report: Report) -> OnPage | None:
    finished = report.summary.finished
    if not finished.is_known:
        return None
    names = [name for name in report.order if name in finished.arms]
    settings = report.experiment["report"]
    cells = _cells(finished, names, settings)
    agreed = [_agreement(cells[figure], heading) for figure, heading in zip(COMPARED, HEADINGS, strict=True)]
    known = [sentence for sentence in agreed if sentence is not None]
    notes = [_note(report, has_published=bool(known)), *filter(None, known)]
    return OnPage([NotedTable("", accuracy_table(finished, names, settings), notes)])


def _agreement(cells: Mapping[str, Mapping[str, Any] | None], heading: str) -> str | None:
    """A sentence on how a figure agrees with published values, perhaps empty; None without any."""
    found = agreement({name: cell for name, cell in cells.items() if cell is not None})
    return None if found is None else agreement_sentence(heading.capitalize(), found)


def _cells(finished: Finished, names: Sequence[str], settings: Mapping[str, Any]) -> Cells:
    arms = finished.arms
    marked = {entry.seed for entry in marked_by_drift(finished)}
    return {
        figure: {
            name: beside_published(
                arms[name][figure].per_seed, figure, name, settings, marked, finished.seed_ids[name]
            )
            for name in names
        }
        for figure in COMPARED
    }


def accuracy_table(finished: Finished, names: Sequence[str], settings: Mapping[str, Any]) -> TextTable:
    """A row for each of the arms `names`: each accuracy, its published value and the difference, and models.

    `settings` is the table `[report]` of the configuration.
    """
    cells = _cells(finished, names, settings)
    headings = [text for heading in HEADINGS for text in (f"{heading} (%)", "published", "difference")]
    rows = []
    for name in names:
        arm = finished.arms[name]
        row = []
        for figure in COMPARED:
            ours, published, difference = compared(cells[figure][name])
            row += [Cell(ours, unmarked(cells[figure][name])), Cell(published), Cell(difference)]
        sent = models(spread(arm["models_sent"].per_seed), spread(arm["relative_models_sent"].per_seed))
        rows.append((name, [*row, Cell(sent)]))
    return TextTable([*headings, "models sent"], rows)


def _note(report: Report, *, has_published: bool) -> str:
    finished = report.summary.finished
    steps = scored_steps(finished.steps, finished.scored_steps)
    scored = Markup("<strong>{} were scored.</strong> ").format(steps) if steps else Markup("")
    outside = f" Of a difference, {OUTSIDE}." if has_published else ""
    return scored + f"{NOTE}{report.summary.reference_arm}.{outside}"


TABLE = Table(
    title="Accuracy without drift cells and with them", place=Place("pays", id="drift"), on_page=_on_page
)
