from __future__ import annotations

import re
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent


def test_no_hypothesis_test_fails_on_a_busy_machine() -> None:
    assert settings().deadline is None
    overriding = [
        path for path in HERE.rglob("*.py") if re.search(r"settings\([^)]*\bdeadline=", path.read_text())
    ]
    assert overriding == []  # there is one profile for all, in conftest.py


def test_the_tests_are_not_packages_that_could_shadow_the_real_ones() -> None:
    assert list(HERE.rglob("__init__.py")) == []
