from __future__ import annotations

import subprocess
from typing import Any

import pytest

from benchmarks.typo import KEY, libraries_imported, reported
from emulator.errors import RunError


@pytest.mark.slow
def test_reporting_a_misspelt_key_takes_some_cpu_time() -> None:
    assert 0 < reported(KEY, {})() < 60


def test_a_command_that_accepts_the_mistake_ends_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_with, environments = [0, 1], []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        environments.append(options["env"])
        return subprocess.CompletedProcess(command, returncode=ended_with.pop(0))

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr("benchmarks.typo.subprocess.run", run)
    with pytest.raises(RunError, match=r"bench: the command with round\.roundz=4 ended with exit code 0"):
        reported(KEY, {"PYTHONPYCACHEPREFIX": "cache"})()
    with pytest.raises(RunError, match=r"bench: 'import numpy, .*' ended with exit code 1"):
        libraries_imported()()
    assert [environment.get("PYTHONPYCACHEPREFIX") for environment in environments] == ["cache", None]
    assert not any("PYTHONDONTWRITEBYTECODE" in environment for environment in environments)
