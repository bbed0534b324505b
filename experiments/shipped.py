"""The configurations that driftscale ships: their names and files.

A name is the path of a file in `experiments/configs` without its suffix, such as "digits" or
"fielding/figure-02"; the name of a folder in it, such as "fielding", stands for all configurations in it.
A name may be given wherever a path may; what exists at the path wins. A file in a folder of such a folder, as
"atlas/parts/arms", is a part of configurations: it can be extended, and is listed nowhere. No file is read,
and nothing heavy is imported; `shipped_facts.py` says what each of them shows, needs and takes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from emulator.errors import InputError
from emulator.storage.bounded import is_file

CONFIGS = Path(__file__).resolve().parent / "configs"
"""The folder of the shipped configurations."""

SUFFIX = ".toml"

MOST_NEAR = 3
"""Most shipped configurations that the error for an unknown one names."""

NEARNESS = 0.7
"""How alike the names of those are to the given one, at least, as difflib has it."""

FEWEST_LETTERS = 3
"""A given text with this many letters is also near to the names that begin with it."""


def shipped_files() -> Mapping[str, Path]:
    """The file of each shipped configuration by its name, first those outside of folders."""
    return {name: path for name, path in _files().items() if name.count("/") <= 1}


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


def find_names(name: str) -> tuple[str, ...]:
    """That name, if it is one of a shipped configuration, or the names of all in the folder of that name.

    Raises:
        InputError: No shipped configuration and no folder of them has that name; the nearest are named.
    """
    path = _shipped(_name(Path(name)), Path(name), folders=True)
    if path is None:
        remedy = nearest(Path(name)) or "driftscale configs lists them"
        raise InputError(f"{name}: no shipped configuration has that name; {remedy}")
    return tuple(name for name, file in shipped_files().items() if path in (file, file.parent))


def shipped_file(name: str) -> Path | None:
    """The file of the shipped configuration, or part of one, of that name; None without one.

    The name may have its suffix.
    """
    return _files().get(name.removesuffix(SUFFIX))


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
    return f"{name_of(Path(path))} (shipped)"


def name_of(path: Path) -> str:
    """The name of a file, or of a folder, among those that are shipped; there need not be any."""
    return _name(path.relative_to(CONFIGS))


@cache
def _files() -> Mapping[str, Path]:
    """The files of shipped configurations and of their parts by name."""
    paths = sorted(CONFIGS.rglob("*.toml"), key=lambda path: (path.parent, path.stem))
    return {path.relative_to(CONFIGS).with_suffix("").as_posix(): path for path in paths}


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
