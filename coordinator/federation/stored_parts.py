"""The state of several parts together, by name."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.errors import RunError
from emulator.storage.state_tree import Tree, to_bytes
from emulator.storage.stateful import Stateful


class StoredParts:
    """Takes the state of all of `parts`, and puts it back; to be made when they are new."""

    def __init__(self, parts: Mapping[str, Stateful]) -> None:
        self._parts = parts
        # Of each part, when it was made: what another that is made alike can be given.
        self._remembered = {name: frozenset(part.remembered) for name, part in parts.items()}
        self._facts = {name: _fingerprints(part) for name, part in parts.items()}

    def state(self) -> dict[str, Tree]:
        """RunError names a part with an attribute that it did not have when it was made, which could not be
        put back, or with a public one that has changed since, which would be lost."""
        for name, part in self._parts.items():
            for other in sorted(self._remembered[name].symmetric_difference(part.remembered)):
                raise RunError(
                    f"the {name} cannot be stored: its attribute {other} is not made by __init__, or was "
                    f"deleted"
                )
            facts = _fingerprints(part)
            for other, made in self._facts[name].items():
                if facts.get(other) != made:
                    raise RunError(
                        f"the {name} cannot be stored: its attribute {other} has changed since it was "
                        f"made, and only private attributes are kept; call it _{other}"
                    )
        return {name: part.state() for name, part in self._parts.items()}

    def restore(self, state: Mapping[str, Tree]) -> None:
        for name, part in self._parts.items():
            part.restore(state[name])


def _fingerprints(part: Stateful) -> dict[str, bytes | int]:
    """Of each public attribute what tells a change: its content or, where that has no form, its identity."""
    return {name: _fingerprint(value) for name, value in part.facts.items()}


def _fingerprint(value: object) -> bytes | int:
    try:
        return to_bytes(value)
    except RunError:
        return id(value)
