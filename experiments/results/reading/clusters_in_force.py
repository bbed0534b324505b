"""The cluster of each client at the end of each round, from a log that gives clusters only as they change."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.arrays import Ints
from emulator.storage.runlog import RoundRecord
from experiments.results.reading.header_truth import clients_of
from experiments.results.reading.run_directory import ReportedRun


def clusters_in_force(records: Sequence[RoundRecord]) -> list[Ints | None]:
    """The cluster label of each client at the end of each round, arrays (N,); None before the first known."""
    members: Ints | None = None
    found = []
    for record in records:
        members = members if record.members is None else record.members
        found.append(members)
    return found


def num_clients(run: ReportedRun) -> int:
    """The number of clients of a run, by its header or its first record's memberships; 0 without both."""
    if (told := clients_of(run.header)) is not None:
        return told
    members = run.records[0].members if run.records else None
    return 0 if members is None else len(members)
