"""Modules begin with the slowest: `--dist=loadscope` hands them out in order, and then none ends alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DURATIONS = Path(__file__).with_name("durations.json")
LEAST_S = 5.0


def begin_with_the_slowest(items: list[pytest.Item]) -> None:
    """Sort tests by the seconds of their modules, as last written; a new module counts as quick."""
    durations = json.loads(DURATIONS.read_text(encoding="utf-8"))
    items.sort(key=lambda item: -durations.get(module_of(item.nodeid), 0))


class Stopwatch:
    """The plug-in of `--write-durations`: writes the seconds of each module that took some."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[module_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Modules that have not run keep their seconds, if they are still there."""
        known = {**json.loads(DURATIONS.read_text(encoding="utf-8")), **self._seconds}
        long = {
            name: round(seconds)
            for name, seconds in sorted(known.items())
            if seconds >= LEAST_S and (ROOT / name).exists()
        }
        DURATIONS.write_text(json.dumps(long, indent=1) + "\n", encoding="utf-8")


def module_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
