from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import slowest_first
from tests.slowest_first import Stopwatch, begin_with_the_slowest


def test_modules_begin_with_the_slowest_and_keep_the_order_of_their_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slowest_first, "ROOT", tmp_path)
    monkeypatch.setattr(slowest_first, "DURATIONS", tmp_path / "durations.json")
    slowest_first.DURATIONS.write_text('{"gone.py": 50, "b.py": 9}')
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    stopwatch = Stopwatch()
    for nodeid, duration in (("c.py::one", 20.0), ("a.py::one", 1.0), ("c.py::two", 10.0)):
        report: Any = SimpleNamespace(nodeid=nodeid, duration=duration)
        stopwatch.pytest_runtest_logreport(report)
    stopwatch.pytest_sessionfinish()
    assert json.loads(slowest_first.DURATIONS.read_text()) == {"b.py": 9, "c.py": 30}
    items: Any = [
        SimpleNamespace(nodeid=f"{name}::{test}") for name in ("a.py", "b.py", "c.py") for test in "xy"
    ]
    begin_with_the_slowest(items)
    assert [item.nodeid for item in items] == [
        "c.py::x",
        "c.py::y",
        "b.py::x",
        "b.py::y",
        "a.py::x",
        "a.py::y",
    ]
