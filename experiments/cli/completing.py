"""Completion of values on the command line: what a shell asks for while a command is typed.

A completion fails silently: whatever goes wrong, there is nothing to offer, and nothing is printed into the
line that is being typed. Torch is not imported, and no module of a part of one's own: only the command that
is typed may do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.paths import path_for
from experiments.shipped import SUFFIX, shipped_files, shipped_folders, take

if TYPE_CHECKING:
    from pydantic import BaseModel


MOST_ENTRIES = 2000
"""Most entries of a folder that are looked at."""

RUNS = "runs/"
"""The folder of run directories that are made without --out."""

ANY: Mapping[str, Any] = {
    "name": "any",
    "trace": "digits",
    "round": {"rounds": 1, "participants": 1},
    "arm": [{"name": "any"}],
}
"""A configuration with nothing but what every one must have."""

Complete = Callable[..., list[str]]


def silently(complete: Complete) -> Complete:
    """`complete`, which offers nothing if it fails."""

    @wraps(complete)
    def call(*args: Any, **kwargs: Any) -> list[str]:
        try:
            return complete(*args, **kwargs)
        except Exception:  # anything printed here would stand in the line that is being typed
            return []

    return call


@silently
def configurations(incomplete: str) -> list[str]:
    """Names of shipped configurations and of folders of them, .toml files, and folders on the way to some."""
    return [
        *_that_begin([*shipped_files(), *shipped_folders()], incomplete),
        *_entries(incomplete, lambda entry: entry.is_dir() or entry.suffix == SUFFIX),
    ]


TraceOrConfiguration = Annotated[
    Path,
    typer.Argument(
        help="A trace folder; or a configuration (.toml), or the name of a shipped one.",
        metavar="DIR|CONFIG",
        parser=path_for("DIR|CONFIG"),
        autocompletion=configurations,
    ),
]
"""The argument of commands that look at a trace."""


@silently
def shipped_names(incomplete: str) -> list[str]:
    """Names of shipped configurations."""
    return _that_begin(shipped_files(), incomplete)


@silently
def shipped_names_and_folders(incomplete: str) -> list[str]:
    """Names of shipped configurations, and of folders of them."""
    return _that_begin([*shipped_files(), *shipped_folders()], incomplete)


@silently
def run_directories(incomplete: str) -> list[str]:
    """Run directories, and folders of them or on the way to them."""
    from experiments.results.reading.recorded import EXPERIMENT_FILE

    def has_runs(folder: Path) -> bool:
        inside = islice(folder.iterdir(), MOST_ENTRIES) if folder.is_dir() else ()
        return any((item / EXPERIMENT_FILE).is_file() for item in [folder, *inside])

    below_runs = _entries(RUNS, has_runs) if RUNS.startswith(incomplete) and Path(RUNS).is_dir() else []
    return [*dict.fromkeys([*_entries(incomplete, has_runs), *below_runs])]


@silently
def arms(ctx: typer.Context, incomplete: str) -> list[str]:
    """Arms of the configuration, after those that were given before a comma."""
    given, comma, last = incomplete.rpartition(",")
    names = [arm["name"] for arm in _table(ctx)["arm"]]
    left = [name for name in names if name not in given.split(",")]
    return [f"{given}{comma}{name}" for name in _that_begin(left, last)]


@silently
def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Dotted keys of the configuration, those of its arms and of their parts too, for --set."""
    return _that_begin(_keys_of(ctx), incomplete)


@silently
def swept_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Like `keys`, without those that cannot be swept."""
    from experiments.running.sweep import UNSWEPT

    def is_name(key: str) -> bool:
        return key.startswith("arm.") and key.endswith(".name")

    return _that_begin((key for key in _keys_of(ctx) if key not in UNSWEPT and not is_name(key)), incomplete)


@silently
def kinds_of_parts(incomplete: str) -> list[str]:
    """Kinds of parts, such as clusterer."""
    from experiments.part_kinds import part_kinds

    return _that_begin(part_kinds(), incomplete)


@silently
def names_of_parts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the parts of the kind that was given before."""
    from experiments.part_kinds import part_kinds

    return _that_begin(part_kinds()[ctx.params["kind"]].registry.names(), incomplete)


def _that_begin(texts: Iterable[str], incomplete: str) -> list[str]:
    return [text for text in texts if text.startswith(incomplete)]


