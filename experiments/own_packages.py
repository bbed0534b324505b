"""Where our packages come from: their names are common, so foreign ones may come first on the path.

Imports only the standard library: `driftscale` loads this file by its path, before any of our packages.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

OUR_PACKAGES = (
    "emulator",
    "device_profiles",
    "traces",
    "coordinator",
    "executor",
    "experiments",
    "driftscale",
)

REINSTALL = "; to start beside it, pip install --config-settings editable_mode=compat -e "
"""The remedy for a mere folder, which a package on the path precedes, but not one of an editable finder."""


def foreign_package(ours: Path | None = None) -> str | None:
    """The error message if one of our packages would be imported from a foreign folder; None if all are ours.

    Args:
        ours: The folder that holds our packages; None for that of `experiments`.
    """
    ours = ours or _root(_spec("experiments"))
    for name in OUR_PACKAGES:
        spec = _spec(name)
        root = _root(spec)
        if root == ours:
            continue
        if spec is not None and getattr(sys.modules.get(name), "__spec__", None) is spec:
            return (
                f"the package {name!r} was imported from {root} before, but driftscale is in {ours}; give "
                f"the foreign package another name, then start Python again"
            )
        return (
            f"the package {name!r} comes from {root or 'nowhere'}, but driftscale is in {ours}; another "
            f"package of that name comes first on the path (started beside a folder called {name}?)"
            f"{f'{REINSTALL}{ours}' if spec is not None and spec.origin is None else ''}"
        )
    return None


def _spec(package: str) -> ModuleSpec | None:
    """The specification of `package`, the one that it was imported by if it was; None if it has none."""
    try:
        return importlib.util.find_spec(package)
    except ValueError:  # it was imported, without a specification
        return None


def _root(spec: ModuleSpec | None) -> Path | None:
    """The folder that holds a package, which may be a namespace package; None if it is not importable."""
    if spec is None:
        return None
    if spec.submodule_search_locations is None:  # a module, not a package
        return Path(spec.origin).resolve().parent if spec.origin else None
    folders = [str(Path(spec.origin).parent)] if spec.origin else [*spec.submodule_search_locations]
    return Path(folders[0]).resolve().parent if folders else None
