"""Ratchets hold for one version of Python and of the libraries: others cost more or less."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
PYTHON = (3, 11)


def pinned(*libraries: str) -> pytest.MarkDecorator:
    """Skips a test unless Python is 3.11 and `libraries` are the versions of constraints.txt."""
    asked = dict(re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text(), re.MULTILINE))
    others = [name for name in libraries if version(name).partition("+")[0] != asked[name]]
    return pytest.mark.skipif(
        sys.version_info[:2] != PYTHON or bool(others),
        reason=f"the bound is of Python 3.11 and constraints.txt, not of {', '.join(others) or sys.version}",
    )
