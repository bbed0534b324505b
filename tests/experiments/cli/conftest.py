from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from emulator import own_parts
from experiments.cli import main


@dataclass(frozen=True)
class Ended:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The line of an error of ours, without its `error: `; lines of further mistakes are indented."""
        first, *more = self.err.splitlines()
        assert first.startswith("error: "), self.err
        assert all(line.startswith("  ") for line in more), self.err
        return first.removeprefix("error: ")


Driftscale = Callable[..., Ended]


@pytest.fixture
def driftscale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Driftscale:
    """Calls the entry point in this process, as from a shell, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRIFTSCALE_DATA", raising=False)
    monkeypatch.setattr(
        own_parts, "_folders", ()
    )  # a command looks for modules in other folders from then on

    def call(*arguments: str | Path, by: Callable[[], NoReturn] = main) -> Ended:
        monkeypatch.setattr(sys, "argv", ["driftscale", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            by()
        code = ended.value.code
        assert isinstance(code, int)
        return Ended(code, *capfd.readouterr())

    return call
