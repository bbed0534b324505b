"""`driftscale.compare`: several run directories in one table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from driftscale.arguments import AnyPath, path_of
from driftscale.one_line import one_line

if TYPE_CHECKING:
    import pandas as pd

    from driftscale.results import Results
    from experiments.results.many_runs.sections import Section
    from experiments.results.statistics.intervals import Estimate


@dataclass(frozen=True, repr=False)
class Comparison:
    """The table of `driftscale compare`: a row per arm of a run directory, which shows itself.

    Attributes:
        section: The compared rows, as `table.json` has them.
    """

    section: Section

    @property
    def frame(self) -> pd.DataFrame:
        """A row per arm of a run directory, in the order of the table; NaN where a figure is not known.

        Arms whose trigger may fire or not have no intervals (`_low` and `_high`).
        """
        import pandas as pd

        rows = []
        for row in self.section.rows:
            columns: dict[str, object] = {
                "directory": ", ".join(row.directories),
                **{".".join(path): value for path, value in zip(self.section.paths, row.keys, strict=True)},
                "arm": row.arm,
                "num_seeds": len(row.seed_ids),
            }
            for name in ("mean_accuracy", "gain_pp", "difference_pp"):
                found: Estimate | None = getattr(row, name)
                low, high = (found and found.ci95) or (None, None)
                mean = None if found is None else found.mean
                columns |= {name: _number(mean), f"{name}_low": _number(low), f"{name}_high": _number(high)}
            rows.append({**columns, "total_bytes": _number(row.total_bytes.mean)})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        from experiments.results.pages.sentences import in_terminal, of_sections

        headings, rows = self._text()
        lines = [headings, *rows]
        widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
        return "\n".join(
            [
                *(
                    "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
                    for line in lines
                ),
                "",
                *in_terminal(of_sections([self.section])),
            ]
        )

    def _repr_html_(self) -> str:
        """The conclusions and the table, for a notebook."""
        from experiments.results.pages.sentences import notation, of_sections

        headings, rows = self._text()
        head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        stated = of_sections([self.section])
        text = "".join(f"<p>{escape(line)}</p>" for line in filter(None, [*stated, notation(stated)]))
        return f"{text}<table><tr>{head}</tr>{body}</table>"

    def _text(self) -> tuple[list[str], list[list[str]]]:
        """The headings and the cells of the table that `driftscale compare` prints."""
        from experiments.results.many_runs.runs_table import runs_table

        table = runs_table(self.section, in_terminal=True)
        rows = [[arm, *(" ".join(cell.lines) for cell in cells)] for arm, cells in table.rows]
        return ["arm", *table.headings], rows


@one_line
def compare(first: AnyPath | Results, *more: AnyPath | Results) -> Comparison:
    """Compare run directories in one table, as `driftscale compare` does; differences are from the first.

    Runs are paired by seed where trace, devices and availability are the same. Writes nothing.

    Args:
        first: A run directory, a folder of them, or what `load` or `run` returned of it.
        *more: Further ones.

    Returns:
        The comparison, which shows itself as a table and has it as `frame`.

    Raises:
        EmulatorError: Of one line: fewer than two run directories, unfinished runs, or runs that cannot be
            compared.
    """
    from experiments.results.many_runs.sections import compared

    given: Sequence[object] = (first, *more)
    return Comparison(
        compared(
            [
                path_of(
                    item if isinstance(item, str | os.PathLike) else getattr(item, "path", item), "compare"
                )
                for item in given
            ]
        )
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
