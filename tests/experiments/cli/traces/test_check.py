"""`driftscale traces check`, as from a shell."""

from __future__ import annotations

import json
from pathlib import Path

from tests.experiments.cli.conftest import Driftscale
from tests.traces.files.written import ROWS, with_cell, write_trace


def test_a_folder_that_is_right_is_ok_with_its_remarks(driftscale: Driftscale, tmp_path: Path) -> None:
    write_trace(tmp_path / "t")
    ended = driftscale("traces", "check", "t")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[-1] == f"ok: t: {len(lines) - 1} remark(s)"
    assert all(line.startswith("remark: t/") for line in lines[:-1])
    facts = json.loads(driftscale("traces", "check", "t", "--format", "json").out)
    assert facts["ok"] is True
    assert facts["violations"] == []
    assert len(facts["remarks"]) == len(lines) - 1


def test_violations_are_lines_with_file_and_row_and_end_with_exit_code_2(
    driftscale: Driftscale, tmp_path: Path
) -> None:
    write_trace(tmp_path / "t", with_cell("label", 2, -1) | {"split": ["x\x1b[2J", *ROWS["split"][1:]]})
    ended = driftscale("traces", "check", "t")
    assert (ended.code, ended.error) == (2, "t: 2 line(s) with violations of the format")
    assert ended.out.splitlines()[:2] == [
        "t/arrivals.parquet, row 2: label = -1: must be from 0 to 32767",
        "t/arrivals.parquet, row 1: split 'x\\x1b[2J': must be train or test",
    ]
    ended = driftscale("traces", "check", "t", "--format", "json")
    assert ended.code == 2
    facts = json.loads(ended.out)
    assert facts["ok"] is False
    assert facts["violations"][0] == {
        "file": "t/arrivals.parquet",
        "row": 2,
        "problem": "label = -1: must be from 0 to 32767",
    }


def test_what_is_no_trace_folder_is_said_to_be_none(driftscale: Driftscale, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    ended = driftscale("traces", "check", "t")
    assert ended.code == 2
    assert ended.out == (
        "t: not a trace folder: it has no trace.toml; it needs trace.toml, arrivals.parquet and "
        "features.npy\n"
    )
    assert driftscale("traces", "check", "nowhere").out == "nowhere: no such folder\n"
