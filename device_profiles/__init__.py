"""How fast a fleet is: the fleet's columns, the readers of profiles and the catalogue.

A profile is a name from the catalogue, a name registered by a third party under the entry-point group
`driftscale.device_profiles` (a DeviceProfile, or something to call for one), or a path to a table (`.csv`,
`.parquet`) or a mixture (`.toml`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from device_profiles.fleet import DeviceProfile, Fleet
from emulator.errors import DataFileError, InputError, UnknownNameError
from emulator.plugins import Registry

if TYPE_CHECKING:
    from device_profiles.mixture import MixtureProfile
    from device_profiles.table import TableProfile

__all__ = ["PROFILES", "DeviceProfile", "Fleet", "load_profile", "read_profile", "refuse_unknown_profile"]

CATALOGUE = Path(__file__).with_name("catalogue")
SUFFIXES = (".csv", ".parquet", ".toml")


def load_profile(name_or_path: str | Path, where: str = "") -> DeviceProfile:
    """The profile of that name, or in that file.

    UnknownNameError lists the names, and begins with `where`, the configuration's file and key; DataFileError
    says what is wrong with a file.
    """
    name = str(name_or_path)
    if name.endswith(SUFFIXES):
        return read_profile(Path(name))
    refuse_unknown_profile(name, where)
    profile = _made(PROFILES.find(name, where))
    if not isinstance(profile, DeviceProfile):
        raise InputError(
            f"device profile {name!r} of entry-point group {PROFILES.group!r} is a {type(profile).__name__}; "
            "a DeviceProfile has name, reference_model, reference_flops, source and draw"
        )
    return profile


def refuse_unknown_profile(name_or_path: str, where: str = "") -> None:
    """UnknownNameError lists the names, for what is neither one of them nor a path to a profile."""
    if not name_or_path.endswith(SUFFIXES) and name_or_path not in PROFILES:
        what = f"device profile (neither a name nor a path ending in {', '.join(SUFFIXES)})"
        raise UnknownNameError(what, name_or_path, PROFILES.names(), where)


def read_profile(path: Path) -> TableProfile | MixtureProfile:
    """The profile in a `.csv`, `.parquet` or `.toml` file; DataFileError when it breaks a rule."""
    if path.suffix not in SUFFIXES:
        raise DataFileError(path, f"a device profile is one of {', '.join(SUFFIXES)}")
    if path.suffix == ".toml":
        from device_profiles.mixture import read_mixture

        return read_mixture(path)
    from device_profiles.table import read_device_table

    return read_device_table(path)


# Loaders, and no reader is imported before it is needed: the names are known without.
PROFILES: Registry[DeviceProfile | Callable[[], DeviceProfile]] = Registry(
    "device profile",
    "driftscale.device_profiles",
    {
        name: partial(read_profile, CATALOGUE / f"{name}.toml")
        for name in ("datacenter", "iot", "smartphones", "uniform")
    },
)


def _made(found: object) -> object:
    """A registered profile, or what a registered callable gives; a class has the attributes too."""
    is_profile = isinstance(found, DeviceProfile) and not isinstance(found, type)
    return found() if callable(found) and not is_profile else found
