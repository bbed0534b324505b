"""The facts on a command that a manifest records: its arguments, when it was started, and the git commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from experiments.results.reading.json_files import (
    MOST_ARGUMENTS,
    MOST_COMMAND_LETTERS,
    TIME_FORMAT,
    Command,
    is_commit,
)

GIT_S = 5.0
"""Longest wall time in seconds to wait for git."""

REST_LETTERS = 40
"""Letters that are kept free for the note on arguments that were left out."""


def command_facts(arguments: Sequence[str], started: datetime, folder: Path | None) -> Command:
    """The facts on a command, within the bounds of a manifest. Runs git.

    Args:
        arguments: The command line, the program's name first. Letters that cannot be printed are recorded as
            their escape sequences. If there are too many arguments, the last ones are only counted.
        started: When the command was started, in UTC.
        folder: The folder of the configuration, whose commit is recorded; None for one that the
            version of driftscale identifies, as it was shipped.
    """
    commit = None if folder is None else git_commit(folder)
    return Command(
        arguments=_bounded([_printable(argument) for argument in arguments]),
        started=started.strftime(TIME_FORMAT),
        **({} if commit is None else {"git_commit": commit}),
    )


def git_commit(folder: Path) -> str | None:
    """The hash of the commit that is checked out in `folder`.

    None if git is not installed, the folder is not in a repository, or the repository has no commit or
    belongs to somebody else. Only the hash is asked for: other commands, such as `git status`, may run
    programs that the repository configures.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ended = subprocess.run(
            ["git", "-C", os.fspath(folder), "rev-parse", "HEAD"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    commit = ended.stdout.decode("ascii", errors="replace").strip()
    return commit if is_commit(commit) else None


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _bounded(arguments: Sequence[str]) -> list[str]:
    """The arguments as far as a manifest has room for them, and a count of the others."""
    kept: list[str] = []
    room = MOST_COMMAND_LETTERS - REST_LETTERS
    for argument in arguments:
        room -= len(argument)
        if room < 0 or len(kept) == MOST_ARGUMENTS - 1:
            return [*kept, f"… ({len(arguments) - len(kept)} more arguments)"]
        kept.append(argument)
    return kept
