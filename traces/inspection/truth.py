"""What is known of a trace besides its samples: its concepts, and who begins to receive other data, when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from emulator.arrays import Ints
from traces.arrivals import SPLITS
from traces.files import TraceFolder
from traces.files.windows import Windows
from traces.onsets import Onsets, is_mass_event, of_pairs

if TYPE_CHECKING:
    from traces.trace import Trace


@dataclass(frozen=True)
class MassEvent:
    """A data step at which at least half of all clients have an onset."""

    step: int
    clients: int  # that have one
    share: float  # of all clients


@dataclass(frozen=True)
class Truth:
    """What is known of a trace; None where it is not.

    Attributes:
        concepts: The number of its concepts.
        onsets: How many onsets there are, each a client and a data step at which it begins to receive data of
            another distribution.
        clients_with_onset: The number of clients that have one.
        mass_events: Those that at least half of the clients share, by data step.
    """

    concepts: int | None = None
    onsets: int | None = None
    clients_with_onset: int | None = None
    mass_events: tuple[MassEvent, ...] | None = None


def trace_truth(trace: Trace) -> Truth:
    """What is known of a trace; concepts are those of training and of tests."""
    concepts: set[int] | None = None
    if trace.concepts is not None:
        tables = [trace.concepts, *([] if trace.test_concepts is None else [trace.test_concepts])]
        # NOTE: row by row, so that a table of a million clients is not sorted as a whole.
        concepts = {concept for table in tables for row in table for concept in np.unique(row).tolist()}
    return _truth(None if concepts is None else len(concepts), trace.onsets, trace.num_clients)


def folder_truth(folder: TraceFolder, windows: Windows) -> Truth:
    """What is known of a trace folder: all of its column `concept`, or nothing without one.

    A client has the concept of its last training row in a window, and an onset where that differs from the
    one before, however many windows without rows are between them. Without a column `split` all rows train.

    Args:
        folder: The trace folder.
        windows: The windows of its rows; those that are not kept are left out.

    Returns:
        The truth, of which the steps are windows.
    """
    rows = folder.rows
    if rows.concept is None:
        return Truth()
    used = windows.kept.copy()
    if rows.split is not None:
        used &= rows.split == SPLITS.index("train")
    if rows.count is not None:
        used &= rows.count > 0
    chosen = np.flatnonzero(used)
    order = chosen[np.lexsort((rows.at[chosen], windows.window[chosen], rows.client[chosen]))]
    client, window = rows.client[order].astype(np.int64), windows.window[order].astype(np.int64)
    concept = rows.concept[order]
    is_last = np.ones(len(order), dtype=np.bool_)
    is_last[:-1] = (client[1:] != client[:-1]) | (window[1:] != window[:-1])
    client, window, concept_then = client[is_last], window[is_last], concept[is_last]
    begins = np.flatnonzero((client[1:] == client[:-1]) & (concept_then[1:] != concept_then[:-1])) + 1
    first = int(windows.window.min(where=windows.kept, initial=np.iinfo(windows.window.dtype).max))
    onsets = of_pairs(window[begins] - first, client[begins])
    return _truth(len(np.unique(concept)), onsets, len(rows.clients), first)


def _truth(concepts: int | None, onsets: Onsets | None, num_clients: int, first_step: int = 0) -> Truth:
    """The truth from onsets whose steps are counted from `first_step`."""
    if onsets is None:
        return Truth(concepts)
    steps, counts = onsets.by_step()
    return Truth(
        concepts,
        len(onsets),
        onsets.num_clients,
        tuple(_events(steps + first_step, counts, num_clients)),
    )


def _events(steps: Ints, counts: Ints, num_clients: int) -> list[MassEvent]:
    large = is_mass_event(counts, num_clients)
    return [
        MassEvent(step, count, count / num_clients)
        for step, count in zip(steps[large].tolist(), counts[large].tolist(), strict=True)
    ]
