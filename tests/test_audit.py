"""What is printed about an audit, and when it fails; pip-audit itself is not started."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import audit

VULNERABLE = {
    "name": "a",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}


def ends(monkeypatch: pytest.MonkeyPatch, *results: tuple[int, str, str]) -> tuple[list[str], int]:
    """The audit whose commands end with these exit codes, outputs and errors, in turn."""
    waiting = list(results)

    def run(command: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, *waiting.pop(0))

    monkeypatch.setattr(audit, "_run", run)
    return audit.audit("python", Path("constraints.txt"))


def test_every_vulnerability_is_a_line_with_its_remedy_and_fails() -> None:
    lines, code = audit.verdict([VULNERABLE, {"name": "b", "version": "2", "vulns": []}])
    assert code == 1
    assert lines == [
        "a 1.0: PYSEC-1, mended in 1.1",
        "a 1.0: PYSEC-2, mended in no version yet",
        "2 of 2 packages audited, 1 vulnerable",
    ]


def test_packages_that_the_database_does_not_have_are_named_and_are_no_success() -> None:
    unknown = {"name": "b", "skip_reason": "not found"}
    assert audit.verdict([unknown, unknown]) == (["skipped: the database has none of the 2 packages"], 0)


def test_without_the_tool_or_its_database_the_audit_is_skipped_with_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines, code = ends(monkeypatch, (1, "", "ERROR: no such\n\n"))
    assert (lines, code) == (["skipped: pip-audit==2.10.1 cannot be installed (ERROR: no such)"], 0)
    lines, code = ends(monkeypatch, (0, "", ""), (1, "", "Traceback\nProxyError: refused"))
    assert (lines, code) == (["skipped: the database cannot be reached (ProxyError: refused)"], 0)


def test_an_audit_that_fails_for_another_reason_is_no_skipped_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, code = ends(monkeypatch, (0, "", ""), (1, "", "ERROR: torch is not pinned"))
    assert (lines, code) == (["pip-audit==2.10.1 failed: ERROR: torch is not pinned"], 2)
