"""Looks up known vulnerabilities of the tested versions, those of constraints.txt (`make audit`).

pip-audit does that, in an environment of its own, so that its libraries are none of ours. Where it cannot be
installed, or its database cannot be reached, that is a line and no failure: the audit was skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
TOOL = "pip-audit==2.10.1"
PATIENCE_S = 600
NO_CONNECTION = (
    r"ConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|NameResolutionError|MaxRetryError"
)
"""Names of the errors of a connection in what pip-audit prints."""


def main() -> None:
    try:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder, "Scripts" if os.name == "nt" else "bin", "python")
            lines, code = audit(str(python), CONSTRAINTS)
    except subprocess.TimeoutExpired:
        lines, code = [f"skipped: no answer came within {PATIENCE_S} s"], 0
    print("\n".join(lines))
    sys.exit(code)


def audit(python: str, constraints: Path) -> tuple[list[str], int]:
    """Install the tool for `python`, and audit the packages in a file; lines to print, and the exit code."""
    installed = _run([python, "-m", "pip", "install", "--quiet", TOOL])
    if installed.returncode != 0:
        return [f"skipped: {TOOL} cannot be installed ({last_line(installed.stderr)})"], 0
    options = ("--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json")
    audited = _run([python, "-m", "pip_audit", "--requirement", str(constraints), *options])
    try:
        packages = json.loads(audited.stdout)["dependencies"]
    except (ValueError, KeyError):
        why = last_line(audited.stderr)
        if re.search(NO_CONNECTION, audited.stderr):
            return [f"skipped: the database cannot be reached ({why})"], 0
        return [f"{TOOL} failed: {why}"], 2
    return verdict(packages)


def verdict(packages: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """The lines to print about `packages`, the entries of pip-audit's JSON, and the exit code.

    >>> fine, unknown = {"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "not found"}
    >>> verdict([fine, unknown])
    (['1 of 2 packages audited, 0 vulnerable; not audited: b'], 0)
    """
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    vulnerable = [package for package in packages if package.get("vulns")]
    lines = [
        f"{package['name']} {package['version']}: {vulnerability['id']}, mended in "
        f"{', '.join(vulnerability['fix_versions']) or 'no version yet'}"
        for package in vulnerable
        for vulnerability in package["vulns"]
    ]
    audited = len(packages) - len(skipped)
    summary = f"{audited} of {len(packages)} packages audited, {len(vulnerable)} vulnerable"
    if packages and audited == 0:
        summary = f"skipped: the database has none of the {len(packages)} packages"
    elif skipped:
        summary += f"; not audited: {', '.join(skipped)}"
    return [*lines, summary], 1 if vulnerable else 0


def last_line(text: str) -> str:
    """The last line of a program's error output that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


if __name__ == "__main__":
    main()
