"""Builders under a limit on memory: hostile data sets are built, or refused in one line with exit code 2.

All of them, and damaged ones, are built by `fuzz_readers.py --builders`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from tests.reliability.fuzz_readers import built
from tests.reliability.hostile_data_sets import HOSTILE, IN_SUITE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")


@pytest.mark.parametrize(
    "name", [name if name in IN_SUITE else pytest.param(name, marks=pytest.mark.sweep) for name in HOSTILE]
)
def test_a_hostile_data_set_is_built_or_refused_in_one_line(tmp_path: Path, name: str) -> None:
    assert built(name, tmp_path) == ""


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(20))
def test_a_damaged_one_is_too(tmp_path: Path, number: int) -> None:
    draw = random.Random(f"7/{number}")
    assert built(draw.choice(list(HOSTILE)), tmp_path, draw) == ""
