from __future__ import annotations

import re
from pathlib import Path

from hypothesis import settings

HERE = Path(__file__).parent


def test_no_property_is_refuted_by_a_busy_machine() -> None:
    assert settings().deadline is None
    own = [path for path in HERE.rglob("*.py") if re.search(r"settings\([^)]*\bdeadline=", path.read_text())]
    assert own == []  # there is one profile for all, in conftest.py


def test_the_tests_are_no_package_that_would_shadow_the_real_ones() -> None:
    assert list(HERE.rglob("__init__.py")) == []
