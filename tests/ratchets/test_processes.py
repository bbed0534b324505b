"""The number of processes that the suite really starts: it falls, or rises in a commit that says why."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.processes.real_starts import REAL_STARTS

ROOT = Path(__file__).resolve().parents[2]
MOST_STARTS = 61

HOW_TO_FIND_WHAT_GREW = (
    "git log -p tests/processes/real_starts.py shows which test was added; a start that imports torch costs "
    "two seconds, a fork (tests/processes/forked.py) a thirtieth of one"
)


def test_the_suite_really_starts_python_at_most_so_often() -> None:
    """A test that starts more than its entry allows fails by itself (tests/conftest.py)."""
    starts = sum(number for tests in REAL_STARTS.values() for number, _ in tests.values())
    assert starts <= MOST_STARTS, f"{starts}: {HOW_TO_FIND_WHAT_GREW}"


@pytest.mark.slow
def test_every_test_that_may_start_python_exists() -> None:
    for file, tests in REAL_STARTS.items():
        found = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if hasattr(node, "name")
        }
        assert set(tests) <= found, file
