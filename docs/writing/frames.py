"""The page of frames: every column, its unit, and when it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from docs.writing.in_common import InCommon, Row
from docs.writing.markdown import code, heading, page, prose, sentence, table
from emulator.storage.recorded_tables import CLIENTS, OF_STEPS, VISITS
from experiments.results.frames.columns import (
    CHECK,
    COMPARISON,
    FIGURES,
    FINISHED,
    IN_FOLDERS,
    NO_DRIFT_BEFORE,
    OF_TARGETS,
    Column,
    drift_figures,
    frame_columns,
)
from experiments.results.statistics.time_to_accuracy import ACCURACIES

INTRODUCTION = """\
`driftscale.load("runs/NAME")` and `driftscale.run` have the results as pandas frames, `driftscale export`
writes them as CSV or Parquet. Units are in the names of columns: `_s` is virtual seconds, `wall_s` wall
seconds, `_bytes` bytes, `_pp` percentage points. Other units are in brackets; a *share* is from 0 to 1.
`results.columns("rounds")` gives the tables of this page in a notebook.

*Missing* is NaN, or NA in a column of whole numbers, and an empty cell in a CSV. *Whole rounds* have one
dispatch and one server step each, as under every pacing but `buffered`."""

ABOUT: Mapping[str, str] = {
    "summary": "A row for each arm, seed and [figure](#figures), and each target of it.",
    "table": "A row for each arm: means over seeds, and their 95 % intervals. `<figure>` stands for the "
    "name of any [figure](#figures) without a target. It is not exported.",
    "rounds": "A row for each arm, seed and round, also after the horizon. `rounds.parquet` of a run "
    "directory has the same columns.",
    "clients": "A row for each arm, seed and client, as of the last round by the horizon. "
    "`results.clients_of(arm, seed)` has those of one run.",
    "visits": "A row for each visit; needs `round.log_visits = true`. `results.visits_of(arm, seed)` has "
    "those of one run.",
    "triggers": "A row for each arm, seed and round in which a trigger compared something, or numbers of "
    "clusters were tried.",
    "detection": "A row for each arm, seed and detector; needs a table `[detection]`. It has the figures of "
    "`detection` in `summary.json`, over the rounds that are scored.",
    "drifts": "A row for each arm, seed, detector and drift, a client and the round in which its data become "
    "others, of the rounds that are scored; needs a table `[detection]`.",
    "model_accuracy": "A row for each arm, seed, evaluated round, model and true concept of tests, also "
    "after the horizon; needs `round.log_model_accuracy = true`. Arms that federate no models have none.",
}

FIGURES_ABOUT = """\
The quantities of `summary.json`. They are paired: an arm is measured on the seeds that the reference arm,
the first one, has finished too. They are up to the horizon, unless they are of whole runs. As in [reading
the tables](../explanation/horizon.md)."""


HEADINGS = ("column", "meaning [unit]", "", "missing")
"""The columns of a table of columns; none is kept for a default."""

TOLD = {
    "virtual seconds": "_s",
    "wall seconds": "wall_s",
    "bytes": "_bytes",
    "percentage points": "_pp",
    "that of the figure": "",
}
"""The ends of names that tell a unit."""


def frames_page() -> str:
    """The page of frames."""
    frames = {name: column_rows(columns) for name, columns in frame_columns().items()}
    shared = InCommon("In common", HEADINGS, list(frames.values()))
    of_drift = {key for name in ACCURACIES for key in drift_figures(name)}
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
        columns_table({key: column for key, column in FIGURES.items() if key not in of_drift}, "figure"),
        heading(3, "Before and after the drift"),
        f"`<accuracy>` stands for {_names(list(ACCURACIES))}. {sentence(f'Missing {NO_DRIFT_BEFORE}')}",
        columns_table(drift_figures("<accuracy>", missing=""), "figure"),
        heading(3, "Of a target"),
        columns_table(OF_TARGETS, "figure"),
        heading(3, "Of whole runs"),
        "They count all finished seeds of an arm, and are in `summary` alone.",
        columns_table(FINISHED, "figure"),
        heading(2, "`Comparison.frame`"),
        "A row for each arm of a run directory, of `driftscale.compare(...)`.",
        columns_table(COMPARISON),
        heading(2, "`Check.frame`"),
        "A row for each configuration, of `driftscale.check(...)`. These are the facts of "
        "`driftscale check --format json` too.",
        columns_table(CHECK, "column"),
        heading(2, "Files"),
        "A run directory has these tables as Parquet, a run its own. Their columns are those of the frames; "
        "what a frame adds is `arm` and `seed`.",
        _files(),
    )


def _frame(name: str, rows: Sequence[Row], shared: InCommon) -> Iterator[str]:
    yield heading(2, code(name))
    yield ABOUT[name]
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
    is_told = not column.unit or name.endswith(TOLD.get(column.unit, " "))
    return column.meaning if is_told else f"{column.meaning} [{column.unit.removesuffix(', 0 to 1')}]"


def _missing(column: Column) -> str:
    absent = f"no such column {column.absent}" if column.absent else ""
    return "; ".join(filter(None, [column.missing, absent]))


def _files() -> str:
    more = " and ".join(code(field.name) for field in OF_STEPS)
    of_visits = f"{_names(VISITS.names)}; {more} if some round may have several server steps"
    rows = [
        ("`rounds.parquet`", "[`rounds`](#rounds), of all finished runs", "all of the frame"),
        ("`<arm>/seed-<seed>/clients.parquet`", "[`clients`](#clients)", _names(CLIENTS.names)),
        ("`<arm>/seed-<seed>/visits.parquet`", "[`visits`](#visits)", of_visits),
    ]
    return table(("file", "frame", "columns"), rows)


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(code, names))
