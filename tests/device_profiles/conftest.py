from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from emulator.seeding import RandomStreams


@pytest.fixture
def generator() -> Callable[[], np.random.Generator]:
    """A function that returns generators with equal streams."""
    return lambda: RandomStreams(5).generator("fleet")


@pytest.fixture
def devices_data() -> Path:
    """The folder of the device data, which is not part of the project."""
    root = os.environ.get("DRIFTSCALE_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(root) / "devices"
    if not folder.is_dir():
        pytest.skip(f"the device data is not there: {folder} (set DRIFTSCALE_DATA)")
    return folder
