"""The configurations of a folder, read without importing torch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.errors import ConfigurationError, InputError, UnknownNameError
from experiments.config import Experiment, Locate, locator, parse_experiment, read_experiment


@dataclass(frozen=True)
class Member:
    """One configuration of a folder, and the names of the arms to run (None: all).

    `path` is its file; `locate` maps a path in it to a file.
    """

    path: Path
    experiment: Experiment
    arms: Sequence[str] | None
    locate: Locate


def refuse_unknown_arms(arms: Sequence[str] | None, known: Collection[str]) -> None:
    """UnknownNameError for the first of `arms` that is not among the `known` ones."""
    for arm in arms or ():
        if arm not in known:
            raise UnknownNameError("arm", arm, known, "--arms")


def load_folder(
    folder: Path,
    overrides: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    data: Path | None = None,
) -> list[Member]:
    """The configurations in `folder`, not below it, sorted by file name.

    If `arms` are given, configurations that have none of them are left out.

    Raises:
        ConfigurationError: A configuration breaks a rule, or two have the same name.
        UnknownNameError: No configuration has one of `arms`.
        InputError: The folder has no configuration.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise InputError(f"{folder}: a folder without a configuration (*.toml)")
    tables = {path: read_experiment(path, overrides, seeds, data) for path in paths}
    named: dict[str, Path] = {}
    for path, table in tables.items():
        name = table["name"]
        if name in named:
            raise ConfigurationError(
                f"{path}: name = {name!r}: is also that of {named[name]}; every configuration of a folder "
                f"needs a name of its own"
            )
        named[name] = path
    known = dict.fromkeys(arm["name"] for table in tables.values() for arm in table["arm"])
    refuse_unknown_arms(arms, known)
    members = []
    for path, table in tables.items():
        experiment = parse_experiment(table, str(path))
        names = {arm.name for arm in experiment.arm}
        chosen = None if arms is None else [arm for arm in arms if arm in names]
        if chosen is None or chosen:
            members.append(Member(path, experiment, chosen, locator(data, path)))
    return members
