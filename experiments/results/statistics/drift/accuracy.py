"""Test-then-train accuracy of a run whose trace records its concepts, with and without drift cells.

A cell is one client at one data step: the client is scored on samples of the next step, which its model has
not seen. It is a drift cell if those samples belong to another concept than the ones the client trained on,
so that no method can be prepared (the evaluation of FedDrift, section 5). Knows nothing of arms or seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from emulator.storage.runlog import RoundRecord


def last_evaluations(records: Sequence[RoundRecord]) -> list[RoundRecord]:
    """The record of the last evaluated round of each data step, in the order of steps."""
    last = {record.step: record for record in records if record.accuracy is not None}
    return [last[step] for step in sorted(last)]


def accuracy_omitting_drift(records: Sequence[RoundRecord]) -> float | None:
    """The mean accuracy over all cells that are not drift cells.

    None if there are no such cells, or if the concepts are unknown.
    """
    weighted, cells = [], 0
    for record in last_evaluations(records):
        if record.drift_cells is None or record.scored_clients is None:
            return None
        if record.accuracy_omitting_drift is not None:
            count = record.scored_clients - record.drift_cells
            weighted.append(count * record.accuracy_omitting_drift)
            cells += count
    return math.fsum(weighted) / cells if cells else None


def accuracy_including_drift(records: Sequence[RoundRecord]) -> float | None:
    """The mean accuracy over all cells; None if the concepts are unknown, and with them the drift cells."""
    weighted, cells = [], 0
    for record in last_evaluations(records):
        if record.drift_cells is None or record.scored_clients is None or record.accuracy is None:
            return None
        weighted.append(record.scored_clients * record.accuracy)
        cells += record.scored_clients
    return math.fsum(weighted) / cells if cells else None


def has_drift_cells(records: Sequence[RoundRecord]) -> bool:
    """Whether a client was ever tested on another concept than that of its newest samples."""
    return any(record.drift_cells for record in records)


def drift_accuracies(records: Sequence[RoundRecord]) -> dict[str, float | None]:
    """Both figures, by their names in a summary; None without drift cells, which both are about."""
    if not has_drift_cells(records):
        return {"accuracy_omitting_drift": None, "accuracy_including_drift": None}
    return {
        "accuracy_omitting_drift": accuracy_omitting_drift(records),
        "accuracy_including_drift": accuracy_including_drift(records),
    }
