"""`driftscale traces check`: prints what is found in a trace folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emulator.errors import InputError
from experiments.cli.output import OutputFormat, print_json, say
from traces.files import TraceFolder
from traces.files.checking import Finding, check_folder


def print_checked(path: Path, output: OutputFormat) -> None:
    """Check a trace folder, and print a line for each violation and each remark.

    Raises:
        InputError: there is a violation.
    """
    findings = check_folder(path, _of_objective)
    violations, remarks = findings.violations, findings.remarks
    if output is OutputFormat.JSON:
        print_json(
            {
                "ok": not violations,
                "path": str(path),
                "violations": _as_values(violations),
                "remarks": _as_values(remarks),
            }
        )
    else:
        for finding in violations:
            say(str(finding))
        for finding in remarks:
            say(f"remark: {finding}")
    if violations:
        raise InputError(f"{path}: {len(violations)} line(s) with violations of the format")
    if output is OutputFormat.TABLE:
        say(f"ok: {path}{f': {len(remarks)} remark(s)' if remarks else ''}")


def _of_objective(folder: TraceFolder) -> list[Finding]:
    """What the objective that a folder states is refused for."""
    if folder.facts.objective is None:
        return []
    from experiments.checks.objectives import refused_of_folder  # which imports torch

    return refused_of_folder(folder)


def _as_values(findings: Sequence[Finding]) -> list[dict[str, object]]:
    return [
        {"file": str(finding.path), "row": finding.row, "problem": finding.problem} for finding in findings
    ]
