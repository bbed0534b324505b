from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from emulator.errors import ForeignFileError, InputError, ResumableError
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.leftovers import clear
from experiments.running.locking import (
    PROCESS,
    RunAtWorkError,
    lock_content,
    locked,
    seed_locked,
    why_not_excluded,
)
from tests.experiments.small import small
from tests.processes import forked

ROOT = Path(__file__).resolve().parents[3]

HOLD = """
import sys
from pathlib import Path
from experiments.running.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def a_run_directory(path: Path) -> Path:
    path.mkdir()
    RunDirectory(path).experiment_path.write_text(small().to_toml())
    return path


def holder(path: Path, code: str = HOLD) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    process = forked.Forked(
        [sys.executable, "-c", code, str(path)],
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
        clear(RunDirectory(path))  # as --fresh does
        with pytest.raises(InputError, match="another process"), locked(path):
            pytest.fail("the lock was deleted")
        other.kill()
        other.communicate()
    with locked(path):
        pass


def test_a_second_call_in_the_same_process_is_refused_as_such(tmp_path: Path) -> None:
    path = a_run_directory(tmp_path / "run")
    refused: list[str] = []

    def call() -> None:
        with pytest.raises(InputError) as error, locked(path):
            pytest.fail("two in one directory")
        refused.append(str(error.value))

    with locked(path):
        call()  # nested
        other = threading.Thread(target=call)
        other.start()
        other.join()
    who = f"{path}: another call in this process is running into this directory"
    assert refused == 2 * [f"{who}; wait for it, or take another --out"]
    with locked(path):
        pass
    directory = RunDirectory(path)
    with (
        seed_locked(directory, "global", 0),
        pytest.raises(RunAtWorkError) as at_work,
        seed_locked(directory, "global", 0),
    ):
        pytest.fail("two at one run")
    assert str(at_work.value) == "global, seed 0: another call in this process is at work on it"


def test_an_unlock_that_fails_does_not_turn_success_into_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = a_run_directory(tmp_path / "run"), fcntl.flock
    done: list[str] = []

    def failing(descriptor: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", failing)
    with locked(path), seed_locked(RunDirectory(path), "global", 0):
        done.append("run")
    with locked(path), seed_locked(RunDirectory(path), "global", 0):
        done.append("the same run again")
    assert done == ["run", "the same run again"]
    assert not RunDirectory(path).seed_lock_path("global", 0).exists()


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


# -- of a run -----------------------------------------------------------------------------------------------

HOLD_SEED = """
import sys
from pathlib import Path
from experiments.running.locking import seed_locked
from experiments.results.reading.run_directory import RunDirectory
with seed_locked(RunDirectory(Path(sys.argv[1])), "global", 0):
    print("held", flush=True)
    sys.stdin.read()
