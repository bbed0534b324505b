"""`[atlas]`: how the uses of arms and their rival were chosen, for a column of the atlas."""

from __future__ import annotations

from collections.abc import Collection

from pydantic import Field

from emulator.numbers import Seed
from emulator.plugins import Settings


class AtlasChoice(Settings):
    """What was chosen on seeds of its own, none of which is reported. It decides no run, and is recorded."""

    seeds: tuple[Seed, ...] = Field(min_length=1, description="seeds on which settings and these were chosen")
    rival: str = Field(description="the arm without clusters that every row is compared with")
    best: dict[str, str] = Field(
        default_factory=dict,
        description="by row, the arm that is its best use; those that differ from it in their adaptation "
        "alone are no rows",
        examples=[{"ifca": "ifca+prior"}],
    )

    def problem(self, arms: Collection[str]) -> str:
        """What is wrong with it in a configuration with these arms; empty if nothing is."""
        best = {f"best.{row}": arm for row, arm in self.best.items()}
        for key, arm in {"rival": self.rival, **best}.items():
            if arm not in arms:
                return f"atlas.{key} = {arm!r}: names no arm; choices: {', '.join(arms)}"
        return ""
