"""`python -m docs.writing.atlas` writes the tables of the atlas, from the files of `docs/evidence/atlas/`.

Each of these is an `atlas.json` of `driftscale atlas`; their columns together are one atlas. Its tables go
into `docs/evidence/atlas.json`, as typed in, and from there into the page, as those of all evidence.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from docs.writing.evidence import Evidence, as_text, marked_pages
from docs.writing.pages import DOCS
from emulator.storage.checkpoints import write_durably
from experiments.results.many_runs.atlas_table import atlas_tables, in_lines
from experiments.results.statistics.atlas.verdicts import Column

PAGE = "docs/atlas.md"
COMMAND = "driftscale atlas"


def summaries() -> list[Evidence]:
    """The stored summaries, by the order of their files' names."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(DOCS.glob("evidence/atlas/*.json"))]


def as_evidence(found: Iterable[Evidence]) -> dict[str, Any]:
    """The content of `docs/evidence/atlas.json`: the tables of all columns of these summaries."""
    columns = [Column.from_json(entry) for summary in found for entry in summary["columns"]]
    lines = {name: in_lines(shown.table) for name, shown in atlas_tables(columns).items()}
    return {
        "typed_in": True,
        "tables": {
            name: {"page": PAGE, "commands": [COMMAND], "header": header, "rows": rows}
            for name, (header, rows) in lines.items()
        },
    }


if __name__ == "__main__":
    if not (stored := summaries()):
        sys.exit("docs/evidence/atlas: no summary there; copy the atlas.json of driftscale atlas into it")
    write_durably(DOCS / "evidence/atlas.json", as_text(as_evidence(stored)) + "\n")
    for page, text in marked_pages().items():
        write_durably(DOCS.parent / page, text)
