"""Reading a configuration from its file, with the values that options override.

Works on tables as TOML has them; `config.py` says what they mean, and validates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from device_profiles import refuse_unknown_profile
from emulator.errors import ConfigurationError, DataFileError, naming
from emulator.plugins import FIRST_LOOK
from emulator.storage.bounded import is_file, read_toml, toml_document
from experiments.config import Experiment, parse_experiment
from experiments.extending import ALONE, CHOSEN, extended
from experiments.locating import DataFolders, Locate, OutsideError, locator
from experiments.shipped import absent, named
from traces.sources import SOURCES

SWEEP = "sweep"
"""The table of the keys that a configuration gives several values; see `experiments/running/sweep.py`."""

Overrides = Sequence[str] | Mapping[str, Any]
"""Values that override keys, applied in their order: --set options, or values by key."""

ENTRY = re.compile(r"0|[1-9][0-9]{0,8}")
"""A part of a dotted key that is the number of an entry of a list."""


def load_experiment(
    path: Path, overrides: Sequence[str] = (), seeds: Sequence[int] | None = None, data: DataFolders = None
) -> Experiment:
    """The configuration in the file `path`, with `overrides` applied.

    Torch is imported last, for the settings of rules and models: wrong keys, types and names elsewhere are
    reported before.

    Args:
        path: A TOML file.
        overrides: Values that override keys of the file, such as "round.rounds=100", applied in this order.
        seeds: Seeds that replace those of the file and of `overrides`; None: keep them.
        data: The folders of --data.

    Raises:
        ConfigurationError: The file is not TOML, or the configuration breaks a rule; names file and key.
        DataFileError: There is no such file, or no such folder of `data`.
        InputError: The catalogue has no device profile of that name.
    """
    table, locate = _read_single(path, overrides, seeds, data)
    take_first_look(table, named(path), locate)
    return parse_experiment(table, named(path))


def load_without_torch(
    path: Path, overrides: Sequence[str] = (), data: DataFolders = None
) -> tuple[Experiment, Locate]:
    """The configuration in the file `path`, without the settings of rules and models; and its `Locate`.

    Its world can be drawn, and no arm can be built. For the arguments and the errors see `load_experiment`.
    """
    table, locate = _read_single(path, overrides, None, data)
    return take_first_look(table, named(path), locate), locate


def _read_single(
    path: Path, overrides: Sequence[str], seeds: Sequence[int] | None, data: DataFolders
) -> tuple[dict[str, Any], Locate]:
    """The content of a configuration that describes one experiment, and how to find its files.

    Raises ConfigurationError if it has a sweep.
    """
    locate = locator(data, path)
    table = read_table(path, overrides, seeds, locate)
    if SWEEP in table:
        raise ConfigurationError(
            f"{named(path)}: has a [{SWEEP}], so it describes several experiments; take one without, or "
            f"--set '{SWEEP}={{}}'"
        )
    return table, locate


def read_table(
    path: Path,
    overrides: Overrides = (),
    seeds: Sequence[int] | None = None,
    locate: Locate | None = None,
) -> dict[str, Any]:
    """The content of a configuration with `overrides` and `seeds` applied, otherwise unchecked.

    For the arguments see `load_experiment`; `locate` says what may be extended, by default without --data.
    Unless it is empty, a `[sweep]` is left in the table.

    Raises:
        ConfigurationError: A file is not TOML, or an override does not fit it.
        DataFileError: There is no such file.
        InputError: For what it extends see `extended`.
    """
    table = extended(read_file(path), path, locate or locator(None, path), read_file)
    override_table(table, overrides, seeds)
    return table


def read_file(path: Path) -> dict[str, Any]:
    """The content of the file of a configuration alone; for the errors see `read_table`."""
    if not is_file(path):
        raise DataFileError(path, "is a folder, not a configuration" if path.is_dir() else absent(path))
    try:
        return read_toml(path)
    except (OSError, ValueError) as error:
        from experiments.remedies.misreadings import remedy

        problem = remedy("file", path.suffix, path) or f"cannot be read as TOML ({error})"
        raise ConfigurationError(f"{named(path)}: {problem}") from error


def override_table(table: dict[str, Any], overrides: Overrides, seeds: Sequence[int] | None) -> None:
    """Apply `overrides` and `seeds` to the content of a configuration; delete an empty `[sweep]`.

    Raises ConfigurationError if an override does not fit the table.
    """
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            set_key(table, key, value, f"set {key} = {value!r}")
    else:
        for override in overrides:
            _apply_override(table, override)
    if seeds is not None:
        table.pop(CHOSEN, None)
        table["seeds"] = list(seeds)
    if table.get(SWEEP) == {}:
        del table[SWEEP]


def take_first_look(table: dict[str, Any], where: str, locate: Locate) -> Experiment:
    """Check `table` without torch, and name the source `idx` if its trace source is a folder.

    Args:
        table: The content of a configuration, without `[sweep]`; the trace source is changed in place.
        where: Names the configuration in errors, such as its file.
        locate: Maps a path in the configuration to a file.

    Returns:
        The configuration, without the settings of rules and models.

    Raises:
        ConfigurationError: The table breaks a rule, other than those in the settings of rules and models.
        InputError: The catalogue has no device profile of that name.
        OutsideError: The trace source is a folder outside those that a configuration may read.
    """
    _name_folder_source(table, locate)
    experiment = parse_experiment(table, where, FIRST_LOOK)
    with naming(where):
        refuse_unknown_profile(experiment.devices.profile.path, where="devices.profile")
    return experiment


def _name_folder_source(table: dict[str, Any], locate: Locate) -> None:
    """Replace a trace source that is a folder, not a name, by the source `idx` of that folder.

    Raises OutsideError if the folder lies outside those that a configuration may read.
    """
    trace = table.get("trace")
    source = trace.get("source") if isinstance(trace, dict) else None
    if not isinstance(trace, dict) or not isinstance(source, str) or source in SOURCES:
        return
    try:
        is_folder = locate(source).is_dir()
    except OutsideError:
        raise
    except DataFileError:
        return  # an unknown name; its validation lists the choices
    if is_folder:
        table["trace"] = {**trace, "source": "idx", "folder": source}


def parse_value(text: str) -> Any:
    """The value that an option gives as `text`: read as TOML, or as text if it is not valid TOML."""
    try:
        document = toml_document(f"value = {text}")
    except ValueError:
        return text
    return document["value"]


def set_key(table: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set the dotted `key` of a configuration's `table` to `value`.

    A whole number addresses an entry of a list that has it, as in `trace.drift.events.0.share`; an arm is
    addressed by its name.

    Raises ConfigurationError, with `where` in front, if a part of the key names no arm, no entry of a list,
    or no table.
    """
    table.pop(CHOSEN, None)
    *path, last = key.split(".")
    target: Any = table
    for depth, name in enumerate(path):
        target = _step_into(target, name, path[:depth], where)
    if isinstance(target, list) and path != ["arm"]:
        target[_entry(target, last, path, where)] = value
        return
    if not isinstance(target, dict):
        raise ConfigurationError(f"{where}: {'.'.join(path)} is not a table")
    if last == "kind" and target.get("kind") != value:
        target.clear()  # the settings were those of another part
    target[last] = value


