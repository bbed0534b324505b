"""What the commands of a page may name: shipped configurations, kinds of parts, targets of make, extras."""

from __future__ import annotations

import configparser
import importlib.util
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from device_profiles import PROFILES
from emulator.plugins import Registry
from experiments import shipped
from experiments.part_kinds import part_kinds
from experiments.results.frames import columns
from tests.docs.blocks import ROOT


@cache
def kinds_of_parts() -> Mapping[str, Registry[Any]]:
    """The parts of each kind by the kind's name."""
    return {name: kind.registry for name, kind in part_kinds().items()}


@cache
def all_registries() -> tuple[Registry[Any], ...]:
    """Everything that third parties can register."""
    from traces.building import BUILDERS

    return (*kinds_of_parts().values(), PROFILES, BUILDERS)


def shipped_files(name: str) -> list[Path]:
    """The files of a shipped configuration, or of a folder of them, by its name; none if there is none."""
    if name in shipped.shipped_folders():
        folder = shipped.shipped_folders()[name]
        return [path for path in shipped.shipped_files().values() if path.parent == folder]
    file = shipped.shipped_files().get(name)
    return [] if file is None else [file]


def shipped_names() -> tuple[str, ...]:
    """The names of all shipped configurations."""
    return tuple(shipped.shipped_files())


@cache
def make_targets() -> frozenset[str]:
    """The targets of the Makefile."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^([a-z][\w-]*):", text, re.MULTILINE))


@cache
def extras() -> frozenset[str]:
    """The extras of the package."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return frozenset(setup["options.extras_require"])


def is_module(name: str) -> bool:
    """Whether there is a module of that name that can be run; none of ours is imported."""
    path = ROOT.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file() or (path / "__main__.py").is_file():
        return True
    return (
        not (ROOT / name.partition(".")[0]).is_dir()
        and importlib.util.find_spec(name.partition(".")[0]) is not None
    )


def frames() -> Mapping[str, Callable[[str], bool]]:
    """For each frame, whether it has a column of a name."""
    return {
        **{name: partial(_has_column, name) for name in columns.frame_columns()},
        "comparison": partial(_is_listed, columns.COMPARISON),
        "check": partial(_is_listed, columns.CHECK),
    }


def _has_column(frame: str, column: str) -> bool:
    return columns.described(frame, column) is not None


def _is_listed(listed: Collection[str], column: str) -> bool:
    """Whether a column is listed, alone or with the end of an interval."""
    figure = re.sub("_(low|high)$", "", column)
    return column in listed or (figure in listed and "<figure>_low" in listed)
