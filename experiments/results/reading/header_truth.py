"""The truth about a run's data that the header of its log tells: concepts of tests, and onsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from emulator.arrays import Ints
from traces.onsets import Onsets, is_mass_event, merged, of_concepts, of_steps, of_tests

MOST_NAMED = 8
"""Most data steps that a sentence names."""


@dataclass(frozen=True)
class KnownOnsets:
    """The onsets of a run.

    Attributes:
        steps: (n,) the data steps with an onset, ascending.
        counts: (n,) the number of clients that have one at each.
        onsets: Who has one; None if the header has the numbers alone, as of many clients.
    """

    steps: Ints
    counts: Ints
    onsets: Onsets | None

    def mass_events(self, num_clients: int) -> dict[int, int]:
        """The data steps, ascending, at which at least half of all clients have an onset; how many have."""
        large = is_mass_event(self.counts, num_clients)
        return dict(zip(self.steps[large].tolist(), self.counts[large].tolist(), strict=True))


def steps_in_words(sizes: Mapping[int, str]) -> str:
    """Data steps in a sentence, each with its size; those beyond `MOST_NAMED` are counted.

    >>> steps_in_words({5: "50 clients", 8: "61 clients"})
    'data steps 5 (50 clients), 8 (61 clients)'
    """
    if not sizes:
        return ""
    named = [f"{step} ({size})" for step, size in list(sizes.items())[:MOST_NAMED]]
    more = f" and {len(sizes) - MOST_NAMED} more" if len(sizes) > MOST_NAMED else ""
    return f"data step{'s' if len(sizes) > 1 else ''} {', '.join(named)}{more}"


def onsets_in_words(known: KnownOnsets, num_clients: int) -> str:
    """How many onsets there are, of whom, and the mass events among them; without a full stop.

    >>> onsets_in_words(known_onsets({"concepts": [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]}), 3)
    '3 onsets of 2 of 3 clients; mass event at data step 2 (2 clients)'
    """
    total, events = int(known.counts.sum()), known.mass_events(num_clients)
    clients = f"{num_clients:,} clients"
    of = f" of {known.onsets.num_clients:,} of {clients}" if known.onsets is not None else f" among {clients}"
    sizes = {step: f"{count:,} clients" for step, count in events.items()}
    many = "s" if len(events) > 1 else ""
    mass = f"mass event{many} at {steps_in_words(sizes)}" if events else "no mass event"
    return f"{total:,} onset{'s' if total > 1 else ''}{of}; {mass}"


def clients_of(header: Mapping[str, Any]) -> int | None:
    """The number of clients of a run, by its header; None if that does not tell it.

    >>> clients_of({"num_clients": 7}), clients_of({"concepts": [[0, 1], [0, 1]]}), clients_of({})
    (7, 2, None)
    """
    clients: int | None = len(header["concepts"][0]) if "concepts" in header else header.get("num_clients")
    return clients


def concepts_of_tests(header: Mapping[str, Any]) -> Sequence[Sequence[int]]:
    """The true concept of each client's test samples, a row for each data step, of a header with `concepts`.

    >>> concepts_of_tests({"concepts": [[0, 0], [0, 1], [1, 1]]})
    [[0, 1], [1, 1]]
    >>> concepts_of_tests({"concepts": [[0, 0], [0, 1], [0, 1]], "test_then_train": False})
    [[0, 0], [0, 1]]
    """
    rows = header["concepts"]
    of_steps = rows[1:] if header.get("test_then_train", True) else rows[:-1]
    tested: list[list[int]] = header.get("test_concepts", of_steps)
    return tested


def known_onsets(header: Mapping[str, Any]) -> KnownOnsets | None:
    """All onsets of a checked header: its own, and those of its concepts; None if there are none.

    >>> found = known_onsets({"concepts": [[0, 0], [0, 1], [0, 1]]})
    >>> found.steps.tolist(), found.counts.tolist(), found.onsets.client.tolist()
    ([1], [1], [1])
    """
    written = header.get("onsets")
    if written is not None and "clients" not in written:  # there are no concepts then
        return KnownOnsets(np.array(written["steps"]), np.array(written["counts"]), None)
    parts = []
    if written is not None:
        ids = (np.array(clients, dtype=np.int64) for clients in written["clients"])
        parts.append(of_steps(zip(written["steps"], ids, strict=True)))
    if "concepts" in header:
        parts.append(of_concepts(np.array(header["concepts"])))
    if "test_concepts" in header:
        tested, ahead = np.array(header["test_concepts"]), header.get("test_then_train", True)
        parts.append(of_tests(tested, np.array(header["concepts"]), ahead=ahead))
    onsets = reduce(merged, parts) if parts else None
    return None if onsets is None or len(onsets) == 0 else KnownOnsets(*onsets.by_step(), onsets)
