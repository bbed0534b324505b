"""The page of frames: every column, its unit, and when it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import driftscale
from docs.writing.api import property_text
from docs.writing.in_common import InCommon, Row
from docs.writing.markdown import code, heading, page, prose, table
from experiments.results.frames.columns import (
    CHECK,
    COMPARISON,
    IN_FOLDERS,
    Column,
    columns_of,
    figures,
    frame_columns,
)
from experiments.results.statistics.time_to_accuracy import ACCURACIES
from experiments.results.tables.concept_drift import OF_WHOLE_RUNS
from experiments.results.tables.drift import NO_DRIFT_BEFORE, drift_quantities
from experiments.results.tables.targets import OF_TARGETS

INTRODUCTION = """\
`driftscale.load("runs/NAME")` and `driftscale.run` have the results as pandas frames, `driftscale export`
writes them as CSV or Parquet. Units are in the names of columns: `_s` is virtual seconds, `wall_s` wall
seconds, `_bytes` bytes, `_pp` percentage points. Other units are in brackets; a *share* is from 0 to 1.
`results.columns("rounds")` gives the tables of this page in a notebook.

*Missing* is NaN, or NA in a column of whole numbers, and an empty cell in a CSV. *Whole rounds* have one
dispatch and one server step each, as under every pacing but `buffered`."""

FILES = """\
A run directory has `rounds` of all finished runs in `rounds.parquet`, and each run, beside its log,
`visits.parquet`, and `clients.parquet` with names and the columns about devices; what the frames add is
`arm` and `seed`."""

FIGURES_ABOUT = """\
The quantities of `summary.json`. They are paired: an arm is measured on the seeds that the reference arm,
the first one, has finished too. They are up to the horizon, unless they are of whole runs. As in [reading
the tables](../explanation/horizon.md)."""


HEADINGS = ("column", "meaning [unit]", "", "missing")
"""The columns of a table of columns; none is kept for a default."""

TOLD = ("_s", "_bytes", "_pp")
"""The ends of names that tell a unit."""


def frames_page() -> str:
    """The page of frames."""
    frames = {name: column_rows(columns) for name, columns in frame_columns().items()}
    shared = InCommon("In common", HEADINGS, list(frames.values()))
    of_drift = {of.key for name in ACCURACIES for of in drift_quantities(name)}
    return page(
        "Frames",
        INTRODUCTION,
        *shared.section(2),
        *(block for name, rows in frames.items() for block in _frame(name, rows, shared)),
        heading(2, "Frames of a folder"),
        "The frames of a folder of run directories, such as that of a sweep, begin with these columns.",
        columns_table(IN_FOLDERS),
        heading(2, "Figures"),
        FIGURES_ABOUT,
        heading(3, "Without a target"),
        columns_table({key: column for key, column in figures().items() if key not in of_drift}, "figure"),
        heading(3, "Before and after the drift"),
        f"`<accuracy>` stands for {', '.join(map(code, ACCURACIES))}. Missing {prose(NO_DRIFT_BEFORE)}.",
        columns_table(columns_of(drift_quantities("<accuracy>", missing="")), "figure"),
        heading(3, "Of a target"),
        columns_table(columns_of(OF_TARGETS), "figure"),
        heading(3, "Of whole runs"),
        "They count all finished seeds of an arm, and are in `summary` alone.",
        columns_table(columns_of(OF_WHOLE_RUNS, "finished."), "figure"),
        heading(2, "`Comparison.frame`"),
        "A row for each arm of a run directory, of `driftscale.compare(...)`.",
        columns_table(COMPARISON),
        heading(2, "`Check.frame`"),
        "A row for each configuration, of `driftscale.check(...)`. These are the facts of "
        "`driftscale check --format json` too.",
        columns_table(CHECK, "column"),
        heading(2, "Files"),
        FILES,
    )


def _frame(name: str, rows: Sequence[Row], shared: InCommon) -> Iterator[str]:
    yield heading(2, code(name))
    yield prose(property_text(getattr(driftscale.Results, name)))
    yield from shared.own(rows)


def columns_table(columns: Mapping[str, Column], first: str = "column") -> str:
    """A table of columns: meaning, unit, and when a value is missing, or the whole column."""
    return table((first, *HEADINGS[1:]), column_rows(columns))


def column_rows(columns: Mapping[str, Column]) -> list[Row]:
    """A row for each column, with its unit unless its name tells it."""
    return [
        (code(name), prose(_meaning(name, column)), "", prose(_missing(column)))
        for name, column in columns.items()
    ]


def _meaning(name: str, column: Column) -> str:
    is_told = name.endswith(TOLD) or column.unit in ("", "that of the figure")
    return column.meaning if is_told else f"{column.meaning} [{column.unit.removesuffix(', 0 to 1')}]"


def _missing(column: Column) -> str:
    absent = f"no such column {column.absent}" if column.absent else ""
    return "; ".join(filter(None, [column.missing, absent]))
