"""Every folder of shipped configurations is in the wheel."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_configurations_of_every_folder_are_data_of_the_package() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["experiments"].replace("\n", "").split(",")
    shipped = {
        path.relative_to(ROOT / "experiments") for path in (ROOT / "experiments/configs").rglob("*.toml")
    }
    packed = {path for path in shipped if any(path.match(pattern.strip()) for pattern in patterns)}
    assert packed == shipped
