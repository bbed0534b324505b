from __future__ import annotations

import subprocess
from typing import Any

import pytest

from emulator.errors import RunError
from experiments.bench.typo import KEY, reported


def test_reporting_a_misspelt_key_takes_some_cpu_time() -> None:
    assert 0 < reported(KEY)() < 60


def test_a_command_that_accepts_the_mistake_ends_the_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(command, returncode=0)

    monkeypatch.setattr("experiments.bench.typo.subprocess.run", run)
    with pytest.raises(RunError, match=r"bench: the command with round\.roundz=4 ended with exit code 0"):
        reported(KEY)()
