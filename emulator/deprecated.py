"""Old names that plug-ins may still use until version 0.2.0, each with a DeprecationWarning.

All of them are renames: an old name gives the same object. This module, and every use of it, goes with 0.2.0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from emulator.arrays import Floats

C = TypeVar("C", bound=type)

REMOVED_IN = "0.2.0"


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn the caller's caller that `old` is now called `new`."""
    warnings.warn(f"{old} is now {new}; the old name goes with {REMOVED_IN}", DeprecationWarning, stacklevel)


def renamed_names(module: str, new_of_old: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names were others before.

    Args:
        module: the name of the module.
        new_of_old: the present name of each old one.
    """

    def look_up(name: str) -> Any:
        import importlib

        if name not in new_of_old:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", new_of_old[name])
        return getattr(importlib.import_module(module), new_of_old[name])

    return look_up


def renamed_arguments(**new_of_old: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a function, some of whose keyword arguments had other names before."""
    from functools import wraps

    def decorated(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in new_of_old.items():
                if old in kwargs:
                    warn_renamed(f"{function.__qualname__}({old}=...)", f"{new}=...")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorated


def renamed_fields(**new_of_old: str) -> Callable[[C], C]:
    """Decorates a class, some of whose attributes, and arguments when it is made, had other names before."""

    def decorated(cls: C) -> C:
        cls.__init__ = renamed_arguments(**new_of_old)(cls.__init__)  # type: ignore[misc]
        for old, new in new_of_old.items():
            setattr(cls, old, _renamed_attribute(cls.__name__, old, new))
        return cls

    return decorated


def _renamed_attribute(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn_renamed(f"{owner}.{old}", new)
        return getattr(self, new)

    return property(read)


def adopt_old_members(cls: type, new_of_old: Mapping[str, str]) -> None:
    """Give what `cls` itself defines under an old name its new name, unless it defines that too."""
    for old, new in new_of_old.items():
        if old in vars(cls) and new not in vars(cls):
            warn_renamed(f"{cls.__name__}.{old}", new, stacklevel=4)
            setattr(cls, new, vars(cls)[old])
            if not isinstance(vars(cls)[old], type):  # a method: its old name may be an attribute's now
                delattr(cls, old)


class OldUpdates:
    """What `emulator.messages.Updates` had under other names."""

    def mix(self, weights: Floats) -> Floats:
        """As `Updates.weighted_sum`."""
        warn_renamed("Updates.mix", "Updates.weighted_sum")
        summed: Floats = self.weighted_sum(weights)  # type: ignore[attr-defined]
        return summed
