"""What the commands of a page may name: shipped configurations, kinds of parts, targets of make, extras."""

from __future__ import annotations

import configparser
import difflib
import importlib.util
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from device_profiles import PROFILES
from emulator.plugins import Registry
from experiments.cli.parts_table import _registries
from tests.docs.blocks import ROOT

CONFIGS = ROOT / "experiments" / "configs"


@cache
def kinds_of_parts() -> Mapping[str, Registry[Any]]:
    """The parts of each kind by the kind's name."""
    return _registries()


@cache
def all_registries() -> tuple[Registry[Any], ...]:
    """Everything that third parties can register."""
    from traces.building import BUILDERS

    return (*kinds_of_parts().values(), PROFILES, BUILDERS)


def shipped_files(name: str) -> list[Path]:
    """The files of a shipped configuration, or of a folder of them, by its name; none if there is none."""
    file = CONFIGS / f"{name}.toml"
    if file.is_file():
        return [file]
    folder = CONFIGS / name
    return sorted(folder.glob("*.toml")) if folder.is_dir() and folder != CONFIGS else []


def nearest_shipped(name: str) -> str:
    """The end of an error about an unknown configuration: the names that are most like it."""
    close = difflib.get_close_matches(
        name.removeprefix("experiments/configs/").removesuffix(".toml"), shipped_names()
    )
    return f"; shipped are {', '.join(close)} and others" if close else ""


@cache
def shipped_names() -> tuple[str, ...]:
    """The names of all shipped configurations."""
    return tuple(
        path.relative_to(CONFIGS).with_suffix("").as_posix() for path in sorted(CONFIGS.rglob("*.toml"))
    )


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


def frame_columns() -> Mapping[str, Collection[str]]:
    """The columns of each frame of results; none before they are listed."""
    try:
        from experiments.results.frames.columns import COLUMNS
    except ImportError:
        return {}
    return COLUMNS
