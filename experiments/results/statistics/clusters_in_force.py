"""The cluster of each client at the end of each round, from a log that gives clusters only as they change."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.arrays import Ints
from emulator.storage.runlog import RoundRecord


def clusters_in_force(records: Sequence[RoundRecord]) -> list[Ints | None]:
    """The cluster label of each client at the end of each round, arrays (N,); None before the first known."""
    members: Ints | None = None
    found = []
    for record in records:
        members = members if record.members is None else record.members
        found.append(members)
    return found
