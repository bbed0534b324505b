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
from emulator.seeding import SCHEME
from emulator.storage.checkpoints import write_durably
from experiments.build import World
from experiments.results.json_files import MOST_COMMANDS, Command, Identity, JsonTable, Manifest
from experiments.results.run_directory import RunDirectory

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


def write_manifest(directory: RunDirectory, drawn: Drawn, command: Command | None = None) -> None:
    """Record a world in `manifest.json`. Call it before a run in that world stores anything.

    `command` is the one that is going to play runs in that world; None where driftscale is used from Python.

    Raises ConfigurationError if runs of the seed have begun, and a part of its world (trace, fleet or
    availability) has changed since then.
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
    versions = {"python": platform.python_version(), **{name: installed(name) for name in PACKAGES}}
    base = recorded if begun else Manifest()
    first, later = base.versions or versions, base.later_versions
    if versions not in (first, *later):
        later = [*later, versions]
    commands = _with(command, base.commands)
    added: dict[str, Any] = {"later_versions": later, "commands": commands}
    manifest = Manifest(
        versions=first,
        **{key: value for key, value in added.items() if value},
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        profile=drawn.profile,
        availability=drawn.availability,
        random_streams=SCHEME,
        sha256={**recorded.sha256, str(drawn.seed): drawn.fingerprint},
        files={**base.files, **drawn.files},
    )
    content = manifest.model_dump(exclude_unset=True)
    write_durably(directory.manifest_path, json.dumps(content, indent=2) + "\n")


def _with(command: Command | None, earlier: Sequence[Command]) -> list[Command]:
    """The recorded commands and this one, unless it is the last of them: the first, and the newest others."""
    commands = [*earlier]
    if command is not None and commands[-1:] != [command]:
        commands.append(command)
    return commands if len(commands) <= MOST_COMMANDS else [commands[0], *commands[1 - MOST_COMMANDS :]]


def recorded_files(directory: RunDirectory) -> dict[str, Identity]:
    """Identities of the data files of existing runs, by path; empty if no run is finished or can be resumed.

    Raises DataFileError if the manifest is damaged.
    """
    manifest = directory.manifest() if directory.resumable_pairs() else None
    return {} if manifest is None else manifest.files


@cache
def installed(package: str) -> str:
    """The version of a package, or `not installed`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
