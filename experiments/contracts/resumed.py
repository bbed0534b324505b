"""Runs every call of a part on a fresh instance, restored from the state of the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from coordinator.federation.stored_parts import StoredParts
from emulator.storage.state_tree import from_bytes, to_bytes
from emulator.storage.stateful import Stateful

Part = TypeVar("Part", bound=Stateful)


def resumed(make: Callable[[], Part]) -> Part:
    """A stand-in for a part of `make`: every call goes to a fresh part, restored from the last state.

    It must return what a part that is never stored returns.
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