def _apply_override(table: dict[str, Any], override: str) -> None:
    """Apply an override `key.key=value` to `table`; for the key see `set_key`."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(f"--set {override}: must be KEY=VALUE, as in round.rounds=100")
    set_key(table, key.strip(), parse_value(text), f"--set {override}")


def _step_into(container: Any, name: str, path: Sequence[str], where: str) -> Any:
    """The value under `name` in the `container` at `path`.

    A table in which it is missing gets an empty table there. In a list, `name` is the number of an entry; in
    the list of arms it is the name of one.
    """
    if isinstance(container, list) and path == ["arm"]:
        names = [item.get("name") for item in container if isinstance(item, dict)]
        if name not in names:
            choices = ", ".join(map(str, names))
            raise ConfigurationError(f"{where}: no arm is named {name!r}; choices: {choices}")
        return container[names.index(name)]
    place: Any = name
    if isinstance(container, list):
        place = _entry(container, name, path, where)
    elif isinstance(container, dict):
        container.setdefault(name, {})
    else:
        raise ConfigurationError(f"{where}: {name!r} is a key of a value that is not a table")
    if isinstance(container[place], str):  # a part that is given by its name only, or a table by its path
        key = path[-1] if isinstance(container, list) else name
        container[place] = {ALONE.get(key, "kind"): container[place]}
    return container[place]


def _entry(entries: Sequence[Any], name: str, path: Sequence[str], where: str) -> int:
    """The number `name` of one of the `entries` of the list at `path`."""
    if ENTRY.fullmatch(name) and int(name) < len(entries):
        return int(name)
    rule = f"from 0 to {len(entries) - 1}" if entries else "and the list is empty"
    raise ConfigurationError(
        f"{where}: {'.'.join(path)} is a list of {len(entries)}, so {name!r} must be the number of an entry, "
        f"{rule}"
    )
