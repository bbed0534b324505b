"""Tables with a row for each arm of a report, of figures that are no quantities of the summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from experiments.results.statistics.intervals import share_estimate
from experiments.results.statistics.scales import Scale, percent_scale
from experiments.results.tables.cells import Cell, show_estimate
from experiments.results.tables.quantities import Estimator
from experiments.results.tables.report import Report
from experiments.results.tables.table import TextTable

Shown = tuple[Estimator, Scale]
"""How the values of the seeds are averaged, and how the mean is written."""

SHARE: Shown = (share_estimate, percent_scale(0.0))


def table_by_arm(
    report: Report, columns: Mapping[str, Shown], found: Mapping[str, Sequence[Iterable[float] | None]]
) -> TextTable:
    """A row for each arm of means over seeds, stated by seed if it has a trigger.

    Args:
        report: The report.
        columns: By heading, how the column is shown.
        found: By arm, the values of each seed, one for each column. A mean needs the value of every seed; NaN
            says that one is not known, and None that none of the seed is.
    """
    unknown = [math.nan] * len(columns)
    rows: list[tuple[str, list[Cell]]] = []
    for arm, seeds in found.items():
        by_column = zip(*(unknown if seed is None else seed for seed in seeds), strict=True)
        cells = []
        for (estimate, scale), values in zip(columns.values(), by_column, strict=True):
            mean = estimate([None if math.isnan(value) else float(value) for value in values])
            cells.append(show_estimate(report.stated(mean, arm), scale))
        rows.append((arm, cells))
    return TextTable(list(columns), rows)


def with_counts(names: Sequence[str], counts: Iterable[float]) -> list[str]:
    """A heading for each group, with the number of clients in it.

    >>> with_counts(["slow"], [1200.4])
    ['slow (n 1,200)']
    """
    return [f"{name} (n {count:,.0f})" for name, count in zip(names, counts, strict=True)]