def _entries(incomplete: str, is_wanted: Callable[[Path], bool]) -> list[str]:
    """The wanted entries of a folder whose paths begin with `incomplete`, sorted; folders end in a slash."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(head + slash).expanduser()
    entries = islice(folder.iterdir(), MOST_ENTRIES) if folder.is_dir() else ()
    return sorted(
        f"{head}{slash}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(tail) and (tail or not entry.name.startswith(".")) and is_wanted(entry)
    )


def _table(ctx: typer.Context) -> dict[str, Any]:
    """The content of the configuration that was given before, as far as it can be read."""
    from emulator.storage.bounded import read_toml
    from experiments.extending import extended
    from experiments.locating import locator

    given = ctx.params.get("config") or ctx.params.get("path")
    if given is None and ctx.args:  # where the option that is completed has no value yet
        given = Path(ctx.args[0])
    if given is None or not (path := take(given).path).is_file():
        return {}
    return extended(read_toml(path), path, locator(None, path), read_toml)


def _keys_of(ctx: typer.Context) -> list[str]:
    """The keys of the configuration; those of every configuration if none was given, or it is not valid."""
    from emulator.errors import EmulatorError
    from experiments.reading import SWEEP

    table = _without_own_parts(_table(ctx))
    table.pop(SWEEP, None)
    try:
        return dotted_keys(table)
    except EmulatorError:
        return dotted_keys({})


def dotted_keys(table: Mapping[str, Any]) -> list[str]:
    """The dotted keys that --set can give a value of its own in a configuration with this content.

    An arm is addressed by its name. The settings of a part are left out where the table does not name the
    part, since they cannot be set alone; so are the entries of a list that it does not have. What every
    configuration must have may be missing.

    Raises:
        ConfigurationError: The content breaks a rule.
    """
    from emulator.plugins import FIRST_LOOK
    from experiments.config import parse_experiment
    from experiments.extending import value_at

    experiment = parse_experiment({**ANY, **table}, "", FIRST_LOOK)
    keys = _dotted(experiment, "", lambda key: value_at(table, key.split(".")) is not None)
    return [key for key in keys if "arm" in table or not key.startswith("arm.")]


def _without_own_parts(value: Any) -> Any:
    """A table without parts of one's own ("my_module:MyPart"), which would be imported."""
    from emulator.own_parts import is_own

    def is_own_part(item: Any) -> bool:
        named = [item.get("kind"), item.get("source")] if isinstance(item, Mapping) else [item]
        return any(isinstance(name, str) and is_own(name) for name in named)

    if isinstance(value, Mapping):
        return {key: _without_own_parts(item) for key, item in value.items() if not is_own_part(item)}
    if isinstance(value, list):
        return [_without_own_parts(item) for item in value if not is_own_part(item)]
    return value


def _dotted(settings: BaseModel, path: str, is_given: Callable[[str], bool]) -> Iterator[str]:
    from experiments.config import Arm
    from experiments.extending import ARMS, EXTENDS

    for name, field in type(settings).model_fields.items():
        if name in (EXTENDS, ARMS):  # which files alone can have
            continue
        key, value = f"{path}{field.alias or name}", getattr(settings, name)
        if isinstance(value, Sequence) and value and all(isinstance(item, Arm) for item in value):
            for arm in value:
                yield from _dotted(arm, f"{key}.{arm.name}.", is_given)
        else:
            yield from _below(key, value, is_given)


def _below(key: str, value: Any, is_given: Callable[[str], bool]) -> Iterator[str]:
    """The key of a value that can be set as a whole, and the keys of the tables in it."""
    from pydantic import BaseModel

    from emulator.plugins import Chosen
    from emulator.storage.table_paths import TablePath

    if isinstance(value, Chosen):
        yield from (key, f"{key}.{'source' if key == 'trace' else 'kind'}")
        if is_given(key):
            yield from _dotted(value.settings, f"{key}.", is_given)
    elif isinstance(value, BaseModel) and not isinstance(value, TablePath):
        yield from _dotted(value, f"{key}.", is_given)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _below(f"{key}.{name}", item, is_given)
    else:
        yield key
        for number, item in enumerate(value if isinstance(value, list | tuple) else ()):
            if isinstance(item, Chosen | BaseModel) and is_given(f"{key}.{number}"):
                yield from _below(f"{key}.{number}", item, is_given)
