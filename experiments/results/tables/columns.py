"""The tables of a summary as text: a list of columns for each table, shared by the terminal and the page.

The key of a column is the name of a field of the table's rows, and the key in `summary.json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.results.statistics.intervals import Estimate
from experiments.results.statistics.medians import MedianEstimate
from experiments.results.tables.accuracy_tables import AccuracyRow, TargetRow, TargetTable
from experiments.results.tables.clients import ClientRow
from experiments.results.tables.cluster_changes import ClusterChangeRow
from experiments.results.tables.formats import (
    Cell,
    PickScale,
    bytes_scale,
    count_scale,
    distance_scale,
    factor_scale,
    index_scale,
    largest,
    percent_scale,
    points_scale,
    show_estimate,
    show_median,
    signed_time_scale,
    time_scale,
)
from experiments.results.tables.honest import HonestRow
from experiments.results.tables.summary import CostRow

Row = AccuracyRow | TargetRow | CostRow | ClusterChangeRow | HonestRow | ClientRow

REFERENCE_CELL = Cell("reference")


@dataclass(frozen=True)
class Column:
    """A field of the rows of a table, with its heading and a function that picks the scale of its numbers.

    `in_terminal` is False for a column that only the page shows.
    """

    key: str
    heading: str
    pick_scale: PickScale
    in_terminal: bool = True

    def cells(self, rows: Sequence[object]) -> list[Cell]:
        """A cell for each row, all in the unit that suits the largest number.

        None stands for a comparison of the reference arm with itself, and is shown as "reference".
        """
        figures: list[Estimate | MedianEstimate | None] = [getattr(row, self.key) for row in rows]
        scale = self.pick_scale(
            max((largest(figure) for figure in figures if figure is not None), default=0.0)
        )
        return [
            REFERENCE_CELL
            if figure is None
            else show_estimate(figure, scale)
            if isinstance(figure, Estimate)
            else show_median(figure, scale)
            for figure in figures
        ]


@dataclass(frozen=True)
class Tally:
    """The column that shows how many seeds hold a target, out of all."""

    key: str = "held"
    heading: str = "held"
    in_terminal: bool = True

    def cells(self, rows: Sequence[object]) -> list[Cell]:
        """A cell such as 3/5 for each row."""
        return [Cell(f"{row.held}/{row.seeds}") for row in rows if isinstance(row, TargetRow)]


ACCURACY = (
    Column("mean_accuracy", "mean accuracy", percent_scale),
    Column("gain_pp", "gain", points_scale),
    Column("gain_after_drift_pp", "gain after drift", points_scale),
    Column("final_accuracy", "final accuracy", percent_scale),
    Column("adjusted_rand_index", "adjusted Rand index", index_scale),
)
TARGET = (
    Column("time_below_s", "time below", time_scale),
    Column("saved_s", "saved", signed_time_scale),
    Column("below_after_drift", "below after drift", percent_scale),
    Column("first_reached_s", "first reached", time_scale, in_terminal=False),
    Column("held_from_s", "held from", time_scale),
    Column("speedup", "speed-up", factor_scale),
    Tally(),
)
COSTS = (
    Column("rounds", "rounds", count_scale),
    Column("global_reclusterings", "global re-clusterings", count_scale),
    Column("clusters", "clusters", count_scale),
    Column("moves", "moves", count_scale),
    Column("dropouts", "drop-outs", count_scale),
    Column("download_bytes", "download", bytes_scale),
    Column("upload_bytes", "upload", bytes_scale),
    Column("control_bytes", "control", bytes_scale),
    Column("mean_client_distance", "client distance", index_scale, in_terminal=False),
    Column("final_client_distance", "at the horizon", index_scale, in_terminal=False),
    Column("models_trained_per_client", "models trained per visit", index_scale, in_terminal=False),
    Column("waiting_for_responses_s", "waiting for responses", time_scale, in_terminal=False),
    Column("virtual_time_s", "virtual time", time_scale),
    Column("wall_s", "wall time", time_scale),
)
CLUSTER_CHANGES = (
    Column("changed_cluster", "clients that change cluster per step", percent_scale),
    Column("accuracy_lost_pp", "accuracy lost", points_scale),
    Column("accuracy_lost_difference_pp", "difference", points_scale),
    Column("largest_loss_pp", "largest loss", points_scale),
    Column("models_replaced", "models replaced", count_scale),
    Column("clustering_wall_s", "clustering", time_scale),
)
FAULTS = (
    Column("crashed_visits", "crashed visits", count_scale),
    Column("rejected_updates", "updates dropped", count_scale),
    Column("nonfinite_reports", "reports dropped", count_scale),
    Column("dropouts", "drop-outs in all", count_scale),
    Column("abandoned", "abandoned", count_scale),
)
HONEST = (
    Column("honest_accuracy", "honest clients", percent_scale),
    Column("honest_gain_pp", "gain of honest clients", points_scale),
    Column("byzantine_accuracy", "byzantine clients", percent_scale),
)
CLIENTS = (
    Column("mean_client_accuracy", "mean of clients", percent_scale),
    Column("worst_tenth", "worst tenth", percent_scale),
    Column("worst_tenth_gain_pp", "gain of worst tenth", points_scale),
    Column("worse_off", "worse off", percent_scale),
    Column("better_off", "better off", percent_scale),
    Column("unchanged", "unchanged", percent_scale, in_terminal=False),
    Column("mean_loss_pp", "mean loss of those worse off", distance_scale),
)
OPTIONAL = ("gain_after_drift_pp", "below_after_drift", "adjusted_rand_index")
"""The keys of columns that are left out unless they were measured."""


@dataclass(frozen=True)
class TextTable:
    """A table with a row of cells for each arm; the first `num_keys` columns tell rows of one arm apart."""

    headings: list[str]
    rows: list[tuple[str, list[Cell]]]
    num_keys: int = 0

    def without_intervals(self) -> TextTable:
        """The same table without the intervals."""
        return TextTable(
            self.headings, [(arm, [Cell(cell.figure) for cell in cells]) for arm, cells in self.rows]
        )


@dataclass(frozen=True)
class NotedTable:
    """A table with its title, and the note below it."""

    title: str
    table: TextTable
    note: str


def text_table(
    columns: Sequence[Column | Tally], rows: Sequence[Row], *, in_terminal: bool = False
) -> TextTable:
    """`rows` as text, in those of `columns` that are shown.

    Left out are columns on the time after drift, and on true concepts, if nothing was measured, and with
    `in_terminal` the columns that only the page shows.
    """
    shown = [
        column
        for column in columns
        if (column.in_terminal or not in_terminal)
        and (column.key not in OPTIONAL or any(is_measured(getattr(row, column.key)) for row in rows))
    ]
    cells = [column.cells(rows) for column in shown]
    return TextTable(
        [column.heading for column in shown],
        [(row.arm, [column_cells[index] for column_cells in cells]) for index, row in enumerate(rows)],
    )


def is_measured(figure: Estimate | MedianEstimate | None) -> bool:
    """Whether a figure has a value in some seed."""
    return figure is not None and any(value is not None for value in figure.per_seed)


def target_name(table: TargetTable, reference_arm: str) -> str:
    """The heading of a target's table: its accuracy, or whose accuracy it is.

    >>> from experiments.results.statistics.intervals import mean_estimate
    >>> target_name(TargetTable(0.5, mean_estimate([0.5]), []), "global")
    '50.0 %'
    """
    if table.accuracy.mean is None:
        return f"{reference_arm}'s accuracy at the horizon"
    accuracy = percent_scale(0.0)(table.accuracy.mean)
    if table.target == "reference":
        return f"{reference_arm}'s accuracy at the horizon ({accuracy})"
    return accuracy
