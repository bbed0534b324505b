"""What a report opens with: a figure, or a table and a figure, and a table that has a line for each arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.results.drawing.plot import Plot
from experiments.results.figures import all_figures
from experiments.results.figures.first import ACCURACY, first_shown
from experiments.results.many_runs.runs_table import NamedCells, in_columns
from experiments.results.pages.short_table import NOT_ABOVE_ALL, gain_columns, in_a_line
from experiments.results.statistics.intervals import amount_estimate
from experiments.results.statistics.medians import levels_as_text
from experiments.results.statistics.scales import as_time, bytes_scale, percent_scale
from experiments.results.statistics.summary import Summary
from experiments.results.statistics.targets import TargetTable
from experiments.results.tables.cells import Cell
from experiments.results.tables.claims import claims
from experiments.results.tables.clients import are_logged, worst_tenth
from experiments.results.tables.concept_drift import accuracy_table
from experiments.results.tables.costs import CONTROL, DOWNLOAD, UPLOAD
from experiments.results.tables.quantities import column_cells
from experiments.results.tables.report import Report
from experiments.results.tables.table import NotedTable, OnPage, Table
from experiments.results.tables.targets import HELD_FROM, target_columns

HOW_TO_READ = (
    "Brackets have the 95 % interval of a figure or, without one, the range of its seeds{of_medians}. Bytes "
    "are all that clients sent and received up to the horizon, the mean over seeds"
)
OF_MEDIANS = ", and of the time from which a target is held, a median, its interval of order statistics at "
OF_THE_WORST = "the worst tenth is the mean accuracy of the tenth of clients with the lowest one"


@dataclass(frozen=True)
class Opening:
    """The first figure of a page, the table before it if `report.first` names one, and the table of arms.

    The plot is on the page only here, and so is the table `named_table`, if it is not empty: (title, content)
    are `table`. `absence` is a sentence if what `report.first` names shows nothing of these runs.
    """

    plot: Plot
    arms: NotedTable
    named_table: str = ""
    table: tuple[str, OnPage] | None = None
    absence: str = ""


def opening(report: Report) -> Opening:
    """What the page of these runs opens with."""
    name = report.experiment["report"].get("first") or ACCURACY
    [accuracy] = all_figures()[ACCURACY].plots(report)
    arms, named = arms_table(report), first_shown(name)
    if isinstance(named, Table):
        shown = named.shown_on_page(report)
        if shown is not None:
            return Opening(accuracy, arms, name, (named.title, shown))
        why = "the table says nothing of these runs"
    else:
        if plots := named.plots(report):
            return Opening(plots[0], arms)
        why = named.absence
    return Opening(accuracy, arms, absence=f"report.first = {name!r} is not shown: {why}.")


def arms_table(report: Report) -> NotedTable:
    """The table with a line for each arm that is compared: its accuracy, gain, time to a target and bytes."""
    columns = list(_columns(report))
    target = _shown_target(report.summary)
    levels = levels_as_text(row[HELD_FROM.key].level for row in target.rows) if target is not None else ""
    how = HOW_TO_READ.format(of_medians=f"{OF_MEDIANS}{levels}" if levels else "")
    notes = [
        f"{how}{f'; {OF_THE_WORST}' if are_logged(report.summary) else ''}. The folds below have "
        "more figures, and how each is measured."
    ]
    if any(cell.note for _, cells in columns for cell in cells):
        notes.append(f"{NOT_ABOVE_ALL}.")
    title = f"Arms, up to {as_time(report.summary.horizon.horizon_s)} of virtual time"
    return NotedTable(title, in_columns([row.arm for row in report.summary.rows], columns), notes)


def _columns(report: Report) -> Iterator[NamedCells]:
    summary = report.summary
    rows, of = summary.rows, claims(summary)
    if summary.finished.scored_steps is not None:
        by_step = accuracy_table(summary.finished, [row.arm for row in rows], report.experiment["report"])
        yield by_step.headings[0], [Cell(cells[0].figure) for _, cells in by_step.rows]
    columns = gain_columns(summary)
    gain = of.over_best if summary.comparison.has_baselines else of.gain
    for key in dict.fromkeys(("mean_accuracy", of.mean, gain)):
        yield columns[key].heading, in_a_line(columns[key], rows)
    if (target := _shown_target(summary)) is not None:
        [held] = target_columns([HELD_FROM], counts_from_event=target.counts_from_event)
        accuracy = percent_scale(0.0)(target.accuracy.mean or 0.0)
        yield f"{accuracy} {held.heading}", held.cells(target.rows)
    transferred = [
        amount_estimate([sum(found) for found in zip(*per_seed, strict=True)])
        for row in rows
        if (per_seed := [row[of.key].per_seed for of in (DOWNLOAD, UPLOAD, CONTROL)])
    ]
    yield "bytes", [Cell(cell.figure) for cell in column_cells(bytes_scale, transferred)]
    if are_logged(summary):
        yield worst_tenth.heading, in_a_line(worst_tenth, rows)


def _shown_target(summary: Summary) -> TargetTable | None:
    """The highest target that some arm holds in some seed, or else the lowest; None without any.

    Targets are of what serves clients, and not shown beside the accuracy of what they use.
    """
    if summary.comparison.has_personal:
        return None
    known = sorted(
        (table for table in summary.targets if table.accuracy.mean is not None),
        key=lambda table: table.accuracy.mean or 0.0,
    )
    held = [table for table in known if any(row["held"] for row in table.rows)]
    return held[-1] if held else next(iter(known), None)
