"""Base of objects whose state is stored in a checkpoint and restored from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from emulator.errors import RunError
from emulator.storage.state_tree import Tree


class Stateful:
    """Base of objects that keep state between the steps of a run.

    `state_fields` names the attributes that make up the state. `__init__` creates all of them, and they hold
    trees (see `emulator.storage.state_tree`), or objects of this kind, of one class each, whose state is
    part of this one's, unless `state` and `restore` are overridden. No other attribute may change
    after `__init__`: a run in which one does is not stored, but FAILED.
    """

    state_fields: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes that are not part of the state, by name; without cached properties."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in self.state_fields
            and not isinstance(getattr(type(self), name, None), cached_property)
        }

    def state(self) -> dict[str, Tree]:
        """Everything that the object's further behaviour depends on.

        Returns:
            The values of `state_fields` by name; they are not copied.

        Raises:
            RunError: the object lacks one of its `state_fields`.
        """
        for name in self.state_fields:
            if not hasattr(self, name):
                raise RunError(f"{type(self).__name__} has no attribute {name!r}, one of its state_fields")
        values = {name: getattr(self, name) for name in self.state_fields}
        return {
            name: value.state() if isinstance(value, Stateful) else value for name, value in values.items()
        }

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Resume from the state of an object of the same class and settings.

        Args:
            state: what `state` returned.

        Raises:
            ValueError: it does not have exactly the `state_fields`.
        """
        if sorted(state) != sorted(self.state_fields):
            raise ValueError(
                f"state of {type(self).__name__}: {sorted(state)}, not {sorted(self.state_fields)}"
            )
        for name, value in state.items():
            held = getattr(self, name, None)
            if isinstance(held, Stateful):
                held.restore(value)
            else:
                setattr(self, name, value)
