"""The configurations that driftscale ships: their names, and what each shows, needs and takes.

A name is the path of a file in `experiments/configs` without its suffix, such as "digits" or
"fielding/figure-02"; the name of a folder in it, such as "fielding", stands for all configurations in it.
A name may be given wherever a path may; what exists at the path wins. Reads tables as TOML has them, and
imports nothing heavy.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from emulator.errors import InputError
from emulator.storage.bounded import is_file, read_toml

CONFIGS = Path(__file__).resolve().parent / "configs"
"""The folder of the shipped configurations."""

MINUTES = Path(__file__).resolve().parent / "minutes.toml"
"""The file of the measured minutes, by name."""

DATA_KEYS = ("devices", "folder", "images", "table", "windows")
"""Keys of [trace] and [devices], and of the parts in them, that name files and folders."""

SUFFIX = ".toml"

MOST_NEAR = 3
"""Most shipped configurations that the error for an unknown one names."""

NEARNESS = 0.7
"""How alike the names of those are to the given one, at least, as difflib has it."""

FEWEST_LETTERS = 3
"""A given text with this many letters is also near to the names that begin with it."""

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
    return _described(shipped_files())


@cache
def shipped_files() -> Mapping[str, Path]:
    """The file of each shipped configuration by its name, in the order of `shipped_configurations`."""
    paths = sorted(CONFIGS.rglob("*.toml"), key=lambda path: (path.parent, path.stem))
    return {path.relative_to(CONFIGS).with_suffix("").as_posix(): path for path in paths}


@cache
def shipped_folders() -> Mapping[str, Path]:
    """The folders of shipped configurations by name, such as "fielding"."""
    folders = sorted({path.parent for path in shipped_files().values()} - {CONFIGS})
    return {folder.relative_to(CONFIGS).as_posix(): folder for folder in folders}


@dataclass(frozen=True)
class Taken:
    """The configuration, or the folder of them, that a given path or name stands for.

    Attributes:
        path: Its path; if nothing is there, the given one.
        note: A line that says which one was taken, where two could have been meant; empty otherwise.
    """

    path: Path
    note: str = ""


def take(given: Path, *, folders: bool = True) -> Taken:
    """What `given` stands for: what exists at that path, or else a shipped configuration.

    A shipped one is given by its name, with or without its suffix, or by a path that ends like its place,
    such as `experiments/configs/digits.toml`.

    Args:
        given: A path or a name.
        folders: Whether the name of a folder of shipped configurations stands for that folder.
    """
    path = _shipped(_name(given), given, folders=folders)
    if path is None:
        name = _name_at_end(given)
        at_end = None if given.exists() else _shipped(name, given, folders=folders)
        if at_end is None:
            return Taken(given)
        return Taken(at_end, f"{given}: not here; taking the {_what(at_end)} {name}")
    if given.exists():
        place = path.relative_to(CONFIGS.parent)
        note = f"{given}: taking what is here, not the shipped {place}"
        return Taken(given, "" if path.samefile(given) else note)
    beside = _with_suffix(given)
    other = f", not {beside} here" if is_file(beside) else ""
    return Taken(path, f"{given}: taking the {_what(path)}{other}")


def absent(given: Path) -> str:
    """What is wrong with a path where no configuration is: names the configurations that may be meant."""
    if is_file(_with_suffix(given)):
        return f"no such configuration; did you mean {_with_suffix(given)}?"
    near = nearest(given)
    remedy = "" if given.suffix == SUFFIX else "; driftscale configs lists the shipped ones"
    return f"no such configuration{f'; {near}' if near else remedy}"


def nearest(given: Path) -> str:
    """The shipped configurations whose names are nearest to a given path or name; empty if none is near."""
    last = _last(_name(given))
    if last in shipped_folders():
        return f"{last} is a folder of shipped ones: driftscale configs {last} lists them"
    names = list(shipped_files())
    same = [name for name in names if _last(name) == last]
    if same:
        return f"the shipped one is named {' or '.join(same)}"
    by_end: dict[str, list[str]] = {}
    for name in [*names, *shipped_folders()]:
        by_end.setdefault(_last(name), []).append(name)
    begun = [end for end in by_end if len(last) >= FEWEST_LETTERS and end.startswith(last)]
    close = difflib.get_close_matches(last, by_end, MOST_NEAR, NEARNESS)
    near = [*dict.fromkeys(name for end in [*close, *begun] for name in by_end[end])][:MOST_NEAR]
    return f"the nearest shipped ones: {', '.join(near)} (driftscale configs)" if near else ""


def find_shipped(name: str) -> tuple[ShippedConfiguration, ...]:
    """The shipped configuration of that name, or all in the folder of that name.

    Raises:
        InputError: No shipped configuration and no folder of them has that name; the nearest are named.
    """
    path = _shipped(_name(Path(name)), Path(name), folders=True)
    if path is None:
        remedy = nearest(Path(name)) or "driftscale configs lists them"
        raise InputError(f"{name}: no shipped configuration has that name; {remedy}")
    return _described(name for name, file in shipped_files().items() if path in (file, file.parent))


def is_shipped(path: Path) -> bool:
    """Whether `path` is in the folder of the shipped configurations, by its absolute path.

    Data and modules are not looked for beside such a configuration.
    """
    return CONFIGS in path.parents


def version_identifies(path: Path) -> bool:
    """Whether the version of driftscale identifies a configuration: a shipped one, but not in a clone."""
    return is_shipped(path) and not (CONFIGS.parents[1] / ".git").exists()


def named(path: Path | str) -> str:
    """How errors name a configuration: by its path or, if it is a shipped one, by its name.

    >>> named("mine.toml"), named(CONFIGS / "fielding" / "hear.toml")
    ('mine.toml', 'fielding/hear (shipped)')
    """
    if not is_shipped(Path(path)):
        return str(path)
    return f"{_name(Path(path).relative_to(CONFIGS))} (shipped)"


def _shipped(name: str, given: Path, *, folders: bool) -> Path | None:
    """The file of that name; or its folder, unless `given` has the suffix of a file."""
    folder = shipped_folders().get(name) if folders and given.suffix != SUFFIX else None
    return shipped_files().get(name, folder)


def _what(path: Path) -> str:
    return "folder of shipped configurations" if path.is_dir() else "shipped configuration"


def _with_suffix(path: Path) -> Path:
    return path.with_name(f"{path.name}{SUFFIX}") if path.name else path


def _name(path: Path) -> str:
    return path.as_posix().removesuffix(SUFFIX)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _name_at_end(path: Path) -> str:
    """What follows the last `configs` in a path, as a name; empty if there is none."""
    _, is_there, name = f"/{_name(path)}".rpartition("/configs/")
    return name if is_there else ""


def _described(names: Iterable[str]) -> tuple[ShippedConfiguration, ...]:
    minutes = read_toml(MINUTES)
    return tuple(_describe(name, shipped_files()[name], minutes.get(name)) for name in names)


def _describe(name: str, path: Path, minutes: float | None) -> ShippedConfiguration:
    about = head_comment(path.read_text(encoding="utf-8"))
    table = read_toml(path)
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
