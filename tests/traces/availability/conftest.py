import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def device_data() -> Path:
    """The folder of published device tables."""
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    folder = Path(os.environ.get("DRIFTSCALE_DATA", beside)) / "devices"
    if not folder.is_dir():
        pytest.skip(f"no published device tables at {folder}; set DRIFTSCALE_DATA to their folder")
    return folder
