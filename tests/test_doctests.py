"""The examples in docstrings, a test for each module that has some.

Not collected by pytest itself, which would import and search every module once more in every worker.
"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from tests.packages import AT_ROOT

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in (*AT_ROOT, "docs/writing")
    for path in (ROOT / package).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_show_what_they_say(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0, "its examples are in no docstring"
    assert result.failed == 0
