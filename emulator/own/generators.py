"""The global random generators of Python, numpy and torch, which nothing of ours reads or seeds.

Whoever draws from one of them, or seeds it, makes two equal runs differ. States are compared, since a call of
a library leaves no other trace: torch's as it is handed out, numpy's by the memory that it documents
(`BitGenerator.ctypes`), and Python's where its words are found in memory. Copies by their own methods take
most of the time of such a comparison.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import string_at
from typing import Any

import numpy as np

MERSENNE_BYTES = 4 * (624 + 1)
"""The state of a Mersenne Twister in numpy's memory: its words, and the position in them."""


def _address_of_python() -> int | None:
    """Where in memory the words of Python's generator are, behind the position; None if not found."""
    held: Any = random.random.__self__  # type: ignore[attr-defined]  # its stubs have a function
    words = np.array(random.getstate()[1][:-1], dtype=np.uint32).tobytes()
    found = string_at(id(held), type(held).__basicsize__).find(words)
    return None if found < 0 else id(held) + found


PYTHONS = _address_of_python()

_lent: set[str] = set()


@contextmanager
def lending(name: str) -> Iterator[None]:
    """Context in which own code may draw from a global generator, which the caller seeds, and puts back."""
    _lent.add(name)
    try:
        yield
    finally:
        _lent.discard(name)


class Generators:
    """What the global generators do from each `begin` to the `moved` after it."""

    def __init__(self) -> None:
        self._states: dict[str, Any] = {}
        self._normal: Any = (1,)

    def begin(self) -> None:
        """Take note of their states."""
        now = _states()
        # A normal number that is cached is drawn without a trace in the words.
        if self._normal[0] or now["numpy"] != self._states.get("numpy"):
            self._normal = _cached_normal()
        self._states = now

    def moved(self) -> list[str]:
        """The names of those that were drawn from or seeded since; torch's is none until torch is there."""
        before, self._states = self._states, _states()
        moved = [name for name in before if self._states[name] != before[name] and name not in _lent]
        if self._normal[0] and "numpy" not in moved and _cached_normal() != self._normal:
            moved.append("numpy")
        self._normal = (1,) if "numpy" in moved else self._normal
        return moved


def _states() -> dict[str, Any]:
    """The state of each global generator, by name."""
    numpys: Any = getattr(np.random, "get_bit_generator")()  # noqa: B009  (its stubs lack it)
    states: dict[str, Any] = {
        "random": (string_at(PYTHONS - 4, MERSENNE_BYTES), random.random.__self__.gauss_next)  # type: ignore[attr-defined]
        if PYTHONS is not None
        else random.getstate(),
        "numpy": string_at(numpys.ctypes.state_address, MERSENNE_BYTES)
        if isinstance(numpys, np.random.MT19937)
        else repr(numpys.state),
    }
    torchs = getattr(sys.modules.get("torch"), "default_generator", None)
    if torchs is not None:
        states["torch"] = torchs.get_state().numpy().tobytes()
    return states


def _cached_normal() -> tuple[Any, ...]:
    """Whether the generator of numpy has a normal number at hand, and which."""
    state: Any = np.random.get_state()  # noqa: NPY002  (it is looked at, not drawn from)
    return tuple(state[3:])
