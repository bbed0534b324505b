"""Accuracy of a run whose trace knows its concepts: test-then-train, with drift cells and without.

A cell is a client at a data step: it is scored on samples of the next step, which its model has not seen. It
is a drift cell where those are of another concept than what it trained on, so that no method can be prepared
(the evaluation of FedDrift, section 5). Knows nothing of arms or seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from emulator.storage.runlog import RoundRecord


def last_evaluations(records: Sequence[RoundRecord]) -> list[RoundRecord]:
    """The last evaluated round of each data step, in order: the others of a step do not count."""
    last = {record.step: record for record in records if record.accuracy is not None}
    return [last[step] for step in sorted(last)]


def accuracy_omitting_drift(records: Sequence[RoundRecord]) -> float | None:
    """The mean over all cells that are no drift cells; None where there is none, or nobody knows."""
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
    """The mean over all cells; None where the truth is not known, and nothing tells the two figures apart."""
    weighted, cells = [], 0
    for record in last_evaluations(records):
        if record.drift_cells is None or record.scored_clients is None or record.accuracy is None:
            return None
        weighted.append(record.scored_clients * record.accuracy)
        cells += record.scored_clients
    return math.fsum(weighted) / cells if cells else None
