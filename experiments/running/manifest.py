"""`manifest.json`: versions, commands, machine, data files and worlds behind the runs of a directory."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from emulator.errors import ConfigurationError
from emulator.own_parts import named_modules
from emulator.seeding import SCHEME
from emulator.storage.checkpoints import write_durably
from executor.settings import LAYERS
from experiments.build import World
from experiments.results.reading.json_files import (
    MOST_COMMANDS,
    Command,
    Identity,
    JsonTable,
    Manifest,
    SweepCell,
)
from experiments.results.reading.run_directory import RunDirectory

PACKAGES = ("driftscale", "torch", "numpy", "scikit-learn", "scipy", "pyarrow", "pydantic")


class Drawn(JsonTable):
    """The facts on the world of one seed that a manifest records, whichever process drew it.

    `fingerprint`: see `World.fingerprint`. `profile`: name and source of the device profile. `availability`:
    its facts. `files`: identities of the files that were read, by their path in the configuration.
    """

    seed: int
    fingerprint: dict[str, str]
    profile: dict[str, str]
    availability: dict[str, int]
    files: dict[str, Identity]

    @classmethod
    def of(cls, world: World, files: Mapping[str, Identity]) -> Drawn:
        return cls(
            seed=world.streams.seed,
            fingerprint=world.fingerprint(),
            profile={"name": world.profile.name, "source": world.profile.source},
            availability=dict(world.availability.facts),
            files=dict(files),
        )


def write_manifest(
    directory: RunDirectory,
    drawn: Drawn,
    *,
    command: Command | None = None,
    cell: SweepCell | None = None,
    made_with: Sequence[Mapping[str, str]] = (),
) -> None:
    """Record a world in `manifest.json`. Call it before a run in that world stores anything.

    Args:
        directory: The run directory.
        drawn: The facts on the world.
        command: The one that is going to play runs in that world; None where driftscale is used from Python.
        cell: The cell of a sweep that the runs belong to; None keeps the recorded one, if runs have begun.
        made_with: The versions that the runs in this world were made with; without any, those of now.

    Raises:
        ConfigurationError: Runs of the seed have begun, and a part of its world (trace, fleet or
            availability) has changed since then.
        DataFileError: The manifest is damaged.
    """
    recorded = directory.manifest() or Manifest()
    begun = directory.resumable_pairs()
    has_begun = drawn.seed in {seed for _, seed in begun} or any(
        directory.seed_lock_path(arm, drawn.seed).exists()  # its worker may outlive a command that was killed
        for arm in directory.arms()
    )
    known = recorded.sha256.get(str(drawn.seed), {})
    for what, sha256 in known.items() if has_begun else ():
        if sha256 != drawn.fingerprint.get(what):
            raise ConfigurationError(
                f"{directory.path}: the {what} of seed {drawn.seed} is not the one its runs were begun with: "
                f"files, or driftscale itself, changed since; take another --out, or --fresh to delete them"
            )
    base = recorded if begun else Manifest()
    versions = [dict(used) for used in made_with] or [
        {"python": platform.python_version(), **{name: installed(name) for name in PACKAGES}}
    ]
    first, later = base.versions or versions[0], list(base.later_versions)
    later += [used for used in versions if used not in (first, *later)]
    optional: dict[str, Any] = {
        "later_versions": later,
        "commands": _with(command, base.commands),
        "sweep": cell or base.sweep,
    }
    manifest = Manifest(
        versions=first,
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        profile=drawn.profile,
        availability=drawn.availability,
        random_streams=SCHEME,
        random_layers=LAYERS,
        sha256={**recorded.sha256, str(drawn.seed): drawn.fingerprint},
        files={**base.files, **drawn.files},
        **{key: value for key, value in optional.items() if value},
    )
    _write(directory, manifest)


def _with(command: Command | None, earlier: Sequence[Command]) -> list[Command]:
    """The recorded commands and this one, unless it is the last of them: the first, and the newest others."""
    commands = [*earlier]
    if command is not None and commands[-1:] != [command]:
        commands.append(command)
    return commands if len(commands) <= MOST_COMMANDS else [commands[0], *commands[1 - MOST_COMMANDS :]]


def adopt_world(
    directory: RunDirectory,
    source: RunDirectory,
    seed: int,
    command: Command | None = None,
    cell: SweepCell | None = None,
) -> None:
    """Record the world of `seed` as the run directory `source` has it, before runs are copied from there.

    Nothing is recorded if `source` has no facts on that world, or they are recorded already.

    Raises:
        ConfigurationError: Runs have begun, those of the seed in another world, or any with other files.
        DataFileError: A manifest is damaged.
    """
    theirs, ours = source.manifest(), directory.manifest()
    if theirs is None or str(seed) not in theirs.sha256:
        return
    made_with = [versions for versions in (theirs.versions, *theirs.later_versions) if versions]
    if (
        ours is not None
        and ours.sha256.get(str(seed)) == theirs.sha256[str(seed)]
        and theirs.files.items() <= ours.files.items()
        and all(versions in (ours.versions, *ours.later_versions) for versions in made_with)
        and cell in (None, ours.sweep)
        and directory.resumable_pairs()
    ):
        return
    begun_with = ours.files if ours is not None and directory.resumable_pairs() else {}
    for path, identity in theirs.files.items():
        if begun_with.get(path, identity) != identity:
            raise ConfigurationError(
                f"{path} was another file when the runs in {source.path} were made, so that they cannot be "
                f"copied beside those in {directory.path}; --fresh plays all of them again"
            )
    drawn = Drawn(
        seed=seed,
        fingerprint=theirs.sha256[str(seed)],
        profile=theirs.profile,
        availability=theirs.availability,
        files=theirs.files,
    )
    write_manifest(directory, drawn, command=command, cell=cell, made_with=made_with)


def _write(directory: RunDirectory, manifest: Manifest) -> None:
    content = manifest.model_dump(exclude_unset=True)
    write_durably(directory.manifest_path, json.dumps(content, indent=2) + "\n")


def recorded_files(directory: RunDirectory) -> dict[str, Identity]:
    """Identities of the data files of existing runs, by path; empty if no run is finished or can be resumed.

    Without those of modules that none of these runs uses: what has failed binds no mended code. Raises
    DataFileError if the manifest is damaged.
    """
    begun = directory.begun_arms()
    manifest = directory.manifest() if begun else None
    if manifest is None:
        return {}
    table = directory.experiment()
    arms = table.pop("arm")
    bound = named_modules([table, *(arm for arm in arms if arm["name"] in begun)])
    free = named_modules(arms) - bound
    names = (
        tuple(f"code:{module}:" for module in free) if bound else ("module:", *(f"code:{m}:" for m in free))
    )
    return {name: file for name, file in manifest.files.items() if not (free and name.startswith(names))}


@cache
def installed(package: str) -> str:
    """The version of a package, or `not installed`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
