"""What can be stored in the middle of a run, and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from emulator.storage.state_tree import Tree


class Stateful:
    """Base of what remembers something from one moment of a run to the next.

    Its state is its private attributes, those whose names begin with an underscore, all of which `__init__`
    makes (a run with a part that makes one later is not stored, but FAILED); they hold trees (see
    `emulator.storage.state_tree`). Whoever remembers more, less, or other things
    overrides `remembered`, or `state` and `restore`.
    """

    @property
    def remembered(self) -> Sequence[str]:
        """The attributes that are its state."""
        return [name for name in vars(self) if name.startswith("_")]

    @property
    def facts(self) -> dict[str, Any]:
        """Its public attributes that are no state: they stay as `__init__` made them."""
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and name not in self.remembered
        }

    def state(self) -> dict[str, Tree]:
        """All that what it does from now on depends on."""
        return {name: getattr(self, name) for name in self.remembered}

    def restore(self, state: Mapping[str, Tree]) -> None:
        """Go on from `state`, which another of the same kind and parameters has had; ValueError if it cannot
        be."""
        if sorted(state) != sorted(self.remembered):
            raise ValueError(
                f"state of {type(self).__name__}: {sorted(state)}, not {sorted(self.remembered)}"
            )
        for name, value in state.items():
            setattr(self, name, value)
