from __future__ import annotations

from pathlib import Path

import pytest

from emulator.errors import InputError
from experiments.results.reading.run_directory import RunDirectory
from experiments.running.leftovers import clear, delete_leftovers
from experiments.running.locking import seed_locked
from tests.experiments.synthetic_runs import a_directory, a_run, store

NOBODY, TOKEN = 999_999_999, "0123456789abcdef"


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files but the locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    """Two finished runs, each with a torn file and a checkpoint left by a kill right after DONE."""
    directory = a_directory(tmp_path / "run", ["global", "fielding"], [0])
    for arm in ("global", "fielding"):
        store(directory, a_run(arm, 0, [0.5]))
        (directory.seed_path(arm, 0) / f".timing.json.{NOBODY}-{TOKEN}").touch()
        directory.checkpoints(arm, 0).path.mkdir()
        (directory.checkpoints(arm, 0).path / f"round-000001-{'0' * 64}.safetensors").touch()
    return directory


def test_a_run_directory_is_cleared_whole_and_nothing_else_is_ever_deleted(
    directory: RunDirectory, tmp_path: Path
) -> None:
    clear(directory)
    assert not directory.path.exists()
    clear(directory)
    (tmp_path / "thesis.tex").write_text("precious")
    clear(RunDirectory(tmp_path))
    assert (tmp_path / "thesis.tex").exists()
    RunDirectory(tmp_path).start("arm", 0)
    RunDirectory(tmp_path).run_file("arm", 0, "DONE").touch()
    with pytest.raises(InputError, match="so it is not deleted"):
        clear(RunDirectory(tmp_path))
    assert (tmp_path / "thesis.tex").exists()


def test_a_folder_that_no_run_can_have_is_not_cleared(directory: RunDirectory) -> None:
    odd_folders = [directory.path / name for name in ("global/seed-00", "global/seed-x", "a\\b/seed-0")]
    for folder in odd_folders:
        folder.mkdir(parents=True)
    clear(directory)
    assert all(folder.is_dir() for folder in odd_folders)
    assert not directory.seed_path("global", 0).exists()


@pytest.mark.parametrize("arm", ["global", "fielding", "another"])
def test_nothing_is_cleared_while_a_process_is_at_work_on_a_run(directory: RunDirectory, arm: str) -> None:
    before = contents(directory.path)
    with seed_locked(directory, arm, 0):
        refusal = rf"run is not deleted: {arm}, seed 0: another call in this process"
        with pytest.raises(InputError, match=refusal):
            clear(directory)
        assert contents(directory.path) == before
    clear(directory)
    assert contents(directory.path) == {}


def test_clearing_deletes_locks_of_processes_that_were_killed(directory: RunDirectory) -> None:
    for arm in ("global", "another"):
        path = directory.seed_lock_path(arm, 0)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{NOBODY} elsewhere\n")
    clear(directory)
    assert not directory.path.exists()


def test_what_killed_processes_left_is_swept_up_but_for_runs_that_are_at_work(
    directory: RunDirectory,
) -> None:
    notes: list[str] = []
    directory.seed_lock_path("global", 0).write_text(f"{NOBODY} elsewhere\n")
    with seed_locked(directory, "fielding", 0):
        delete_leftovers(directory, notes.append)
        remaining = sorted(str(path.relative_to(directory.path)) for path in directory.path.glob("*/*/**/*"))
        assert notes == [
            "fielding, seed 0: another call in this process is at work on it; its files are left alone"
        ]
    files = ["DONE", "log.jsonl", "timing.json"]
    left = [
        f".timing.json.{NOBODY}-{TOKEN}",
        "checkpoint",
        f"checkpoint/round-000001-{'0' * 64}.safetensors",
        *files,
    ]
    assert remaining == sorted(
        [*(f"global/seed-0/{name}" for name in files), *(f"fielding/seed-0/{name}" for name in left)]
    )
    assert not directory.seed_lock_path("global", 0).exists()
    delete_leftovers(directory, notes.append)
    assert len(notes) == 1
    assert not directory.checkpoints("fielding", 0).path.exists()
    assert not list(directory.path.glob("*/.*"))


def test_a_run_that_left_nothing_is_not_locked_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = a_directory(tmp_path / "run", ["global"], [0])
    store(directory, a_run("global", 0, [0.5]))
    monkeypatch.setattr("experiments.running.leftovers.seed_locked", None)
    delete_leftovers(directory, pytest.fail)
