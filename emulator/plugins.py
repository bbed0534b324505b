"""How parts are named, described and found: one mechanism for every kind of plug-in.

A part is a class with a frozen `Parameters` model. Our own are in a literal mapping in their package's
`__init__`; third parties register theirs under the entry-point group of the kind. In a configuration a part
is its name, or a table with its name under `kind` and its parameters beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from emulator.errors import ConfigurationError, UnknownNameError

T = TypeVar("T")


class Parameters(BaseModel):
    """Base of every part's parameters: frozen, typed, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class NoParameters(Parameters):
    """Parameters of a part that has none."""


class Registry(Generic[T]):
    """The parts of one kind, ours and third parties', by name."""

    def __init__(self, kind: str, group: str, ours: Mapping[str, T]) -> None:
        self.kind = kind
        self.group = group
        self._ours = dict(ours)

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted({*self._ours, *self._entries()})

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return ((name, self.find(name)) for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._entries()

    def find(self, name: str, where: str = "") -> T:
        """What is registered as `name`; UnknownNameError lists the choices."""
        if name in self._ours:
            return self._ours[name]
        entries = self._entries()
        if name not in entries:
            raise UnknownNameError(self.kind, name, self.names(), where)
        return cast(T, entries[name].load())

    def _entries(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for entry in entry_points(group=self.group):
            if entry.name in self._ours or entry.name in found:
                raise ConfigurationError(
                    f"entry point {entry.value!r} of group {self.group!r} registers the {self.kind} "
                    f"{entry.name!r}, which is taken; rename one of them"
                )
            found[entry.name] = entry
        return found
