"""The state of several parts together, by name."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Set

import numpy as np

from emulator.errors import RunError
from emulator.storage.state_tree import Tree, to_bytes
from emulator.storage.stateful import Stateful

Fingerprint = Hashable


class StoredParts:
    """Takes the state of all of `parts`, and puts it back; to be made when they are new."""

    def __init__(self, parts: Mapping[str, Stateful]) -> None:
        self._parts = parts
        # What another part that is made alike has, and need not be given.
        self._stored = frozenset(map(id, parts.values()))
        self._facts = {name: self._fingerprints(part) for name, part in parts.items()}

    def state(self) -> dict[str, Tree]:
        """RunError names a part with an attribute that is not among its `state_fields` and has changed since
        the part was made: it would be lost."""
        for name, part in self._parts.items():
            made, now = self._facts[name], self._fingerprints(part)
            changed = sorted(key for key in made.keys() | now.keys() if made.get(key) != now.get(key))
            if changed:
                raise RunError(
                    f"the {name} cannot be stored: its attribute {changed[0]} has changed since it was made, "
                    f"and is not among its state_fields; name it there"
                )
        return {name: part.state() for name, part in self._parts.items()}

    def restore(self, state: Mapping[str, Tree]) -> None:
        for name, part in self._parts.items():
            part.restore(state[name])

    def _fingerprints(self, part: Stateful) -> dict[str, Fingerprint]:
        """Of each attribute that is no state what tells a change."""
        return {name: self._fingerprint(value) for name, value in part.facts.items()}

    def _fingerprint(self, value: object) -> Fingerprint:
        """Its content or, of what is neither a tree, a collection, a generator nor another part, and of a
        part that is stored itself, its identity."""
        try:
            return to_bytes(value)
        except RunError:
            pass
        match value:
            case Stateful() if id(value) not in self._stored:
                return self._fingerprint(vars(value))
            case np.random.Generator():
                return repr(value.bit_generator.state)
            case Mapping():
                return tuple((self._fingerprint(key), self._fingerprint(item)) for key, item in value.items())
            case Set():
                return frozenset(map(self._fingerprint, value))
            case Collection() if not isinstance(value, np.ndarray):
                return tuple(map(self._fingerprint, value))
        return id(value)
