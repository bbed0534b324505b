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
        # What another part that is made alike has, and need not be given.
        self._facts = {name: _fingerprints(part) for name, part in parts.items()}

    def state(self) -> dict[str, Tree]:
        """RunError names a part with an attribute that is not among its `state_fields` and has changed since
        the part was made: it would be lost."""
        for name, part in self._parts.items():
            made, now = self._facts[name], _fingerprints(part)
            changed = sorted(other for other in made.keys() | now.keys() if made.get(other) != now.get(other))
            if changed:
                raise RunError(
                    f"the {name} cannot be stored: its attribute {changed[0]} has changed since it was made, "
                    f"and is not among its state_fields; name it there"
                )
        return {name: part.state() for name, part in self._parts.items()}

    def restore(self, state: Mapping[str, Tree]) -> None:
        for name, part in self._parts.items():
            part.restore(state[name])


def _fingerprints(part: Stateful) -> dict[str, bytes | int]:
    """Of each attribute that is no state what tells a change: its content or, if that has no form, its
    identity."""
    return {name: _fingerprint(value) for name, value in part.facts.items()}


def _fingerprint(value: object) -> bytes | int:
    try:
        return to_bytes(value)
    except RunError:
        return id(value)
