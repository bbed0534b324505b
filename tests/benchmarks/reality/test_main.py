from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.reality import __main__ as reality
from emulator.errors import InputError, RunError


def stand_in(path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a shell script stand for the Python of Flower's venv."""
    program = path / "flower"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(reality, "PYTHON", program)


@pytest.mark.slow
def test_flower_gets_arrays_and_a_folder_and_its_result_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'echo "[\\"$FLWR_TELEMETRY_ENABLED\\", \\"$3\\"]" > "$4/played.json"')
    assert reality.flower(tmp_path / "out", {"steps": 3}) == ["0", "serve"]
    with np.load(tmp_path / "out" / "work.npz") as arrays:
        assert arrays["steps"] == 3


@pytest.mark.slow
def test_a_process_that_fails_ends_with_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "echo starting\necho 'OSError: port in use' >&2\nexit 3")
    with pytest.raises(
        RunError, match=r"^reality: Flower ended with code 3: OSError: port in use; see .*log$"
    ):
        reality.flower(tmp_path, {})


@pytest.mark.slow
def test_a_process_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exec tail -f /dev/null")
    monkeypatch.setattr(reality, "LONGEST_S", 0.01)
    with pytest.raises(RunError, match="reality: Flower takes longer than 0 s"):
        reality.flower(tmp_path, {})


def test_without_the_venv_of_flower_a_line_says_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reality, "PYTHON", tmp_path / "python")
    with pytest.raises(InputError, match="python: no such file; `make reality` makes this venv"):
        reality.reality()
