"""The worlds and logs of the rows, built once for all tests, and a factory of runs that are stopped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from experiments.build import World, build_world
from experiments.locating import locator
from tests.reliability.rows import AVAILABILITY, row
from tests.reliability.stops import Stopped

WorldOf = Callable[[str], World]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the rows name."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "availability.csv").write_text(AVAILABILITY)
    return folder


@pytest.fixture(scope="session")
def world_of(data: Path) -> WorldOf:
    """The world of a row, by name."""

    @cache
    def world_of(name: str) -> World:
        return build_world(row(name), 0, locator(data, None))

    return world_of


@pytest.fixture(scope="session")
def whole(world_of: WorldOf, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stopped]:
    """A row that was played without a stop, by name."""

    @cache
    def whole(name: str) -> Stopped:
        run = Stopped(row(name), world_of(name), tmp_path_factory.mktemp("whole"))
        run.play()
        return run

    return whole


@pytest.fixture
def stopped(world_of: WorldOf, tmp_path: Path) -> Callable[[str], Stopped]:
    """A fresh `Stopped` of a row, by name."""
    return lambda name: Stopped(row(name), world_of(name), tmp_path / name)
