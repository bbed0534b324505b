from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.errors import InputError
from experiments.locking import locked
from experiments.run_directory import RunDirectory
from tests.experiments.small import small

ROOT = Path(__file__).resolve().parents[2]

HOLD = """
import sys
from pathlib import Path
from experiments.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def a_run_directory(path: Path) -> Path:
    path.mkdir()
    RunDirectory(path).experiment_path.write_text(small().to_toml())
    return path


def holder(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_at_once_and_told_who_the_first_is(tmp_path: Path) -> None:
    path = a_run_directory(tmp_path / "run")
    with holder(path) as other:
        with pytest.raises(InputError) as refused, locked(path):
            pytest.fail("two processes in one directory")
        assert str(path) in str(refused.value)
        assert f"(process {other.pid})" in str(refused.value)
        RunDirectory(path).clear()  # as --fresh does it
        with pytest.raises(InputError, match="another process"), locked(path):
            pytest.fail("the lock was deleted")
        other.kill()
        other.communicate()
    with locked(path):
        pass


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    path = a_run_directory(tmp_path / "run")
    own = rf"another process \(process {os.getpid()}\)"
    with locked(path), pytest.raises(InputError, match=own), locked(path):
        pytest.fail("two in one directory")
    with locked(path):
        pass


def test_a_holder_that_cannot_be_read_is_not_named(tmp_path: Path) -> None:
    path = a_run_directory(tmp_path / "run")
    with locked(path):
        RunDirectory(path).lock_path.write_bytes(b"\xff\xfe")
        with pytest.raises(InputError, match="another process is running"), locked(path):
            pytest.fail("two in one directory")


def test_a_folder_that_never_became_a_run_directory_is_left_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="wrong"), locked(tmp_path / "new"):
        raise InputError("wrong")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "thesis.tex").touch()
    with locked(tmp_path / "old"):
        assert (tmp_path / "old" / ".lock").exists()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["old", "thesis.tex"]


def test_a_place_that_cannot_be_a_run_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; a run directory is a folder"), locked(tmp_path / "file"):
        pytest.fail("held")
    inside = tmp_path / "file" / "run"
    with pytest.raises(InputError, match=r"--out .*run: cannot be made a folder"), locked(inside):
        pytest.fail("held")
