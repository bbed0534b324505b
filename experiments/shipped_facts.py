"""What each shipped configuration shows, needs and takes, without running it.

Reads tables as TOML has them, and imports nothing heavy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.storage.bounded import read_toml
from experiments import shipped
from experiments.extending import extended
from experiments.shipped import find_names

MINUTES = Path(__file__).resolve().parent / "minutes.toml"
"""The file of the measured minutes, by name."""

DATA_KEYS = ("devices", "folder", "images", "table", "windows")
"""Keys of [trace] and [devices], and of the parts in them, that name files and folders."""

SENTENCE = re.compile(r".*?[.?!](?=\s|$)", re.DOTALL)


@dataclass(frozen=True)
class ShippedConfiguration:
    """What is known about a shipped configuration without running it.

    Attributes:
        name: Its name, such as "fielding/figure-02".
        path: Its file.
        about: The whole comment at its head, on one line: what it shows.
        summary: The first sentence of `about`.
        data: The files and folders that it needs under the present folder or --data; none if it brings its
            own data. They are sorted.
        arms: The number of its arms.
        seeds: The number of its seeds.
        cells: The number of cells of its sweep; 1 without one.
        minutes: Wall minutes that all runs take on two cores, as measured; None if that was not measured.
    """

    name: str
    path: Path
    about: str
    summary: str
    data: tuple[str, ...]
    arms: int
    seeds: int
    cells: int
    minutes: float | None

    @property
    def runs(self) -> int:
        """The number of runs: arms x seeds x cells."""
        return self.arms * self.seeds * self.cells


def shipped_configurations() -> tuple[ShippedConfiguration, ...]:
    """All shipped configurations: first those outside of folders, then folder by folder, each by name."""
    return _described(shipped.shipped_files())


def find_shipped(name: str) -> tuple[ShippedConfiguration, ...]:
    """The shipped configuration of that name, or all in the folder of that name; else as `find_names`."""
    return _described(find_names(name))


def _described(names: Iterable[str]) -> tuple[ShippedConfiguration, ...]:
    minutes = read_toml(MINUTES)
    return tuple(_describe(name, shipped.shipped_files()[name], minutes.get(name)) for name in names)


def _describe(name: str, path: Path, minutes: float | None) -> ShippedConfiguration:
    about = head_comment(path.read_text(encoding="utf-8"))
    table = extended(read_toml(path), path, Path, read_toml)
    first = SENTENCE.match(about)
    return ShippedConfiguration(
        name=name,
        path=path,
        about=about,
        summary=first.group() if first else about,
        data=tuple(sorted({*_named(table.get("trace")), *_named(table.get("devices"))})),
        arms=len(table["arm"]),
        seeds=len(table["seeds"]),
        cells=math.prod(len(values) for values in table.get("sweep", {}).values()),
        minutes=minutes,
    )


def head_comment(text: str) -> str:
    """The comment that a configuration begins with, on one line.

    >>> head_comment("# A fleet\\n# of phones.\\nname = 'fleet'  # short")
    'A fleet of phones.'
    """
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return " ".join(lines)


def _named(value: Any) -> Iterator[str]:
    """The files and folders that a table, or one in it, names."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in DATA_KEYS and isinstance(item, str):
                yield item
            yield from _named(item)
