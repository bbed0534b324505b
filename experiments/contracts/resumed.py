"""Stands in for a part that is stored and restored before every call, as in an interrupted run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from coordinator.federation.stored_parts import StoredParts
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.stateful import Stateful

Part = TypeVar("Part", bound=Stateful)


def resumed(make: Callable[[], Part]) -> Part:
    """A stand-in for a part of `make`: every call goes to a fresh part, restored from the last state.

    A part that stores all of its state returns the same as if it had never been stored. A call raises
    RunError if the state cannot be stored, or an attribute that is not declared as state has changed.
    """
    return cast(Part, _Resumed(make))


class _Resumed:
    def __init__(self, make: Callable[[], Stateful]) -> None:
        self._make = make
        self._stored = to_bytes(make().state())

    def __getattr__(self, name: str) -> Any:
        part = self._make()
        stored = StoredParts({"part": part})
        part.restore(from_bytes(self._stored))
        attribute = getattr(part, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            result = attribute(*args, **kwargs)
            self._stored = to_bytes(stored.state()["part"])
            return result

        return call
