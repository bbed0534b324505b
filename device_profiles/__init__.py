"""Device profiles: the columns of a fleet, the readers of profiles, and the catalogue.

A profile is one of: a name from the catalogue; a name registered by a third party under the entry-point group
`driftscale.device_profiles` (a DeviceProfile, or a callable that returns one); the same as
"my_module:MY_PROFILE" (see `emulator.own_parts`); a path to a table or a mixture
(`.toml`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from device_profiles.fleet import DeviceProfile, Fleet
from emulator.errors import ConfigurationError, InputError, UnknownNameError
from emulator.own_parts import is_ours, is_own, refuse_not_defined
from emulator.plugins import Registry
from emulator.storage.table_paths import TABLE_SUFFIXES, Given, format_of

if TYPE_CHECKING:
    from device_profiles.mixture import MixtureProfile
    from device_profiles.table import TableProfile

__all__ = ["PROFILES", "DeviceProfile", "Fleet", "load_profile", "read_profile", "refuse_unknown_profile"]

CATALOGUE = Path(__file__).with_name("catalogue")
SUFFIXES = (*TABLE_SUFFIXES, ".toml")


def load_profile(name_or_path: str | Path, where: str = "") -> DeviceProfile:
    """Load a profile by name or from a file.

    Args:
        name_or_path: a registered name, or the path of a table or a `.toml`.
        where: the configuration's file and key, which begin the error for an unknown name.

    Returns:
        The profile.

    Raises:
        UnknownNameError: the name is not registered; lists the names.
        ConfigurationError: a third party's profile cannot be loaded, or has a name that is taken.
        DataFileError: the file breaks a rule.
        InputError: the registered object is not a DeviceProfile.

    >>> import numpy as np
    >>> fleet = load_profile("uniform").draw(2, np.random.default_rng(0))
    >>> fleet.seconds_per_sample  # 41 ms for the forward pass, and twice that for the backward pass
    array([0.123, 0.123])
    """
    name = str(name_or_path)
    if name.endswith(SUFFIXES):
        return read_profile(Path(name))
    refuse_unknown_profile(name, where)
    registered = PROFILES.find(name, where)
    if is_own(name) and _is_called(registered):
        refuse_not_defined(registered, name, f"{where}: {PROFILES.kind}" if where else PROFILES.kind)
    profile = _made(registered, name)
    if not isinstance(profile, DeviceProfile):
        of_group = "" if is_own(name) else f" of entry-point group {PROFILES.group!r}"
        raise InputError(
            f"device profile {name!r}{of_group} is a {type(profile).__name__}; "
            "a DeviceProfile has name, reference_model, reference_flops, source and draw"
        )
    if is_ours(type(profile)):
        return profile
    from emulator.own.guards import guarded  # which own code alone needs

    return guarded(PROFILES.kind, profile, DeviceProfile)


def refuse_unknown_profile(name_or_path: str, where: str = "") -> None:
    """Reject a text that is neither a registered name nor a path to a profile.

    Args:
        name_or_path: the name or path.
        where: the configuration's file and key, which begin the error.

    Raises:
        UnknownNameError: lists the names.
        OwnPartError: it has the form "my_module:MY_PROFILE", and there is no such module.
    """
    if name_or_path.endswith(SUFFIXES):
        return
    if is_own(name_or_path):
        PROFILES.refuse_unknown(name_or_path, where)
    if name_or_path not in PROFILES:
        what = "device profile (neither a name nor a path ending in .csv, .parquet, .toml or so)"
        raise UnknownNameError(what, name_or_path, PROFILES.names(), where)


def read_profile(path: Path, given: Given = Given()) -> TableProfile | MixtureProfile:  # noqa: B008  (frozen)
    """Read a profile from a file.

    Args:
        path: a table, or a `.toml` file.
        given: what is given of how a CSV is written.

    Returns:
        The profile of a table, or of a mixture.

    Raises:
        DataFileError: the file breaks a rule, or has another suffix.
    """
    if not path.name.endswith(SUFFIXES):
        format_of(path, ", or a mixture, a .toml")
    if path.suffix == ".toml":
        from device_profiles.mixture import read_mixture

        given.refuse_of(path, "a mixture")
        return read_mixture(path)
    from device_profiles.table import read_device_table

    return read_device_table(path, given)


# Values are loaders, so that a reader is imported only when it is needed.
PROFILES: Registry[DeviceProfile | Callable[[], DeviceProfile]] = Registry(
    "device profile",
    "driftscale.device_profiles",
    {
        name: partial(read_profile, CATALOGUE / f"{name}.toml")
        for name in ("datacenter", "iot", "smartphones", "uniform")
    },
)


def _made(registered: object, name: str) -> object:
    """The registered profile, or the result of the registered callable.

    A class that is registered is called: it has the attributes of a profile too. Raises ConfigurationError if
    what is called needs arguments.
    """
    if not _is_called(registered):
        return registered
    try:
        inspect.signature(registered).bind()
    except TypeError as error:
        raise ConfigurationError(
            f"device profile {name!r}: is called without arguments, and needs some ({error}); name a profile "
            f"that is made already, or a function without arguments that returns one"
        ) from error
    if is_own(name):
        from emulator.own.guards import build

        return build(PROFILES.kind, registered)
    return registered()


def _is_called(registered: object) -> TypeGuard[Callable[[], object]]:
    is_profile = isinstance(registered, DeviceProfile) and not isinstance(registered, type)
    return callable(registered) and not is_profile
