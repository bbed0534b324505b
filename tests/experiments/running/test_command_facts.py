from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from experiments.results.reading.json_files import MOST_ARGUMENTS, MOST_COMMAND_LETTERS, Command
from experiments.running.command_facts import command_facts, git_commit

STARTED = datetime(2026, 1, 31, 12, 0, 5, 999_999, tzinfo=UTC)
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git on PATH")


def git(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ended = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, *AUTHOR, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def a_program(path: Path, script: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def facts(*arguments: str, folder: Path) -> Command:
    return command_facts(["driftscale", *arguments], STARTED, folder)


# -- the commit ---------------------------------------------------------------------------------------------


@needs_git
def test_the_commit_is_that_of_the_repository_around_the_folder(repository: Path) -> None:
    (repository / "configs").mkdir()
    assert git_commit(repository / "configs") == git(repository, "rev-parse", "HEAD")


@needs_git
def test_a_folder_without_a_commit_has_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    git(tmp_path, "init", "--quiet", "empty")
    assert git_commit(tmp_path / "empty") is None
    assert git_commit(tmp_path) is None
    assert git_commit(tmp_path / "absent") is None
    assert capfd.readouterr() == ("", "")


@needs_git
def test_the_environment_redirects_git_to_no_other_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repository))
    assert git_commit(tmp_path / "elsewhere") is None


@needs_git
def test_programs_that_a_repository_configures_are_not_run(repository: Path, tmp_path: Path) -> None:
    (repository / "data.csv").write_text("a")
    git(repository, "add", "data.csv")
    (repository / "data.csv").write_text("b")
    trap = a_program(tmp_path / "trap", f"touch {tmp_path}/caught; cat")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("*.csv filter=trap\n")
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "filter.trap.clean", "diff.external"):
        git(repository, "config", key, str(trap))
    assert git_commit(repository) is not None
    assert not (tmp_path / "caught").exists()
    git(repository, "status")  # sets the trap off
    assert (tmp_path / "caught").exists()


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) is None


@pytest.mark.parametrize(
    "output", ["HEAD", "", "0" * 39, "0" * 40 + "g", "0" * 40 + "\\n" + "1" * 40, "\\377"]
)
def test_output_other_than_a_hash_is_no_commit(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_program(tmp_path / "bin" / "git", f"printf '{output}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert git_commit(tmp_path) is None


@pytest.mark.parametrize("digits", [40, 64])
def test_the_hash_of_either_kind_of_repository_is_taken(
    digits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_program(tmp_path / "bin" / "git", f"echo {'0a' * (digits // 2)}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert git_commit(tmp_path) == "0a" * (digits // 2)


def test_a_git_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_program(tmp_path / "bin" / "git", "exec sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr("experiments.running.command_facts.GIT_S", 0.05)
    start = time.monotonic()
    assert git_commit(tmp_path) is None
    assert time.monotonic() - start < 30


# -- the command --------------------------------------------------------------------------------------------


def test_a_command_is_recorded_as_it_was_given_with_its_date_in_utc(tmp_path: Path) -> None:
    recorded = facts("run", "a b.toml", "--set", 'x=["ä"]', folder=tmp_path)
    assert recorded.model_dump(exclude_unset=True) == {
        "arguments": ["driftscale", "run", "a b.toml", "--set", 'x=["ä"]'],
        "started": "2026-01-31T12:00:05Z",
    }


def test_letters_that_cannot_be_printed_are_recorded_as_their_escapes(tmp_path: Path) -> None:
    recorded = facts("a\nb", "\x1b[2J", "\udcff", "a\u202eb", folder=tmp_path)
    assert recorded.arguments == ["driftscale", "a\\nb", "\\x1b[2J", "\\udcff", "a\\u202eb"]


@pytest.mark.parametrize("arguments", [["x"] * 5_000, ["x" * 100] * 500, ["x" * MOST_COMMAND_LETTERS]])
def test_of_a_command_that_is_too_long_the_last_arguments_are_only_counted(
    arguments: list[str], tmp_path: Path
) -> None:
    recorded = facts(*arguments, folder=tmp_path).arguments
    *kept, note = recorded
    assert kept == ["driftscale", *arguments][: len(kept)]
    assert note == f"… ({1 + len(arguments) - len(kept)} more arguments)"
    assert len(recorded) <= MOST_ARGUMENTS
    assert sum(map(len, recorded)) <= MOST_COMMAND_LETTERS
