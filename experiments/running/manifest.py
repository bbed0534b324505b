"""`manifest.json`: what the runs of a directory are made with, and of which files and worlds."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from emulator.errors import ConfigurationError, DataFileError
from emulator.seeding import SCHEME
from emulator.storage.checkpoints import write_durably
from experiments.build import World
from experiments.results.run_directory import RunDirectory
from experiments.running.source_files import Identity

PACKAGES = ("driftscale", "torch", "numpy", "scikit-learn", "scipy", "pyarrow", "pydantic")


@dataclass(frozen=True)
class Drawn:
    """What a manifest records of the world of one seed, wherever it was drawn.

    `fingerprint`: see `World.fingerprint`. `files`: those that were read, by their path in the configuration.
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
            files={name: dict(identity) for name, identity in files.items()},
        )


def write_manifest(directory: RunDirectory, drawn: Drawn) -> None:
    """Record a world that was drawn, before a run of it stores anything.

    ConfigurationError if the seed has begun runs and its trace, profile or availability is not what it was
    when they were begun.
    """
    manifest = directory.manifest() or {}
    fingerprints = _table(directory, manifest, "sha256")
    begun = directory.begun_pairs()
    has_begun = drawn.seed in {seed for _, seed in begun} or any(
        directory.seed_lock_path(arm, drawn.seed).exists()  # at work for a command that was killed
        for arm in directory.arms()
    )
    known = _table(directory, fingerprints, str(drawn.seed))
    for what, sha256 in known.items() if has_begun else ():
        if sha256 != drawn.fingerprint.get(what):
            raise ConfigurationError(
                f"{directory.path}: the {what} of seed {drawn.seed} is not the one its runs were begun with: "
                f"files, or driftscale itself, changed since; take another --out, or --fresh to delete them"
            )
    versions = {"python": platform.python_version(), **{name: installed(name) for name in PACKAGES}}
    first = _table(directory, manifest, "versions") if begun else {}
    later = manifest.get("later_versions", []) if begun else []
    if versions not in (first or versions, *later):
        later = [*later, versions]
    manifest = {
        "versions": first or versions,
        **({"later_versions": later} if later else {}),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "profile": drawn.profile,
        "availability": drawn.availability,
        "random_streams": SCHEME,
        "sha256": {**fingerprints, str(drawn.seed): drawn.fingerprint},
        "files": {**(_table(directory, manifest, "files") if begun else {}), **drawn.files},
    }
    write_durably(directory.manifest_path, json.dumps(manifest, indent=2) + "\n")


def recorded_files(directory: RunDirectory) -> dict[str, Identity]:
    """The files behind the runs that are kept; DataFileError where the manifest is damaged."""
    if not directory.begun_pairs():
        return {}
    files = _table(directory, directory.manifest() or {}, "files")
    for name, identity in files.items():
        if not isinstance(identity, dict) or set(identity) != {"size", "sha256"}:
            raise DataFileError(directory.manifest_path, f"files.{name} must have a size and a sha256")
    return files


def _table(directory: RunDirectory, manifest: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The table `key` of a manifest, empty where it is left out."""
    table = manifest.get(key, {})
    if not isinstance(table, dict):
        raise DataFileError(directory.manifest_path, f"{key} must be a table")
    return table


@cache
def installed(package: str) -> str:
    """The version of a package, or that there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
