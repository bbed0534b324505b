"""Guards the global random generators of Python, numpy and torch: parts must not draw from or seed them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec

import numpy as np

from experiments.sameness import same

Arguments = ParamSpec("Arguments")


class _Generator(NamedTuple):
    draw: Callable[[], object]
    state: Callable[[], object]
    restore: Callable[..., object]


def and_no_global_generator(check: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Decorates a check: it also fails if a global generator is drawn from or seeded during the check.

    If that happens, the check is run again, and fails only if it happens again.
    """

    @wraps(check)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        # Up to twice: a library may draw once, when the first run of the check imports it.
        for _ in range(2):
            moved = _moved_by(lambda: check(*args, **kwargs))
            if not moved:
                return
        raise AssertionError(
            f"the global generator of {', '.join(moved)} was drawn from or seeded; parts must draw from the "
            f"keyed streams that they receive"
        )

    return checked


def _moved_by(play: Callable[[], None]) -> list[str]:
    """The global generators that `play` drew from or seeded; the state of all others is restored."""
    generators = _generators()
    first = {name: generator.state() for name, generator in generators.items()}
    for generator in generators.values():
        generator.draw()  # otherwise one that is seeded again with its last seed would not have moved
    before = {name: generator.state() for name, generator in generators.items()}
    play()
    moved = [name for name in generators if not same(generators[name].state(), before[name])]
    for name in generators.keys() - set(moved):
        generators[name].restore(first[name])
    return moved


def _generators() -> dict[str, _Generator]:
    """The global generators by name; torch's only if torch is imported, since otherwise nothing uses it."""
    generators = {
        "random": _Generator(random.random, random.getstate, random.setstate),
        "numpy": _Generator(np.random.random, np.random.get_state, np.random.set_state),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        rng = torch.default_generator
        generators["torch"] = _Generator(
            lambda: torch.rand(1),
            lambda: rng.get_state().numpy(),
            lambda state: rng.set_state(torch.tensor(state)),
        )
    return generators
