"""Guards the global random generators of Python, numpy and torch: parts must not draw from or seed them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from emulator.generators import Generators

Arguments = ParamSpec("Arguments")


def and_no_global_generator(check: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Decorates a check: it also fails if a global generator is drawn from or seeded during the check.

    If modules were imported meanwhile, the check is run again, and fails only if it happens again.
    """

    @wraps(check)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        generators, imported = Generators(), -1
        moved: list[str] = []
        while imported < len(sys.modules):  # a library may draw as it is imported
            imported = len(sys.modules)
            generators.begin()
            check(*args, **kwargs)
            moved = generators.moved()
            if not moved:
                return
        raise AssertionError(
            f"the global generator of {', '.join(moved)} was drawn from or seeded; parts must draw from the "
            f"keyed streams that they receive"
        )

    return checked
