"""`python -m docs.writing.atlas` writes the tables of atlases, from the files of `docs/evidence/atlas/`.

Each of these is an `atlas.json` of `driftscale atlas`, by the name that its tables have: those of `NAME.json`
go into `docs/evidence/NAME.json`, as typed in, and from there into the page, as those of all evidence. The
page has the words; differences from the rival, with their intervals, are in the summary.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

from docs.writing.evidence import MARKED, Evidence, as_text, marked_pages
from docs.writing.pages import DOCS
from emulator.storage.checkpoints import write_durably
from experiments.results.many_runs.atlas_table import atlas_tables, in_lines
from experiments.results.statistics.atlas.verdicts import Column
from experiments.results.tables.table import TextTable

PAGE = "docs/atlas.md"
COMMAND = "driftscale atlas"


def summaries() -> dict[str, Evidence]:
    """The stored summaries, by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DOCS.glob("evidence/atlas/*"))}


def as_evidence(name: str, summary: Evidence, text: str) -> dict[str, Any]:
    """The content of `docs/evidence/NAME.json`: those tables of a summary that are marked in the page's text.

    Columns have the names of their drifts alone.
    """
    marked = [table for file, table, _ in MARKED.findall(text) if file == name]
    found = [Column.from_json(entry) for entry in summary["columns"]]
    columns = [replace(column, name=column.name.removeprefix(f"{summary['name']}-")) for column in found]
    tables = atlas_tables(columns)
    lines = {table: in_lines(_in_short(tables[table].table)) for table in marked}
    return {
        "typed_in": True,
        "tables": {
            table: {"page": PAGE, "commands": [COMMAND], "header": header, "rows": rows}
            for table, (header, rows) in lines.items()
        },
    }


def _in_short(table: TextTable) -> TextTable:
    """The table without the notes of its cells, which have the intervals."""
    rows = [(row, [replace(cell, note="") for cell in cells]) for row, cells in table.rows]
    return TextTable(table.headings, rows)


if __name__ == "__main__":
    if not (stored := summaries()):
        sys.exit("docs/evidence/atlas: no summary there; copy the atlas.json of driftscale atlas into it")
    page = (DOCS.parent / PAGE).read_text("utf-8")
    for name, summary in stored.items():
        write_durably(DOCS / f"evidence/atlas/{name}.json", as_text(summary) + "\n")  # in fewer lines
        write_durably(DOCS / f"evidence/{name}.json", as_text(as_evidence(name, summary, page)) + "\n")
    write_durably(DOCS.parent / PAGE, marked_pages()[PAGE])
