"""Gives dask a module `random` of its own: what else moves the global one in a worker is own code.

Its threads draw while a run is played, as where they estimate the size of a message.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from functools import cache
from types import BuiltinMethodType, MethodType, ModuleType

PACKAGES = frozenset({"dask", "distributed", "tornado"})

GLOBAL = random.random.__self__  # type: ignore[attr-defined]  # its stubs have a function


def set_dask_apart() -> None:
    """From now on no loaded module of dask draws from Python's global generator."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PACKAGES:
            for attribute, value in list(vars(module).items()):
                if value is random:
                    setattr(module, attribute, _apart())
                elif isinstance(value, BuiltinMethodType | MethodType) and value.__self__ is GLOBAL:
                    setattr(module, attribute, getattr(_apart(), value.__name__))


@cache
def _apart() -> ModuleType:
    """A second module `random`, with a generator of its own."""
    spec = importlib.util.find_spec("random")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
