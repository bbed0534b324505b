"""The state of all parts of a run by name; a change of a part that is not in its state is refused."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Set
from typing import cast

import numpy as np

from emulator.errors import RunError
from emulator.storage.state_tree import Tree, to_bytes
from emulator.storage.stateful import Stateful

Fingerprint = Hashable


class StoredParts(Stateful):
    """Stores and restores the state of `parts`; must be built before the parts are used.

    At that time it takes note of all attributes that are not state, to detect later changes, which would be
    lost.
    """

    def __init__(self, parts: Mapping[str, Stateful]) -> None:
        self.parts = parts
        # Fingerprints of the attributes that are not state: a part built again has the same.
        self._stored: set[int] = set()
        self._facts = self._fingerprints()

    def state(self) -> dict[str, Tree]:
        """The state of each part, by name.

        Raises RunError, naming the part and the attribute, if an attribute that is not among the part's
        `state_fields` has changed since the part was built: the change would be lost.
        """
        for name, now in self._fingerprints().items():
            made = self._facts[name]
            changed = sorted(key for key in made.keys() | now.keys() if made.get(key) != now.get(key))
            if changed:
                raise RunError(
                    f"the {name} cannot be stored: its attribute {changed[0]} {_how(made, now, changed[0])}"
                )
        return {name: part.state() for name, part in self.parts.items()}

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`; ValueError if it is not of parts with exactly these names."""
        if sorted(state) != sorted(self.parts):
            raise ValueError(f"state of the parts: {sorted(state)}, not {sorted(self.parts)}")
        for name, part in self.parts.items():
            part.restore(state[name])

    def _fingerprints(self) -> dict[str, dict[str, Fingerprint]]:
        """By part, a fingerprint of each attribute that is not state, to compare with a later one.

        It differs from the earlier one if the attribute's content has changed. Of an object whose content is
        not read (see `_fingerprint_of_object`), only the identity is compared, and of one whose state is part
        of its holder's, the class.
        """
        within = {name: list(_with_all_within(part)) for name, part in self.parts.items()}
        self._stored = {id(held) for of_part in within.values() for _, held in of_part}
        return {
            name: {
                **{where: cast(Hashable, type(held)) for where, held in of_part if where},
                **{
                    f"{where}.{key}".lstrip("."): self._fingerprint(value)
                    for where, held in of_part
                    for key, value in held.facts.items()
                },
            }
            for name, of_part in within.items()
        }

    def _fingerprint(self, value: object) -> Fingerprint:
        """The content of `value` as bytes if it is a state tree, else its `_fingerprint_of_object`."""
        if value is None or type(value) in (bool, int, float, str):
            return repr(value).encode()  # the common case, for which a file need not be written
        try:
            return to_bytes(value)
        except RunError:
            return self._fingerprint_of_object(value)

    def _fingerprint_of_object(self, value: object) -> Fingerprint:
        """The content of a collection, a generator or a part that is not stored itself; else the identity."""
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


def _how(made: Mapping[str, Fingerprint], now: Mapping[str, Fingerprint], key: str) -> str:
    """How an attribute has changed in a way that would be lost."""
    if any(isinstance(found.get(key), type) for found in (made, now)):
        return "is of another class than when it was made; an object in state_fields keeps its class"
    return "has changed since it was made, and is not among its state_fields; name it there"


def _with_all_within(part: Stateful, where: str = "") -> Iterator[tuple[str, Stateful]]:
    """The part, and all objects whose state is part of its own, each with the attribute that holds it."""
    yield where, part
    for name in part.state_fields:
        if isinstance(held := getattr(part, name, None), Stateful):
            yield from _with_all_within(held, f"{where}.{name}".lstrip("."))
