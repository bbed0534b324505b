from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of published data sets."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = Path(os.environ.get("DRIFTSCALE_DATA", beside))
    if not (folder / "mnist").is_dir() or not (folder / "label_traces").is_dir():
        pytest.skip(f"no published data sets at {folder}; set DRIFTSCALE_DATA to their folder")
    return folder
