"""Checking a trace folder: what is measured, on a small one."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.files import trace_check
from benchmarks.files.trace_folder import FolderSizes
from benchmarks.probes.checking import taken


def test_checking_is_measured_against_hashing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_check, "in_a_process", lambda _, *folders: taken(*map(Path, folders)))
    sizes = FolderSizes(samples=2000, floats=2, clients=5)
    figures = trace_check.trace_check_figures(sizes, 1, lambda text: None)
    assert [figure.name for figure in figures] == [
        "trace-check",
        "trace-check-disorder",
        "trace-check-memory",
    ]
    assert [figure.ratio is not None for figure in figures] == [True, True, False]
    assert all(figure.target is not None for figure in figures)
