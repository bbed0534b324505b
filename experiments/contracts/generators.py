"""The global random generators of Python, numpy and torch, which no part draws from or seeds."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec

import numpy as np

from experiments.contracts.sameness import same

Asked = ParamSpec("Asked")


class _Generator(NamedTuple):
    draw: Callable[[], object]
    state: Callable[[], object]
    restore: Callable[..., object]


def and_no_global_generator(check: Callable[Asked, None]) -> Callable[Asked, None]:
    """`check`, which then fails too when a global generator was drawn from, or seeded, meanwhile."""

    @wraps(check)
    def checked(*args: Asked.args, **kwargs: Asked.kwargs) -> None:
        # Twice at most: a library that is imported on the way may draw, which it does once.
        for _ in range(2):
            moved = _moved_by(lambda: check(*args, **kwargs))
            if not moved:
                return
        raise AssertionError(
            f"the global generator of {', '.join(moved)} was drawn from or seeded; parts draw from the keyed "
            f"streams that they are handed"
        )

    return checked


def _moved_by(play: Callable[[], None]) -> list[str]:
    """The global generators that `play` drew from or seeded; all others are left as they were."""
    generators = _generators()
    first = {name: generator.state() for name, generator in generators.items()}
    for generator in generators.values():
        generator.draw()  # else one that is seeded as it was before would not have moved
    before = {name: generator.state() for name, generator in generators.items()}
    play()
    moved = [name for name in generators if not same(generators[name].state(), before[name])]
    for name in generators.keys() - set(moved):
        generators[name].restore(first[name])
    return moved


def _generators() -> dict[str, _Generator]:
    """By name; torch's where torch is imported already: without it nobody draws."""
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
