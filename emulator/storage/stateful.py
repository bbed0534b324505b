"""What can be stored in the middle of a run, and put back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from emulator.errors import RunError
from emulator.storage.state_tree import Tree


class Stateful:
    """Base of what remembers something from one moment of a run to the next.

    `state_fields` names the attributes that are its state, all of which `__init__` makes; they hold trees
    (see `emulator.storage.state_tree`), or `state` and `restore` are overridden. All other attributes stay as
    `__init__` made them: a run in which one changes is not stored, but FAILED.
    """

    state_fields: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """Its attributes that are no state, but for what is cached."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in self.state_fields
            and not isinstance(getattr(type(self), name, None), cached_property)
        }

    def state(self) -> dict[str, Tree]:
        """All that what it does from now on depends on; RunError if it lacks one of its `state_fields`."""
        for name in self.state_fields:
            if not hasattr(self, name):
                raise RunError(f"{type(self).__name__} has no attribute {name!r}, one of its state_fields")
        return {name: getattr(self, name) for name in self.state_fields}

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from `state`, which another of the same kind and settings has had; ValueError if it has
        other fields."""
        if sorted(state) != sorted(self.state_fields):
            raise ValueError(
                f"state of {type(self).__name__}: {sorted(state)}, not {sorted(self.state_fields)}"
            )
        for name, value in state.items():
            setattr(self, name, value)
