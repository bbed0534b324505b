"""Arguments of the public calls as the engine takes them: plain values, paths, lists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.errors import ConfigurationError, InputError
from experiments.cli.paths import data_or_variable, path_for
from experiments.results.reading.recorded import MOST_RUNS
from experiments.shipped import take

if TYPE_CHECKING:
    from emulator.plugins import Settings

S = TypeVar("S", bound="Settings")

AnyPath = str | os.PathLike[str]
Paths = AnyPath | Sequence[AnyPath]
Config = AnyPath | Mapping[str, Any]

NOTHING: Mapping[str, Any] = {}
"""The default of an argument that takes values by key."""


def path_of(given: object, what: str) -> Path:
    """The path of the argument `what`, with ~ expanded; InputError if it cannot be one."""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"{what}: {given!r} is not a path; must be a text or a pathlib.Path")
    try:
        return path_for(what)(os.fspath(given)).expanduser()
    except (RuntimeError, ValueError, TypeError) as error:  # ~ of an unknown user, a null byte, bytes
        raise InputError(f"{what}: {given!r} is not a path ({error})") from error


def data_of(given: Paths) -> list[Path]:
    """The folders to look for data files in: those `given`, or else those of DRIFTSCALE_DATA."""
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        given = [given]
    folders = list(given)
    return data_or_variable([path_of(folder, "data") for folder in folders])


def seeds_of(given: object) -> list[int] | None:
    """The seeds as a list; None to keep those of the configuration."""
    if given is None:
        return None
    if isinstance(given, str):
        raise ConfigurationError(f"seeds = {given!r}: must be whole numbers, as in [0, 3, 7] or range(10)")
    seeds = islice(given, MOST_RUNS + 1) if isinstance(given, Iterable) else [given]
    return [plain(seed, "seeds") for seed in seeds]


def names_of(given: str | Iterable[str] | None, what: str) -> list[str] | None:
    """The names of the argument `what` as a list; None for None.

    ConfigurationError if they are no names, or if there is none: of arms, that would stand for all.
    """
    if given is None:
        return None
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{what} = {given!r}: must be a name, or a list of names that is not empty")
    return [str(name) for name in names]


def table_of(given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A copy of the mapping of the argument `what`, of values as TOML has them.

    Raises ConfigurationError, which names the key, for a value that TOML lacks.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"{what} = {given!r}: must be a mapping, as in {{'round.rounds': 100}}")
    table = plain(given, what)
    assert isinstance(table, dict), "it is made of a mapping"
    return table


def sweep_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Swept keys, with the list of values of each."""
    return table_of(given, "sweep")


def source_of(given: Config) -> dict[str, Any]:
    """The configuration as arguments of a `RunCommand`: `config` and `note`, or `table` if it is no file."""
    if isinstance(given, Mapping):
        from experiments.playing.command import MAPPING

        return {"config": MAPPING, "table": table_of(given, str(MAPPING))}
    taken = take(path_of(given, "config"))
    return {"config": taken.path, "note": taken.note}


def settings_of(declared: type[S], given: Mapping[str, Any], call: str) -> S:
    """The settings that the arguments `given` of a call make; one that is None is left out.

    Raises ConfigurationError with the argument, its value, and the rule that is broken.
    """
    from pydantic import ValidationError

    from experiments.remedies.mistakes import mistakes

    table = {key: plain(value, key) for key, value in given.items() if value is not None}
    try:
        return declared.model_validate(table)
    except ValidationError as error:
        raise ConfigurationError(f"{call}: {mistakes(error, table)[0]}") from error


def plain(value: Any, where: str) -> Any:
    """`value` as TOML has it: numpy's numbers and arrays as Python's, paths as text, tuples as lists."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ConfigurationError(f"{where}: the key {key!r} must be a text")
        return {key: plain(item, f"{where}: {key}") for key, item in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple | range):
        return [plain(item, f"{where}, entry {number}") for number, item in enumerate(value)]
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
        return plain(value, where) if isinstance(value, list) else value
    if value is None:
        raise ConfigurationError(f"{where}: None is no value of a configuration; leave the key out")
    return value
