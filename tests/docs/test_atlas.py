"""The tables of the atlas in the documents are those of the stored summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.writing.atlas import PAGE, as_evidence, summaries
from docs.writing.evidence import as_text, written
from experiments.results.many_runs.atlas import read_columns
from experiments.results.many_runs.atlas_table import atlas_json
from tests.docs.blocks import ROOT
from tests.experiments.atlas_runs import a_column


@pytest.mark.parametrize("name", summaries())
def test_the_stored_tables_are_those_of_the_stored_summary(name: str) -> None:
    path = ROOT / f"docs/evidence/{name}.json"
    page = (ROOT / PAGE).read_text("utf-8")
    expected = as_text(as_evidence(name, summaries()[name], page)) + "\n"
    assert path.read_text("utf-8") == expected, "python -m docs.writing.atlas"


def test_a_summary_is_a_table_on_the_page(tmp_path: Path) -> None:
    for name in ("drifts-mass", "drifts-swap"):
        a_column(tmp_path / name)
    content = json.loads(json.dumps(atlas_json("drifts", read_columns(tmp_path))))
    marked = "<!-- evidence: drifts/words -->\n"
    text = written(PAGE, marked, {"drifts": as_evidence("drifts", content, marked)})
    rows = ["| method | mass | swap |", "|---|---|---|", "| avg | 50.0 +prior, rival | 50.0 +prior, rival |"]
    assert "\n".join([*rows, "| ifca | 53.0, ahead | 53.0, ahead |"]) in text
