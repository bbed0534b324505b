"""The tables of the atlas in the documents are those of the stored summaries."""

from __future__ import annotations

import json
from pathlib import Path

from docs.writing.atlas import PAGE, as_evidence, summaries
from docs.writing.evidence import as_text, written
from experiments.results.many_runs.atlas import read_columns
from experiments.results.many_runs.atlas_table import atlas_json
from tests.docs.blocks import ROOT
from tests.experiments.atlas_runs import a_column


def test_the_stored_tables_are_those_of_the_stored_summaries() -> None:
    path, found = ROOT / "docs/evidence/atlas.json", summaries()
    assert path.exists() == bool(found)
    if found:
        assert path.read_text("utf-8") == as_text(as_evidence(found)) + "\n", "python -m docs.writing.atlas"


def test_the_columns_of_all_summaries_are_one_table_on_the_page(tmp_path: Path) -> None:
    stored = []
    for name in ("mass", "swap"):
        a_column(tmp_path / name / name)
        content = atlas_json(name, read_columns(tmp_path / name))
        stored.append(json.loads(json.dumps(content)))
    text = written(PAGE, "<!-- evidence: atlas/words -->\n", {"atlas": as_evidence(stored)})
    rows = ["| method | mass | swap |", "|---|---|---|", "| avg | 50.0 +prior, rival | 50.0 +prior, rival |"]
    assert "\n".join([*rows, "| ifca | 53.0"]) in text
