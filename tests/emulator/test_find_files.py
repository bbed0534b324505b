from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from emulator.plugins import ChoiceOf, Chosen, Registry, Settings


class Table(Settings):
    path: str

    def find_files(self, locate: Callable[[str], Path]) -> None:
        locate(self.path)


class Shelf(Settings):
    first: Table
    several: tuple[Table, ...] = ()
    by_name: dict[str, Table] = Field(default_factory=dict)
    number: int = 3
    words: tuple[str, ...] = ("not-a-path",)


class Part:
    Settings = Shelf


SHELVES: Registry[Any] = Registry("shelf", "driftscale.test_shelf", {"shelf": Part})


class Room(Settings):
    part: Annotated[Chosen[Any], ChoiceOf(SHELVES)]


def test_settings_find_the_files_of_the_tables_and_parts_in_them_in_their_order() -> None:
    shelf = Shelf(
        first=Table(path="a"),
        several=(Table(path="b"), Table(path="c")),
        by_name={"x": Table(path="d")},
    )
    asked: list[str] = []

    def locate(path: str) -> Path:
        asked.append(path)
        return Path(path)

    shelf.find_files(locate)
    assert asked == ["a", "b", "c", "d"]

    Room(part=Chosen("shelf", Part, shelf)).find_files(locate)
    assert asked == ["a", "b", "c", "d"] * 2
