from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.small import write_small


@pytest.fixture
def beside_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder is that of the test's files."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The small configuration as a file."""
    return write_small(tmp_path)