"""

TAKE_TURNS = """
import sys
from pathlib import Path
from experiments.running.locking import RunAtWorkError, seed_locked
from experiments.results.reading.run_directory import RunDirectory
directory, counter, turns = RunDirectory(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
while turns:
    try:
        with seed_locked(directory, "global", 0):
            counter.write_text(str(int(counter.read_text()) + 1))
            turns -= 1
    except RunAtWorkError:
        pass
"""


def test_a_run_is_of_one_process_at_a_time_until_that_is_killed(tmp_path: Path) -> None:
    directory = RunDirectory(a_run_directory(tmp_path / "run"))
    lock = directory.seed_lock_path("global", 0)
    with holder(directory.path, HOLD_SEED) as other:
        refusal = rf"^global, seed 0: another process \(process {other.pid}\) is at work on it$"
        with pytest.raises(RunAtWorkError, match=refusal) as refused, seed_locked(directory, "global", 0):
            pytest.fail("two processes at one run")
        assert refused.value.exit_code == 3
        assert lock.read_text().splitlines()[0] == f"{other.pid} {socket.gethostname()}"
        with seed_locked(directory, "global", 1), seed_locked(directory, "fielding", 0):
            pass
        other.kill()
        other.communicate()
    assert lock.exists()
    with seed_locked(directory, "global", 0):
        assert lock.read_text().startswith(f"{os.getpid()} ")
    assert sorted(path.name for path in directory.path.rglob("*")) == [
        "experiment.toml",
        "fielding",
        "global",
    ]


def test_a_holder_on_another_host_is_named_with_it(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with seed_locked(directory, "global", 0):
        directory.seed_lock_path("global", 0).write_text("4711 node3\n")
        with (
            pytest.raises(RunAtWorkError, match=r"another process \(process 4711 on node3\) is at work"),
            seed_locked(directory, "global", 0),
        ):
            pytest.fail("held twice")
        directory.seed_lock_path("global", 0).write_text("4711 \x1b[31mred\n")
        with (
            pytest.raises(RunAtWorkError, match=r"another process is at work"),
            seed_locked(directory, "global", 0),
        ):
            pytest.fail("held twice")


@pytest.mark.slow
def test_a_lock_that_its_holder_deletes_never_lets_two_in(tmp_path: Path) -> None:
    """Each turn ends with the file deleted, while the others try to open it."""
    directory, counter = RunDirectory(a_run_directory(tmp_path / "run")), tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", TAKE_TURNS, str(directory.path), str(counter), "200"]
    others = [forked.Forked(command, cwd=ROOT) for _ in range(3)]
    assert [other.wait(300) for other in others] == [0, 0, 0]
    assert counter.read_text() == "600"
    assert not list((directory.path / "global").iterdir())


def test_a_lock_that_was_deleted_while_it_was_opened_is_taken_at_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its last holder ends between the opening and the locking."""
    directory = RunDirectory(tmp_path)
    path, flock, deleted = directory.seed_lock_path("global", 0), fcntl.flock, []

    def deleting(descriptor: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX and len(deleted) < 2:
            deleted.append(path.unlink())
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", deleting)
    with seed_locked(directory, "global", 0):
        assert len(deleted) == 2
        assert path.read_text().startswith(f"{os.getpid()} ")


def test_a_run_whose_lock_cannot_be_written_stops_resumably(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "global").touch()
    directory = RunDirectory(tmp_path / "run")
    with pytest.raises(ForeignFileError, match=r"run/global: is a file"), seed_locked(directory, "global", 0):
        pytest.fail("held")
    gone = RunDirectory(tmp_path / "file" / "run")
    (tmp_path / "file").touch()
    with (
        pytest.raises(
            ResumableError, match=r"^global, seed 0: its lock .*cannot be written \(Not a directory"
        ),
        seed_locked(gone, "global", 0),
    ):
        pytest.fail("held")


# -- a run directory that another machine has ---------------------------------------------------------------


def test_a_process_that_sees_the_directory_and_is_excluded_may_play_there(tmp_path: Path) -> None:
    directory = RunDirectory(a_run_directory(tmp_path / "run"))
    with locked(directory.path):
        content = lock_content(directory)
        assert why_not_excluded(directory, content) is None
        assert lock_content(directory) == content
        with pytest.raises(InputError, match="another call in this process"), locked(directory.path):
            pytest.fail("the lock was released")


def test_each_process_writes_another_lock(tmp_path: Path) -> None:
    directory = RunDirectory(a_run_directory(tmp_path / "run"))
    with holder(directory.path):
        theirs = lock_content(directory)
    with locked(directory.path):
        assert lock_content(directory) != theirs
        assert lock_content(directory).endswith(f"\n{PROCESS}\n".encode())


def test_a_process_that_does_not_see_the_directory_must_not(tmp_path: Path) -> None:
    directory = RunDirectory(a_run_directory(tmp_path / "run"))
    refusal = f"does not see the run directory {directory.path}, which must be at that path on all machines"
    assert why_not_excluded(directory, b"4711 host\n") == refusal  # there is no lock file
    assert why_not_excluded(RunDirectory(tmp_path / "none"), b"4711 host\n") == refusal.replace(
        "run,", "none,"
    )
    with locked(directory.path):
        assert why_not_excluded(directory, b"4711 host\n") == refusal  # another process's lock
    directory.lock_path.unlink()
    directory.lock_path.symlink_to(tmp_path)
    assert why_not_excluded(directory, b"4711 host\n") == refusal
    assert not (tmp_path / "none").exists()


def test_a_lock_that_does_not_exclude_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system whose locks do not reach across machines."""
    directory = RunDirectory(a_run_directory(tmp_path / "run"))
    with locked(directory.path):
        content = lock_content(directory)
        monkeypatch.setattr(fcntl, "flock", lambda descriptor, operation: None)
        why = why_not_excluded(directory, content)
        monkeypatch.undo()
        assert lock_content(directory) == content
    assert why is not None
    assert why.startswith(f"takes the lock of {directory.path} although the command has it: locks of that ")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    directory = RunDirectory(a_run_directory(tmp_path / "run"))

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    with locked(directory.path):
        content = lock_content(directory)
        monkeypatch.setattr(fcntl, "flock", flock)
        why = why_not_excluded(directory, content)
        monkeypatch.undo()
    assert why is not None
    assert why == f"cannot lock files in {directory.path} ({os.strerror(number)})"


def test_a_run_directory_where_there_are_no_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(InputError, match=r"^--out .*run: cannot be written in \(Function not implemented\)$"),
        locked(tmp_path / "run"),
    ):
        pytest.fail("held")
