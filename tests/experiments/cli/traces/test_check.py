"""`driftscale traces check`, as from a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from tests.experiments.cli.conftest import Driftscale
from tests.experiments.small import small_table
from tests.traces.files.written import ROWS, with_cell, write_trace
from traces.files import TARGETS


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


@pytest.mark.parametrize(
    ("objective", "line"),
    [
        ({"kind": "label"}, "t/trace.toml: the objective of the trace: objective: unknown objective 'label'"),
        (
            {"kind": "squared_error"},
            "t/trace.toml: the objective of the trace: objective.tolerance: field req",
        ),
        (
            {"kind": "next_token"},
            "t/trace.toml: objective = 'next_token': tells tokens, and samples here are no tokens",
        ),
        (
            {"kind": "multi_label"},
            "t/targets.npy: sample 4: has 1 value(s) that are neither 0 nor 1, such as 2.0",
        ),
        ({"kind": "squared_error", "tolerance": 0.5}, "ok: t: 4 remark(s)"),
    ],
)
def test_the_objective_that_a_folder_states_is_checked_with_its_targets(
    driftscale: Driftscale, tmp_path: Path, objective: Any, line: str
) -> None:
    write_trace(tmp_path / "t", facts={"objective": objective})
    np.save(tmp_path / "t" / TARGETS, np.array([[0, 1]] * 4 + [[2, 0], [1, 1]], np.float32))
    ended = driftscale("traces", "check", "t")
    [found] = [found for found in ended.out.splitlines() if not found.startswith("remark")]
    assert found.startswith(line)
    assert ended.code == (0 if line.startswith("ok") else 2)


def test_other_targets_than_0_and_1_are_refused_before_a_run(driftscale: Driftscale, tmp_path: Path) -> None:
    write_trace(tmp_path / "t")
    np.save(tmp_path / "t" / TARGETS, np.array([[0, 1]] * 4 + [[0.5, 0], [1, 1]], np.float32))
    trace = {"source": "file", "folder": "t", "rounds_per_step": 1}
    table = small_table(round={"rounds": 1, "participants": 1}, training={"objective": "multi_label"})
    (tmp_path / "c.toml").write_text(tomli_w.dumps({**table, "trace": trace, "arm": [{"name": "a"}]}))
    for command in (("check", "c.toml"), ("run", "c.toml", "--out", "out")):
        ended = driftscale(*command)
        assert ended.code == 2
        assert ended.error == (
            "c.toml: training.objective = 'multi_label': targets.npy: sample 4: has 1 value(s) that are "
            "neither 0 nor 1, such as 0.5; choose another one, or give other samples"
        )
